//! `nvalloc-fig17`: what collecting the bookkeeping log costs (NVAlloc §6.6). The fast collection
//! always runs. The heap's threshold is 64 KiB.

use super::nvalloc::{Cell, FULL_ROUNDS, QUICK_PERCENT, check, measure};
use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, groups, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};
use craton_lab::picture::{Axis, Unit};

/// KiB of log.
const USAGES: [u64; 4] = [8, 64, 256, 1024];
const NEVER: &str = ", never";

const PAPER: &str = "\
the paper's figures: at a threshold of 0.2 % of the memory, collecting costs 3 % on Larson-large, 8 % on DBMStest
";

const COLUMNS: [Column; 8] = [
    ("heap", "allocator", Show::Text),
    ("mode", "mode", Show::Text),
    ("ns/op", "ns_per_op", Show::Fixed(1, "")),
    ("least", "ns_per_op_min", Show::Fixed(1, "")),
    ("log", "log_bytes", Show::Bytes),
    ("slow runs/M ops", "slow_runs", Show::Fixed(1, "")),
    ("entries copied/M ops", "copied", Show::Fixed(0, "")),
    ("", "status", Show::Status),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &[])?;
    let cells = [Mode::Flush, Mode::None].into_iter().flat_map(|mode| {
        let cell = move || Cell::new(Load::LogGc, Kind::CratonLog, mode, ask.form(QUICK_PERCENT, 100));
        let above = move |kib: u64| cell().with("log-usage", kib << 10, &format!(", above {kib} KiB"));
        let never = Cell { variant: NEVER.to_owned(), ..cell() };
        USAGES.into_iter().map(above).chain([never]).collect::<Vec<_>>()
    });
    let mut sheet = Sheet::new(ask, measure(ask, cells.collect(), ask.rounds(1, FULL_ROUNDS))?);
    let ratios = sheet.ratios(ratios, 3);
    let names = distinct(sheet.rows(), |row| row.word("allocator").to_owned());
    let bars = groups(sheet.rows(), by("mode"), (&names, by("allocator")), |row: &Row| row.num("ns_per_op") / 1e9);
    let title =
        Title("", "Collecting the bookkeeping log", "time of an operation on extents of 32 to 512 KiB; medians");
    sheet.bars(title, Axis::linear("time of an operation", Unit::Seconds), &names, bars, None);
    let table = table(&COLUMNS, sheet.rows());
    sheet.findings(format!("{table}\n{ratios}\n{PAPER}"))
}

fn ratios(rows: &[Row]) -> Map {
    let mut ratios = Map::new();
    for row in rows.iter().filter(|row| row.is_ok() && !row.word("allocator").ends_with(NEVER)) {
        let never = |other: &&Row| other.like(row, &["mode"]) && other.word("allocator").ends_with(NEVER);
        if let Some(never) = rows.iter().find(never) {
            let usage = row.word("allocator").rsplit("above ").next().unwrap_or_default().replace(' ', "");
            let name = format!("time_{}_{usage}_vs_never", row.word("mode"));
            ratios.insert(name, row.num("ns_per_op") / never.num("ns_per_op"));
        }
    }
    ratios
}
