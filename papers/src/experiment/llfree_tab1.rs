//! `llfree-tab1`: the bytes and cache lines of an allocator's state, computed, and counted
//! ([`crate::frames::touched`]; LLFree table 1, §5.5).

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, groups, json, part, table};
use super::{Ask, Findings};
use crate::frames::GIB;
use crate::frames::place::Place;
use crate::frames::touched::{Level, computed, counted};
use craton_lab::arrays::LINE;
use craton_lab::format::bytes;
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;

const FULL_GIB: usize = 128;
const QUICK_GIB: usize = 1;
const PAPER_PROCESSORS: usize = 52;

const PAPER: &str = "\
the paper's figures, 128 GiB and 52 processors
LLFree: bit fields 4.0 MiB, counters 128.0 KiB, trees 10.5 KiB, global 128 B: 67,754 cache lines
Linux's buddy allocator: 516.0 MiB, 33,555,169 cache lines
";

const COLUMNS: [Column; 8] = [
    ("memory", "memory_bytes", Show::Bytes),
    ("processors", "processors", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("level", "level", Show::Text),
    ("state", "state_bytes", Show::Bytes),
    ("cache lines", "cache_lines", Show::Count),
    ("touched", "touched_lines", Show::Count),
    ("", "status", Show::Status),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers", "--runs", "--only"], "")?;
    let here = craton_lab::machine::processors().len().max(1);
    let run: &[usize] = ask.form(&[QUICK_GIB], &[QUICK_GIB, FULL_GIB]);
    let mut rows = Vec::new();
    for (done, gib) in run.iter().enumerate() {
        ask.show(&format!("{gib} GiB"), OURS, 0, (done, run.len()));
        rows.extend(rows_of(*gib, here, &counted(gib * GIB, here)?));
    }
    rows.extend(rows_of(FULL_GIB, PAPER_PROCESSORS, &computed(FULL_GIB * GIB, PAPER_PROCESSORS)));
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(ratios, 5);
    let title = Title("", "Cache lines of an allocator's state", "all that a full scan has to load");
    let series = [OURS, "list", "buddy"].map(str::to_owned);
    let all: Vec<&Row> = sheet.rows().iter().filter(|row| row.word("level") == ALL).collect();
    let place = |row: &Row| format!("{}, {} processors", bytes(row.int("memory_bytes")), row.int("processors"));
    let bars = groups(all, place, (&series, by("allocator")), |row| row.num("cache_lines"));
    sheet.bars(title, Axis::log("cache lines", Unit::Count), &series, bars, None);
    let table = table(&COLUMNS, sheet.rows());
    sheet.findings(format!("{table}\n{ratios}\n{PAPER}"))
}

fn rows_of(gib: usize, processors: usize, levels: &[Level]) -> Vec<Row> {
    let row = |allocator: &str, level: &str, bytes: usize, lines: usize, touched: Option<usize>| {
        json!({
            "allocator": allocator,
            "level": level,
            "memory_bytes": (gib as u64) << 30,
            "processors": processors,
            "state_bytes": bytes,
            "cache_lines": lines,
            "touched_lines": touched,
            "status": match touched {
                Some(touched) if level != PROCESSORS && level != ALL && touched != lines => {
                    format!("{touched} lines were touched, not {lines}")
                }
                _ => "ok".to_owned(),
            },
        })
    };
    let mut rows: Vec<Row> =
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

const LINK: usize = size_of::<u32>();
const ALL: &str = "all";
/// A run may leave its lines alone.
const PROCESSORS: &str = "processors";

fn ratios(rows: &[Row]) -> Map {
    let all = |allocator: &str| rows.iter().rfind(|row| row.has(&[("allocator", allocator), ("level", ALL)]));
    let mut ratios = Map::new();
    for other in ["list", "buddy"] {
        let (Some(ours), Some(its)) = (all(OURS), all(other)) else { continue };
        for (name, field) in [("bytes", "state_bytes"), ("lines", "cache_lines")] {
            ratios.insert(format!("{name}_vs_{other}"), part(ours.int(field), its.int(field)));
        }
    }
    ratios
}

#[cfg(test)]
mod tests;
