//! Common parts of the experiments of NVAlloc's figures (docs/experiments.md): cells of loads,
//! heaps and modes. A heap that is not installed has no cells and a line below the table.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, distinct, geomean, json, pairs, table};
use super::{Ask, Findings};
use crate::heaps::{Kind, Load, Mode};
use craton_lab::micro::process::{Ended, Process};
use craton_lab::picture::{Axis, Estimate, Group, Unit};
use craton_lab::scratch::Scratch;
use craton_lab::summary::Spread;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const FULL_ROUNDS: usize = 5;
const FULL_MS: u64 = 200;
const QUICK_MS: u64 = 10;
/// Of the full form's objects.
pub const QUICK_PERCENT: u64 = 2;
/// Of a run.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    pub load: Load,
    pub heap: Kind,
    pub mode: Mode,
    pub threads: u64,
    pub percent: u64,
    /// For `craton-heaps`; `variant` ends the allocator's name.
    pub options: Vec<(&'static str, String)>,
    pub variant: String,
}

impl Cell {
    pub fn new(load: Load, heap: Kind, mode: Mode, percent: u64) -> Self {
        Self { load, heap, mode, threads: 1, percent, options: Vec::new(), variant: String::new() }
    }

    pub fn threads(self, threads: u64) -> Self {
        Self { threads, ..self }
    }

    pub fn with(mut self, option: &'static str, value: impl ToString, variant: &str) -> Self {
        self.options.push((option, value.to_string()));
        Self { variant: format!("{}{variant}", self.variant), ..self }
    }

    pub fn allocator(&self) -> String {
        format!("{}{}", self.heap.name(), self.variant)
    }
}

pub fn grid(ask: &Ask<'_>, loads: &[Load], heaps: &[Kind], modes: &[Mode], threads: &[u64]) -> Vec<Cell> {
    let percent = ask.form(QUICK_PERCENT, 100);
    let mut cells = Vec::new();
    for load in loads.iter().filter(|load| ask.wants(&load.name())) {
        for mode in modes {
            for threads in threads {
                cells.extend(heaps.iter().map(|heap| Cell::new(*load, *heap, *mode, percent).threads(*threads)));
            }
        }
    }
    cells
}

pub fn check(ask: &Ask<'_>, loads: &[Load]) -> Result<(), String> {
    ask.refuse(&["--peers"], ", which compares persistent heaps")?;
    ask.known("load", &loads.iter().map(|load| load.name()).collect::<Vec<_>>())
}

pub fn threads() -> Vec<u64> {
    let all = craton_lab::machine::processors().len().max(1) as u64;
    if all == 1 { vec![1] } else { vec![1, all] }
}

/// Always in a new folder.
pub struct Heaps<'a> {
    ask: &'a Ask<'a>,
    program: PathBuf,
}

impl<'a> Heaps<'a> {
    pub fn new(ask: &'a Ask<'a>) -> Result<Self, String> {
        let program = (ask.tool)("craton-heaps")?;
        Ok(Self { ask, program: std::path::absolute(&program).unwrap_or(program) })
    }

    /// `None`: the caller stops.
    pub fn once(&self, cell: &Cell, folder: &Path) -> Option<Result<Row, String>> {
        let mut command: Vec<OsString> = vec![self.program.clone().into(), cell.load.name().into()];
        let mut option = |name: &str, value: &str| {
            command.push(format!("--{name}").into());
            command.push(value.into());
        };
        option("heap", cell.heap.name());
        option("mode", cell.mode.name());
        option("threads", &cell.threads.to_string());
        option("percent", &cell.percent.to_string());
        option("ms", &self.ask.form(QUICK_MS, FULL_MS).to_string());
        cell.options.iter().for_each(|(name, value)| option(name, value));
        command.push("--directory".into());
        command.push(folder.into());
        let environment = cell.mode.environment().into_iter().map(|(key, value)| (key.into(), value.into()));
        let process = Process::start(&command, &environment.collect::<Vec<_>>(), folder, "line", LIMIT);
        Some(match process.and_then(|process| process.finish(self.ask.stop)) {
            Err(e) => Err(format!("cannot start {}: {e}", self.program.display())),
            Ok(Ended::Stopped) => return None,
            Ok(Ended::TimedOut) => Err(format!("took longer than {} s", LIMIT.as_secs())),
            Ok(Ended::Done(output)) => match output.failure() {
                Some(why) => Err(why),
                None => serde_json::from_str(output.stdout.trim()).map_err(|e| format!("{:?}: {e}", output.stdout)),
            },
        })
    }
}

