//! `llfree-tab1`: over how many bytes and cache lines an allocator's state is spread.
//!
//! **What.** The levels of Craton's zone, computed from its sizes, and counted after every frame was allocated and freed
//! ([`touched`]); the state of the list and buddy designs beside it, as they keep it here: a cache line for each frame.
//!
//! **From.** LLFree table 1 and §5.5.
//!
//! **State.** 1 GiB and, in the full form, 128 GiB, with this machine's processors; 128 GiB with the paper's 52 is computed only.

use super::{Ask, Experiment, Findings, no_use, simulation};
use crate::frames::GIB;
use crate::frames::place::Place;
use crate::frames::touched::{Level, computed, counted};
use craton_lab::arrays::LINE;
use craton_lab::document::Document;
use craton_lab::format::{Column, bytes, count, table_of};
use craton_lab::measure::Progress;
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use craton_lab::ratios::{OURS, Ratios};
use serde::Serialize;
use std::collections::BTreeMap;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "llfree-tab1",
    about: "page frames: bytes and cache lines of an allocator's state, by level, computed and counted",
    answers: "LLFree table 1, §5.5",
    run,
};

const FULL_GIB: usize = 128;
const QUICK_GIB: usize = 1;
/// The processors of the paper's machine.
const PAPER_PROCESSORS: usize = 52;

const PAPER: &str = "\
the paper's figures, 128 GiB and 52 processors
LLFree: bit fields 4.0 MiB, counters 128.0 KiB, trees 10.5 KiB, global 128 B: 67,754 cache lines
Linux's buddy allocator: 516.0 MiB, 33,555,169 cache lines
";

/// A row of the document.
#[derive(Clone, Serialize)]
struct StateRow {
    allocator: &'static str,
    level: &'static str,
    memory_bytes: u64,
    processors: usize,
    state_bytes: u64,
    cache_lines: u64,
    /// Lines that a run wrote to; none where it was computed only.
    touched_lines: Option<u64>,
    status: String,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    if ask.peers_asked || ask.runs.is_some() || !ask.only.is_empty() {
        let option = match (ask.peers_asked, ask.runs) {
            (true, _) => "--peers",
            (_, Some(_)) => "--runs",
            _ => "--only",
        };
        return Err(no_use(option, EXPERIMENT.name));
    }
    let here = craton_lab::machine::processors().len().max(1);
    let run: &[usize] = if ask.quick { &[QUICK_GIB] } else { &[QUICK_GIB, FULL_GIB] };
    let mut rows = Vec::new();
    for (done, gib) in run.iter().enumerate() {
        (ask.progress)(&format!("{gib} GiB"), Progress { allocator: OURS, round: Some(0), done, total: run.len() });
        rows.extend(rows_of(*gib, here, &counted(gib * GIB, here)?));
    }
    rows.extend(rows_of(FULL_GIB, PAPER_PROCESSORS, &computed(FULL_GIB * GIB, PAPER_PROCESSORS)));
    let mut document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    document.ratios = ratios(&document.rows);
    Ok(Findings {
        text: show(&document),
        pictures: vec![(String::new(), picture(&document))],
        failed: document.rows.iter().filter(|row| row.status != "ok").count(),
        document: super::text(&document)?,
    })
}

/// The levels, all of them together, and the state of designs with a place for each frame.
fn rows_of(gib: usize, processors: usize, levels: &[Level]) -> Vec<StateRow> {
    let row = |allocator, level, bytes: usize, lines: usize, touched: Option<usize>| StateRow {
        allocator,
        level,
        memory_bytes: (gib as u64) << 30,
        processors,
        state_bytes: bytes as u64,
        cache_lines: lines as u64,
        touched_lines: touched.map(|lines| lines as u64),
        // A run may leave a processor's line alone, and no other.
        status: match touched {
            Some(touched) if level != PROCESSORS && level != ALL && touched != lines => {
                format!("{touched} lines were touched, not {lines}")
            }
            _ => "ok".to_owned(),
        },
    };
    let mut rows: Vec<StateRow> =
        levels.iter().map(|level| row(OURS, level.name, level.bytes, level.lines, level.touched)).collect();
    let sum = |of: fn(&Level) -> usize| levels.iter().map(of).sum::<usize>();
    let touched = levels.iter().map(|level| level.touched).sum::<Option<usize>>();
    rows.push(row(OURS, ALL, sum(|level| level.bytes), sum(|level| level.lines), touched));
    let frames = gib * GIB;
    for (allocator, used) in [("list", LINK), ("buddy", 3 * LINK)] {
        rows.push(row(allocator, ALL, frames * used, frames * size_of::<Place>() / LINE, None));
    }
    rows
}

/// Bytes of a link or mark in a place.
const LINK: usize = size_of::<u32>();
/// All levels together.
const ALL: &str = "all";
/// The level of which a run may leave lines alone.
const PROCESSORS: &str = "processors";

/// Craton's bytes and lines as parts of others', for the largest memory.
fn ratios(rows: &[StateRow]) -> BTreeMap<String, f64> {
    let all = |allocator: &str| rows.iter().rfind(|row| row.allocator == allocator && row.level == ALL);
    let mut ratios = BTreeMap::new();
    for other in ["list", "buddy"] {
        let (Some(ours), Some(its)) = (all(OURS), all(other)) else { continue };
        ratios.insert(format!("bytes_vs_{other}"), simulation::ratio(ours.state_bytes, its.state_bytes));
        ratios.insert(format!("lines_vs_{other}"), simulation::ratio(ours.cache_lines, its.cache_lines));
    }
    ratios
}

fn show(document: &Document<StateRow>) -> String {
    let columns: [Column<StateRow>; 8] = [
        ("memory", |row| bytes(row.memory_bytes)),
        ("processors", |row| row.processors.to_string()),
        ("allocator", |row| row.allocator.to_owned()),
        ("level", |row| row.level.to_owned()),
        ("state", |row| bytes(row.state_bytes)),
        ("cache lines", |row| count(row.cache_lines)),
        ("touched", |row| row.touched_lines.map_or("-".to_owned(), count)),
        ("", |row| if row.status == "ok" { String::new() } else { row.status.clone() }),
    ];
    let ratios: String = document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.5}\n")).collect();
    format!("{}\n{ratios}\n{PAPER}", table_of(&columns, &[2, 3], &document.rows))
}

fn picture(document: &Document<StateRow>) -> String {
    let names = [OURS, "list", "buddy"];
    let group = |rows: &[StateRow]| Group {
        name: format!("{}, {} processors", bytes(rows[0].memory_bytes), rows[0].processors),
        bars: names
            .map(|name| rows.iter().find(|row| row.allocator == name && row.level == ALL))
            .map(|row| row.map(|row| Estimate::exact(row.cache_lines as f64)))
            .to_vec(),
    };
    let same = |a: &StateRow, b: &StateRow| (a.memory_bytes, a.processors) == (b.memory_bytes, b.processors);
    Bars {
        heading: super::heading("Cache lines of an allocator's state", "all that a full scan has to load", document),
        axis: Axis::log("cache lines", Unit::Count),
        series: names.map(str::to_owned).to_vec(),
        groups: document.rows.chunk_by(same).map(group).collect(),
        reference: None,
        direction: Direction::Up,
        width_px: 760.0,
    }
    .svg()
}

#[cfg(test)]
mod tests;
