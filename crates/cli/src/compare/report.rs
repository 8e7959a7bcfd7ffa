//! A comparison as text.

use crate::library::SEGMENT;
use crate::program;
use crate::terminal::{WIDTH, plain, wrap};
use craton_lab::format::{blocks, bytes, columns, count, seconds, table};
use craton_lab::measure::proof::Service;
use craton_lab::measure::server::results::{Pattern, Results};
use craton_lab::measure::{Measured, Run, Status};
use craton_lab::ratios::{BASE, OURS, others};
use craton_lab::summary::{Figure, Interval, Ratio, ratio, summarize};
use craton_lab::symbols;
use std::ffi::OsString;
use std::path::Path;

const NONE: &str = "-";
const COMPLAINT: &str = "craton: ";
const LAST_LINES: usize = 10;
const NOT_READY: &str = "the command of --ready did not succeed in this time, and the server was ended; start the \
                         server by hand and try the command, or allow more by --ready-timeout";

/// Head, figure, format, and whether its ratio to glibc is beside it.
type Column = (&'static str, Figure, fn(f64) -> String, bool);

/// In every block: allocator, runs.
const KEYS: usize = 2;

/// Of a command that ends by itself. The first column has the interval.
const COLUMNS: [Column; 8] = [
    ("wall time", Figure::Wall, seconds, true),
    ("CPU time", Figure::Cpu, seconds, true),
    ("peak RSS", Figure::PeakRss, |v| bytes(v as u64), true),
    ("steady RSS", Figure::SteadyRss, |v| bytes(v as u64), true),
    ("page faults", Figure::MinorFaults, |v| count(v as u64), true),
    ("major faults", Figure::MajorFaults, |v| count(v as u64), false),
    ("on hugepages", Figure::Hugepages, |v| bytes(v as u64), false),
    ("share", Figure::Coverage, |v| format!("{:.0} %", v * 100.0), false),
];

const SERVER_COLUMNS: [Column; 10] = [
    ("requests/s", Figure::Throughput, |v| count(v.round() as u64), true),
    ("load's time", Figure::Wall, seconds, true),
    ("p50", Figure::P50, seconds, true),
    ("p99", Figure::P99, seconds, true),
    ("p99.9", Figure::P999, seconds, true),
    ("CPU time", Figure::Cpu, seconds, true),
    ("peak PSS", Figure::PeakRss, |v| bytes(v as u64), true),
    ("steady PSS", Figure::SteadyRss, |v| bytes(v as u64), true),
    ("after load", Figure::AfterLoad, |v| bytes(v as u64), true),
    ("page faults", Figure::MinorFaults, |v| count(v as u64), true),
];

/// The columns for which a run has a figure.
fn figures(runs: &[Run]) -> Vec<Column> {
    let all: &[Column] = if is_server(runs) { &SERVER_COLUMNS } else { return COLUMNS.to_vec() };
    let known = |column: &&Column| runs.iter().any(|run| column.1.of(run).is_some());
    all.iter().filter(known).copied().collect()
}

pub fn is_server(runs: &[Run]) -> bool {
    runs.iter().any(|run| run.load.is_some())
}

/// At most `width` characters wide, if possible.
pub fn show(measured: &Measured, command: &[OsString], notes: &[String], colour: bool, width: usize) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let command_line: String = plain(&words.join(" ")).chars().take(200).collect();
    let mut text = format!("{command_line}\n");
    let runs = &measured.runs;
    if runs.iter().any(|run| run.status == Status::Ok) {
        text += &medians(runs, colour, width);
        text += &in_words(runs).map(|words| format!("\n{}", wrap(&words, WIDTH))).unwrap_or_default();
    }
    text += &notes.iter().map(|note| plain(note) + "\n").collect::<String>();
    text + &failures(measured, command)
}