pub fn measure_by(
    ask: &Ask<'_>,
    cells: Vec<Cell>,
    rounds: usize,
    mut run: impl FnMut(&Cell, &Path) -> Option<Result<Row, String>>,
) -> Result<Vec<Row>, String> {
    let cells: Vec<Cell> = cells.into_iter().filter(|cell| cell.heap.is_here().is_ok()).collect();
    let mut found = vec![Vec::new(); cells.len()];
    let total = rounds * cells.len();
    for done in 0..total {
        let (round, place) = (done / cells.len(), done % cells.len());
        let cell = &cells[place];
        ask.show(&format!("{}, {}", cell.load.name(), cell.mode.name()), &cell.allocator(), round, (done, total));
        let folder = Scratch::in_memory("a heap's file")?;
        match run(cell, folder.path()) {
            Some(result) => found[place].push(result),
            None => break,
        }
    }
    let rows: Vec<Row> = cells.iter().zip(&found).filter_map(|(cell, found)| row(cell, found)).collect();
    if rows.is_empty() { Err("nothing was measured".to_owned()) } else { Ok(rows) }
}

pub fn measure(ask: &Ask<'_>, cells: Vec<Cell>, rounds: usize) -> Result<Vec<Row>, String> {
    let heaps = Heaps::new(ask)?;
    measure_by(ask, cells, rounds, |cell, folder| heaps.once(cell, folder))
}

fn row(cell: &Cell, found: &[Result<Row, String>]) -> Option<Row> {
    let first = found.iter().flatten().next();
    let wrong = found.iter().find_map(|round| round.as_ref().err());
    let mut row = json!({
        "workload": cell.load.name(),
        "allocator": cell.allocator(),
        "mode": cell.mode.name(),
        "threads": cell.threads,
        "percent": cell.percent,
        "rounds": found.iter().flatten().count(),
    });
    let fields = first.and_then(|first| first.as_object());
    for (name, value) in fields.into_iter().flatten() {
        let all = || found.iter().flatten().filter_map(|round| round[name].as_f64());
        match Spread::of(all()).filter(|_| value.is_number()) {
            Some(spread) => {
                row[name] = spread.median.into();
                if name == "ns_per_op" || name == "ms" {
                    row[format!("{name}_min")] = all().fold(f64::INFINITY, f64::min).into();
                    row[format!("{name}_max")] = all().fold(0.0, f64::max).into();
                }
            }
            None => row[name] = value.clone(),
        }
    }
    row["status"] = wrong.map_or("ok".to_owned(), |why| format!("failed: {why}")).into();
    (!found.is_empty()).then_some(row)
}

/// On the paper's memory: the time without flushes, and the modelled one of counted flushes.
pub fn modelled(rows: &mut Vec<Row>) {
    let same = ["workload", "allocator", "threads"];
    let of = |row: &&Row| row.has(&[("mode", "none"), ("status", "ok")]) && row.int("threads") == 1;
    let mut more = Vec::new();
    for row in rows.iter().filter(of) {
        let counted = |other: &&Row| other.has(&[("mode", "counted"), ("status", "ok")]) && other.like(row, &same);
        if let Some(counted) = rows.iter().find(counted) {
            let mut model = row.clone();
            model["mode"] = "modelled".into();
            model["ns_per_op"] = (row.num("ns_per_op") + counted.num("modelled_ns_per_op")).into();
            for field in ["ns_per_op_min", "ns_per_op_max", "peak_bytes"] {
                model.as_object_mut().map(|fields| fields.remove(field));
            }
            more.push(model);
        }
    }
    rows.extend(more);
}

fn mops(row: &Row, field: &str) -> Option<f64> {
    row[field].as_f64().filter(|ns| *ns > 0.0).map(|ns| 1e3 / ns)
}

pub const SPEED: [Column; 8] = [
    ("load", "workload", Show::Text),
    ("mode", "mode", Show::Text),
    ("threads", "threads", Show::Plain),
    ("heap", "allocator", Show::Text),
    ("M ops/s", "", Show::By(|row| mops(row, "ns_per_op").map_or(String::new(), |m| format!("{m:.2}")))),
    ("least to most", "", Show::By(spread)),
    ("ns/op", "ns_per_op", Show::Fixed(1, "")),
    ("", "status", Show::Status),
];

fn spread(row: &Row) -> String {
    let both = mops(row, "ns_per_op_max").zip(mops(row, "ns_per_op_min"));
    both.map_or(String::new(), |(least, most)| format!("{least:.2} to {most:.2}"))
}

