//! `nvalloc-fig1a`: how many flushes flush a line again that was among the last four (NVAlloc
//! §3.1). Slots lie a line apart, so that the allocator alone causes them.

use super::nvalloc::{COUNTS, check, grid, measure, missing};
use super::nvalloc_fig9::LOADS;
use super::sheet::{Fields, Row, Sheet, Title, by, distinct, groups, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Mode};
use craton_lab::picture::{Axis, Unit};

const PAPER: &str = "\
the paper's figures: 99.7 % of PMDK's flushes are reflushes, 94.4 % of nvm_malloc's, 98.8 % of PAllocator's
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &LOADS)?;
    let heaps = [Kind::CratonLog, Kind::CratonGc, Kind::Pmdk];
    let rows = measure(ask, grid(ask, &LOADS, &heaps, &[Mode::Counted], &[1]), 1)?;
    let mut sheet = Sheet::new(ask, rows);
    let names = distinct(sheet.rows(), |row| row.word("allocator").to_owned());
    let bars =
        groups(sheet.rows(), by("workload"), (&names, by("allocator")), |row: &Row| row.num("reflushes") * 100.0);
    let title = Title("", "Flushes of a line among the last four", "percent of all flushes, counted");
    sheet.bars(title, Axis::linear("reflushes in percent", Unit::Count), &names, bars, None);
    let table = table(&COUNTS, sheet.rows());
    sheet.findings(format!("{table}\n{PAPER}{}", missing()))
}