/// Of the notes about allocators the faults only where a run on the allocator failed.
pub fn known(notes: &[String], faults: &[String], runs: &[Run]) -> Vec<String> {
    let has_failed = |name: &str| runs.iter().any(|run| run.allocator == name && run.status != Status::Ok);
    let is_shown = |note: &&String| !faults.contains(*note) || note.split(':').next().is_some_and(has_failed);
    notes.iter().filter(is_shown).cloned().collect()
}

/// `known` come first, then what the runs showed.
pub fn notes(measured: &Measured, command: &[OsString], figures: &[Pattern], known: &[String]) -> Vec<String> {
    let found = own_allocator(measured).into_iter().chain(contains_craton(command));
    known
        .iter()
        .cloned()
        .chain(found)
        .chain(unread(&measured.runs, figures))
        .chain(no_requests(&measured.runs))
        .chain(complaints(&measured.runs))
        .collect()
}

/// Patterns that matched no number of any load.
fn unread(runs: &[Run], figures: &[Pattern]) -> Vec<String> {
    let loads: Vec<_> = runs.iter().filter_map(|run| run.load).collect();
    let missing = |figure: &&Pattern| loads.iter().all(|load| figure.figure(&load.results).is_none());
    let figures = figures.iter().filter(|_| !loads.is_empty()).filter(missing);
    figures.map(|figure| format!("--figure '{}': no number in the load's output matches", figure.text())).collect()
}

/// Where the load printed no figure of a known form.
fn no_requests(runs: &[Run]) -> Option<String> {
    let loads: Vec<_> = runs.iter().filter_map(|run| run.load).collect();
    let nothing = !loads.is_empty() && loads.iter().all(|load| load.results == Results::default());
    nothing.then(|| {
        "the load printed neither requests per second nor latency in a known form; \
         --figure 'ops=REGEX' reads others"
            .to_owned()
    })
}

pub fn allocators(runs: &[Run]) -> Vec<&str> {
    others(&[runs], "")
}

fn medians(runs: &[Run], colour: bool, width: usize) -> String {
    let mut head = vec![String::new(), "runs".to_owned()];
    let figures = figures(runs);
    for (place, (name, _, _, with_ratio)) in figures.iter().enumerate() {
        head.push((*name).to_owned());
        head.extend(with_ratio.then(|| "×".to_owned()));
        head.extend((place == 0).then(|| "95 %".to_owned()));
    }
    let mut rows = vec![head];
    let mut paints: Vec<Vec<(usize, &str)>> = vec![Vec::new()];
    for name in allocators(runs) {
        let (row, paint) = allocator(runs, name, &figures);
        rows.push(row);
        paints.push(paint);
    }
    let joined: Vec<usize> =
        (0..rows[0].len()).filter(|i| ["×", "95 %", "share"].contains(&rows[0][*i].as_str())).collect();
    let mut cells = columns(&rows, &[0]);
    let blocks = blocks(&cells, KEYS, &joined, width);
    for (row, paints) in cells.iter_mut().zip(paints) {
        for (place, paint) in paints.into_iter().filter(|_| colour) {
            row[place] = format!("{paint}{}\x1b[0m", row[place]);
        }
    }
    let first = figures.first().map_or("", |column| column.0);
    let mut text = format!("medians; × is the ratio to {BASE}, with its 95 % interval for {first}\n");
    for block in blocks {
        text += "\n";
        for row in &cells {
            let line: Vec<&str> = row[..KEYS].iter().chain(&row[block.clone()]).map(String::as_str).collect();
            text += &format!("{}\n", line.join("  ").trim_end());
        }
    }
    text
}