pub const COUNTS: [Column; 9] = [
    ("load", "workload", Show::Text),
    ("heap", "allocator", Show::Text),
    ("flushes/op", "flushes_per_op", Show::Fixed(2, "")),
    ("fences/op", "fences_per_op", Show::Fixed(2, "")),
    ("reflushes", "reflushes", Show::Percent(1)),
    ("at distance 0", "reflushes_at_0", Show::Percent(1)),
    ("sequential", "sequential", Show::Percent(1)),
    ("random", "random", Show::Percent(1)),
    ("", "status", Show::Status),
];

/// Craton's by the others'.
pub fn ratios(rows: &[Row], figure: &str, name: &str) -> Map {
    let mut ratios = ratios_to(Kind::Pmdk, rows, figure, name);
    ratios.append(&mut ratios_to(Kind::Nvalloc, rows, figure, name));
    ratios
}

fn ratios_to(other: Kind, rows: &[Row], figure: &str, name: &str) -> Map {
    let mut ratios = Map::new();
    let other = other.name();
    let theirs = |row: &Row| row.word("allocator") == other;
    for ours in distinct(rows, |row| row.word("allocator")).into_iter().filter(|name| name.starts_with("craton")) {
        for mode in distinct(rows, |row| row.word("mode")) {
            let mut all = Vec::new();
            for load in distinct(rows, |row| row.word("workload")) {
                let mine = |row: &Row| row.has(&[("allocator", ours), ("mode", mode), ("workload", load)]);
                let found = pairs(rows, figure, (&mine, &theirs), &["workload", "mode", "threads"]);
                if !found.is_empty() {
                    ratios.insert(format!("{load}_{mode}_{ours}_vs_{other}"), geomean(&found));
                }
                all.extend(found);
            }
            if !all.is_empty() {
                ratios.insert(format!("{name}_{mode}_{ours}_vs_{other}"), geomean(&all));
            }
        }
    }
    ratios
}

pub fn missing() -> String {
    note(Kind::Pmdk)
}

/// Empty if the heap is here.
pub fn note(heap: Kind) -> String {
    heap.is_here().err().map_or(String::new(), |why| format!("{}: {why}\n", heap.name()))
}

pub fn draw_speed(sheet: &mut Sheet, what: &str) {
    for mode in distinct(sheet.rows(), |row| row.word("mode").to_owned()) {
        if mode == Mode::Counted.name() {
            continue;
        }
        let rows: Vec<Row> = sheet.rows().iter().filter(|row| row.word("mode") == mode).cloned().collect();
        let names = distinct(&rows, |row| row.word("allocator").to_owned());
        let title = Title(&mode, what, "million operations per second, of all threads; medians, least and most");
        let bars = bars(&rows, &names);
        sheet.bars(title, Axis::log("operations per second", Unit::Count), &names, bars, None);
    }
}

fn bars(rows: &[Row], names: &[String]) -> Vec<Group> {
    let group = |(load, threads): (&str, u64)| {
        let bar = |name: &String| {
            let of = |row: &&Row| {
                row.has(&[("workload", load), ("allocator", name), ("status", "ok")]) && row.int("threads") == threads
            };
            let row = rows.iter().find(of)?;
            let speed = |field| mops(row, field).map(|mops| mops * 1e6);
            let middle = speed("ns_per_op")?;
            let ends = speed("ns_per_op_max").zip(speed("ns_per_op_min"));
            Some(ends.map_or(Estimate::exact(middle), |(low, high)| Estimate::between(middle, low, high)))
        };
        Group { name: format!("{load}, {threads}"), bars: names.iter().map(bar).collect() }
    };
    distinct(rows, |row| (row.word("workload"), row.int("threads"))).into_iter().map(group).collect()
}

pub fn speeds(ask: &Ask<'_>, mut rows: Vec<Row>, what: &str, paper: &str) -> Result<Findings, String> {
    modelled(&mut rows);
    let mut sheet = Sheet::new(ask, rows);
    let ratios = sheet.ratios(|rows| ratios(rows, "ns_per_op", "time"), 3);
    draw_speed(&mut sheet, what);
    let (counted, timed): (Vec<&Row>, Vec<&Row>) =
        sheet.rows().iter().partition(|row| row.word("mode") == Mode::Counted.name());
    let counts = if counted.is_empty() { String::new() } else { format!("{}\n", table(&COUNTS, counted)) };
    let text = format!("{}\n{counts}{ratios}\n{paper}{}", table(&SPEED, timed), missing());
    sheet.findings(text)
}

#[cfg(test)]
mod tests;
