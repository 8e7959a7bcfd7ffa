//! `nvalloc-fig18`: time to find a list again whose process ended without closing the heap (NVAlloc
//! §6.6).

use super::nvalloc::{Cell, FULL_ROUNDS, Heaps, QUICK_PERCENT, check, measure_by, missing, ratios};
use super::sheet::{Column, Fields, Row, Sheet, Show, Title, by, distinct, groups, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};
use craton_lab::format::count;
use craton_lab::picture::{Axis, Unit};
use craton_lab::scratch::Scratch;
use std::fs;
use std::path::Path;
use std::process::Command;

const NODES: u64 = crate::heaps::load::list::NODES;

const PAPER: &str = "\
the paper's figures, 10 million nodes on Optane: nvm_malloc 324 us (defers most), PMDK 34 ms, NVAlloc-LOG 45 ms, Ralloc 552 ms,
Makalu 911 ms, NVAlloc-GC 933 ms
others on a machine as this one, 1 million nodes: nvm_malloc 2 ms (defers work), PMDK 18 ms, Makalu 36 ms, Ralloc 1527 ms; the authors'
NVAlloc cannot recover
";

const COLUMNS: [Column; 8] = [
    ("nodes", "", Show::By(|row| count(row.int("percent") * NODES / 100))),
    ("mode", "mode", Show::Text),
    ("heap", "allocator", Show::Text),
    ("ms", "ms", Show::Fixed(2, "")),
    ("least", "ms_min", Show::Fixed(2, "")),
    ("open", "open_ms", Show::Fixed(2, "")),
    ("first allocation", "first_alloc_ms", Show::Fixed(3, "")),
    ("", "status", Show::Status),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &[])?;
    let sizes: &[u64] = ask.form(&[QUICK_PERCENT], &[100, 1000]);
    let heaps = Heaps::new(ask)?;
    let mut rows = Vec::new();
    for percent in sizes {
        for heap in [Kind::CratonLog, Kind::CratonGc, Kind::CratonFrames, Kind::Pmdk] {
            rows.extend(recover(ask, &heaps, heap, Mode::Flush, *percent)?);
        }
    }
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let ratios = sheet.ratios(|rows| ratios(rows, "ms", "time"), 3);
    let names = distinct(sheet.rows(), |row| row.word("allocator").to_owned());
    let nodes = |row: &Row| format!("{} nodes", count(row.int("percent") * NODES / 100));
    let bars = groups(sheet.rows(), nodes, (&names, by("allocator")), |row| row.num("ms") / 1e3);
    let title = Title("", "Time to find a list again", "after the end of its process: open, and the first allocation");
    sheet.bars(title, Axis::log("time", Unit::Seconds), &names, bars, None);
    let table = table(&COLUMNS, sheet.rows());
    sheet.findings(format!("{table}\n{ratios}\n{PAPER}{}", missing()))
}

fn recover(ask: &Ask<'_>, heaps: &Heaps<'_>, heap: Kind, mode: Mode, percent: u64) -> Result<Vec<Row>, String> {
    if heap.is_here().is_err() || ask.stopped() {
        return Ok(Vec::new());
    }
    let make = Cell::new(Load::ListMake, heap, mode, percent);
    let original = Scratch::in_memory("a heap's file")?;
    ask.show("the list", &make.allocator(), 0, (0, 1));
    match heaps.once(&make, original.path()) {
        None => return Ok(Vec::new()),
        Some(Err(why)) => return measure_by(ask, vec![make], 1, |_, _| Some(Err(why.clone()))),
        Some(Ok(_)) => {}
    }
    let open = Cell::new(Load::ListOpen, heap, mode, percent);
    measure_by(ask, vec![open.clone()], ask.rounds(1, FULL_ROUNDS), |cell, folder| {
        if let Err(why) = copy(&original.path().join("heap"), &folder.join("heap")) {
            return Some(Err(why));
        }
        Some(heaps.once(cell, folder)?.and_then(|row| match row.int("lost_nodes") {
            0 => Ok(row),
            lost => Err(format!("{lost} nodes were lost")),
        }))
    })
}

/// Keeps holes.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let done = Command::new("cp").arg("--sparse=always").args([from, to]).status();
    match done {
        Ok(status) if status.success() => fs::metadata(to).map(|_| ()).map_err(|e| e.to_string()),
        Ok(status) => Err(format!("cp of the heap's file: {status}")),
        Err(e) => Err(format!("cannot copy the heap's file: {e}")),
    }
}