fn allocator(runs: &[Run], name: &str, figures: &[Column]) -> (Vec<String>, Vec<(usize, &'static str)>) {
    let summary = summarize(runs, name);
    let all = runs.iter().filter(|run| run.allocator == name).count();
    let ok = summary.as_ref().map_or(0, |s| s.ok);
    let mut row = vec![name.to_owned(), if ok == all { ok.to_string() } else { format!("{ok}/{all}") }];
    let mut paints = Vec::new();
    for (place, &(_, figure, show, with_ratio)) in figures.iter().enumerate() {
        let median = summary.as_ref().and_then(|s| s.spread(figure)).map(|spread| spread.median);
        row.push(median.map_or(NONE.to_owned(), show));
        let ratio = ratio(runs, name, BASE, figure).filter(|_| name != BASE);
        if with_ratio {
            paints.extend(ratio.and_then(|ratio| paint(ratio, figure)).map(|paint| (row.len(), paint)));
            row.push(ratio.map_or(NONE.to_owned(), |r| format!("{:.2}", r.of_medians)));
        }
        if place == 0 {
            let interval = ratio.and_then(|r| r.interval);
            row.push(interval.map_or(NONE.to_owned(), |i| format!("{:.2}–{:.2}", i.low, i.high)));
        }
    }
    (row, paints)
}

/// Green for a clear gain, red for a clear loss.
fn paint(ratio: Ratio, figure: Figure) -> Option<&'static str> {
    let interval = ratio.interval.filter(Interval::is_clear)?;
    let gain = (interval.high < 1.0) != figure.more_is_better();
    Some(if gain { "\x1b[32m" } else { "\x1b[31m" })
}

const MEASURES: [(Figure, &str); 4] = [
    (Figure::Wall, "wall time"),
    (Figure::Cpu, "CPU time"),
    (Figure::PeakRss, "peak memory"),
    (Figure::MinorFaults, "page faults"),
];

const SERVER_MEASURES: [(Figure, &str); 7] = [
    (Figure::Throughput, "requests per second"),
    (Figure::P50, "median latency"),
    (Figure::P99, "latency of the slowest hundredth"),
    (Figure::Cpu, "CPU time"),
    (Figure::PeakRss, "peak memory"),
    (Figure::AfterLoad, "memory after the load"),
    (Figure::MinorFaults, "page faults"),
];

/// Names the clear differences first, then the measures without one.
fn in_words(runs: &[Run]) -> Option<String> {
    let measures: &[(Figure, &str)] = if is_server(runs) { &SERVER_MEASURES } else { &MEASURES };
    let all: Vec<(Ratio, &str)> =
        measures.iter().filter_map(|(figure, name)| Some((ratio(runs, OURS, BASE, *figure)?, *name))).collect();
    let is_short = all.first()?.0.interval.is_none();
    let (equal, different): (Vec<_>, Vec<_>) = all.into_iter().partition(|(ratio, _)| is_equal(ratio));
    let mut parts: Vec<String> = different.iter().map(|(ratio, name)| difference(ratio, name)).collect();
    if let Some(((_, last), others)) = equal.split_last() {
        let others: Vec<&str> = others.iter().map(|(_, name)| *name).collect();
        let names = if others.is_empty() { (*last).to_owned() } else { format!("{} or {last}", others.join(", ")) };
        parts.push(format!("no {}difference in {names}", if is_short { "" } else { "clear " }));
    }
    let doubt = if is_short { " (too few rounds to be sure)" } else { "" };
    Some(format!("On Craton, compared with {BASE}: {}{doubt}.", parts.join(", ")))
}

fn is_equal(ratio: &Ratio) -> bool {
    (ratio.of_medians - 1.0).abs() < 0.005 || ratio.interval.is_some_and(|interval| !interval.is_clear())
}

fn difference(ratio: &Ratio, name: &str) -> String {
    let percent = |ratio: f64| (ratio - 1.0).abs() * 100.0;
    let direction = if ratio.of_medians < 1.0 { "less" } else { "more" };
    let countable = ["page faults", "requests per second"].contains(&name);
    let direction = if direction == "less" && countable { "fewer" } else { direction };
    let size = format!("{:.0}", percent(ratio.of_medians));
    let ends = ratio.interval.map(|i| (percent(i.low).min(percent(i.high)), percent(i.low).max(percent(i.high))));
    match ends.map(|(least, most)| (format!("{least:.0}"), format!("{most:.0}"))) {
        Some((least, most)) if least != most => format!("{size} % {direction} {name} (95 %: {least} to {most} %)"),
        _ => format!("{size} % {direction} {name}"),
    }
}

