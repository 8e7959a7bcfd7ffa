//! `nvalloc-fig13`: the space of heaps, and their growth (NVAlloc §6.2). Objects of DBMStest are
//! not written to: their pages count once touched.

use super::nvalloc::{check, grid, measure, missing, ratios};
use super::sheet::{Column, Fields, Sheet, Show, Title, by, distinct, groups, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};
use craton_lab::picture::{Axis, Unit};

const LOADS: [Load; 4] = [Load::Threadtest, Load::Dbmstest, Load::ShortThreads, Load::OneLarge];

const PAPER: &str = "\
the paper's figures: NVAlloc-LOG takes as much as the others or less
others on a machine as this one: threadtest, 6.1 MB live: the authors' NVAlloc 10 MB, nvm_malloc 84, PMDK 15, Makalu 7, Ralloc 7;
2000 short threads: the authors' NVAlloc grows by 494 MB; one object of 512 KB: by 14 MB
";

const COLUMNS: [Column; 5] = [
    ("load", "workload", Show::Text),
    ("heap", "allocator", Show::Text),
    ("most space", "peak_bytes", Show::Bytes),
    ("grown by", "grown_bytes", Show::Bytes),
    ("", "status", Show::Status),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let heaps = [Kind::CratonLog, Kind::CratonGc, Kind::CratonFrames, Kind::Pmdk];
    let rows = measure(ask, grid(ask, &LOADS, &heaps, &[Mode::Flush], &[1]), ask.rounds(1, 3))?;
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(|rows| ratios(rows, "peak_bytes", "space"), 3);
    let names = distinct(sheet.rows(), |row| row.word("allocator").to_owned());
    let bars = groups(sheet.rows(), by("workload"), (&names, by("allocator")), |row| row.num("peak_bytes"));
    let title = Title("", "The most space of a heap's file", "one thread; medians");
    sheet.bars(title, Axis::log2("space", Unit::Bytes), &names, bars, None);
    let table = table(&COLUMNS, sheet.rows());
    sheet.findings(format!("{table}\n{ratios}\n{PAPER}{}", missing()))
}