/// Names an allocator that served the runs on glibc instead. In a script most processes are shells
/// and clients on glibc, so one server on another allocator suffices.
fn own_allocator(measured: &Measured) -> Option<String> {
    let service = measured.service.get(BASE)?;
    let others = service.by.iter().filter(|(object, _)| !is_libc(object));
    let (object, served) = others.max_by_key(|(_, processes)| **processes)?;
    let whose = match service.processes {
        all if *served < all => format!("the malloc of {served} of {all} processes"),
        _ => "the program's malloc".to_owned(),
    };
    Some(format!(
        "{BASE}: {whose} is that of {object}, which the program brings along; if that is a separate library, \
         `env LD_PRELOAD=libc.so.6 craton compare …` compares with glibc's"
    ))
}

/// Names a program with Craton as Rust's global allocator, or linked with `libcraton.a`. A stripped
/// program does not show it.
fn contains_craton(command: &[OsString]) -> Option<String> {
    let program = command.first()?;
    let file = symbols::program(program)?;
    symbols::contains(&file, SEGMENT).then(|| {
        format!("{} contains Craton, which serves it in every row: compare a build without it", program.display())
    })
}

/// What Craton wrote in the first successful run; others repeat it.
fn complaints(runs: &[Run]) -> Vec<String> {
    let run = runs.iter().find(|run| run.allocator == OURS && run.status == Status::Ok);
    let lines = run.map(|run| run.stderr.as_str()).unwrap_or_default().lines();
    let mut said: Vec<String> = lines.filter(|line| line.starts_with(COMPLAINT)).map(plain).collect();
    said.sort_unstable();
    said.dedup();
    said.truncate(LAST_LINES);
    said
}

/// In no median; of each allocator's first, a reason or its last output.
fn failures(measured: &Measured, command: &[OsString]) -> String {
    let runs = &measured.runs;
    let failed: Vec<&Run> = runs.iter().filter(|run| run.status != Status::Ok).collect();
    if failed.is_empty() {
        return String::new();
    }
    let row =
        |run: &&Run| vec![format!("  {}", run.allocator), format!("round {}", run.index + 1), run.status.to_string()];
    let mut text =
        format!("\nruns that do not count:\n{}", table(&failed.iter().map(row).collect::<Vec<_>>(), &[0, 1, 2]));
    for allocator in allocators(runs) {
        let Some(first) = failed.iter().find(|run| run.allocator == allocator) else { continue };
        if first.status == Status::NotServed {
            text += &format!("\n{allocator}: {}\n", plain(&not_served(measured, allocator, command)));
        }
        if matches!(first.status, Status::NotReady(_)) {
            text += &wrap(&format!("\n{allocator}: {NOT_READY}\n"), WIDTH);
        }
        if !first.stderr.trim().is_empty() {
            text +=
                &format!("\nlast on standard error, {allocator}, round {}:\n{}", first.index + 1, end(&first.stderr));
        }
    }
    text
}

fn not_served(measured: &Measured, allocator: &str, command: &[OsString]) -> String {
    let service = measured.service.get(allocator);
    if let Some(name) = service.and_then(|service| service.largest_without.as_deref()) {
        return format!(
            "the largest process, {name}, ran without it: it is linked statically, or has another environment"
        );
    }
    let own = service.and_then(Service::mainly).filter(|object| !is_libc(object));
    match (own, command.first()) {
        (Some(object), _) => format!("no process used its malloc; they used that of {object}, which comes first"),
        (None, Some(program)) => {
            let why = program::why_not_served(program, "it empties its environment, or it never calls malloc");
            format!("no process used its malloc: {why}")
        }
        (None, None) => "no process used its malloc".to_owned(),
    }
}

fn is_libc(object: &str) -> bool {
    Path::new(object).file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc.so"))
}

/// Indented, without control characters.
fn end(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..]
        .iter()
        .map(|line| format!("  {}\n", plain(&line.replace('\t', "    "))))
        .collect()
}

#[cfg(test)]
mod tests;
