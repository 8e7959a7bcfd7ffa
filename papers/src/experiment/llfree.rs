//! What the experiments that time allocators of frames have in common.
//!
//! **What.** A [`Grid`] is what is measured: designs, orders, threads. Each round makes every allocator anew, in turns (A B C, A B C, …),
//! and does bulk, random and repeat with it. A [`TimeRow`] is a loop on a design, with the median over rounds and the least.
//! Besides: their table, ratios and pictures.
//!
//! **Units.** Nanoseconds for each operation and thread.
//!
//! **Failure.** What an allocator cannot do is a row with its status. Stopped early, rounds that were done count.

use super::{Ask, Findings, heading, no_use};
use crate::frames::loops::{Loop, Loops, Times};
use crate::frames::{Design, GIB, World, authors};
use craton_lab::document::Document;
use craton_lab::format::{Column, table_of};
use craton_lab::machine::processors;
use craton_lab::measure::Progress;
use craton_lab::picture::{Axis, Line, Lines, Point, Unit};
use craton_lab::ratios::{OURS, Ratios};
use craton_lab::summary::Spread;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// GiB that the frames stand for, in the full form and in the quick one.
pub const FULL_GIB: usize = 128;
pub const QUICK_GIB: usize = 4;
const FULL_ROUNDS: usize = 5;
const QUICK_ROUNDS: usize = 3;
/// Pairs of each thread in repeat.
const FULL_PAIRS: usize = 4_000_000;
const QUICK_PAIRS: usize = 200_000;
/// The fewest blocks of a thread.
const LEAST_BLOCKS: usize = 16;

/// What is measured.
pub struct Grid {
    pub designs: Vec<Design>,
    pub orders: Vec<u32>,
    pub threads: Vec<usize>,
}

/// A row of the document.
#[derive(Clone, Debug, Serialize)]
pub struct TimeRow {
    pub workload: &'static str,
    pub allocator: &'static str,
    pub order: u32,
    pub threads: usize,
    pub memory_bytes: u64,
    pub blocks: usize,
    pub rounds: usize,
    /// Medians over rounds, and the least of them.
    pub ns_per_get: Option<f64>,
    pub ns_per_get_min: Option<f64>,
    pub ns_per_put: Option<f64>,
    pub ns_per_put_min: Option<f64>,
    pub ns_per_pair: Option<f64>,
    pub ns_per_pair_min: Option<f64>,
    pub status: String,
}

/// A figure of a loop: of which, what it is called, where it is.
pub type Of = (Loop, &'static str, fn(&TimeRow) -> Option<f64>);

/// The figures that ratios and pictures are made of.
pub const FIGURES: [Of; 4] = [
    (Loop::Bulk, "get", |row| row.ns_per_get),
    (Loop::Bulk, "put", |row| row.ns_per_put),
    (Loop::Random, "put", |row| row.ns_per_put),
    (Loop::Repeat, "pair", |row| row.ns_per_pair),
];

/// Numbers of threads: powers of two up to all processors, and those.
pub fn threads() -> Vec<usize> {
    let all = processors().len().max(1);
    let mut threads: Vec<usize> = (0..).map(|power| 1 << power).take_while(|threads| *threads < all).collect();
    threads.push(all);
    threads
}

/// The loops that are asked for.
///
/// # Errors
/// An option that these experiments have no use for, or a loop that there is not.
fn loops(ask: &Ask<'_>, experiment: &str) -> Result<Vec<Loop>, String> {
    if ask.peers_asked {
        return Err(no_use("--peers", &format!("{experiment}, which compares allocators of frames")));
    }
    if let Some(unknown) = ask.only.iter().find(|only| Loop::ALL.iter().all(|of| of.name() != only.as_str())) {
        let names = Loop::ALL.map(Loop::name).join(", ");
        return Err(format!("--only {unknown}: no such loop here; there are: {names}"));
    }
    let wanted = |of: &Loop| ask.only.is_empty() || ask.only.iter().any(|only| only == of.name());
    Ok(Loop::ALL.into_iter().filter(wanted).collect())
}

/// Measures all of the grid.
///
/// # Errors
/// As [`loops`].
pub fn measure(ask: &Ask<'_>, experiment: &str, grid: &Grid) -> Result<Vec<TimeRow>, String> {
    let loops = loops(ask, experiment)?;
    let (gib, pairs) = if ask.quick { (QUICK_GIB, QUICK_PAIRS) } else { (FULL_GIB, FULL_PAIRS) };
    let rounds = ask.runs.unwrap_or(if ask.quick { QUICK_ROUNDS } else { FULL_ROUNDS });
    let most = grid.threads.iter().copied().max().unwrap_or(1);
    let total = grid.orders.len() * grid.threads.len() * rounds * grid.designs.len();
    let (mut rows, mut done) = (Vec::new(), 0);
    for (order, threads) in grid.orders.iter().flat_map(|order| grid.threads.iter().map(move |of| (*order, *of))) {
        let world = World { frames: gib * GIB, order, processors: threads };
        // Half of all memory when every processor takes part.
        let blocks = ((world.frames >> order) / (2 * most)).max(LEAST_BLOCKS);
        let job = Loops { of: &loops, order, threads, blocks, pairs };
        let mut found: Vec<Vec<Result<Vec<Times>, String>>> = vec![Vec::new(); grid.designs.len()];
        for round in 0..rounds {
            for (design, found) in grid.designs.iter().zip(&mut found) {
                if ask.stop.load(Relaxed) {
                    break;
                }
                let name = format!("order {order}, {threads} threads");
                (ask.progress)(&name, Progress { allocator: design.name(), round: Some(round), done, total });
                found.push(design.with(&world, job).and_then(|done| done));
                done += 1;
            }
        }
        for (design, found) in grid.designs.iter().zip(&found) {
            rows.extend(loops.iter().filter_map(|of| row(*design, &job, *of, gib, found)));
        }
    }
    if rows.is_empty() { Err("nothing was measured".to_owned()) } else { Ok(rows) }
}

fn row(design: Design, job: &Loops<'_>, of: Loop, gib: usize, found: &[Result<Vec<Times>, String>]) -> Option<TimeRow> {
    let wrong = found.iter().find_map(|round| round.as_ref().err());
    let good = || found.iter().flatten().flatten().filter(|times| times.of == of);
    let spread = |figure: fn(&Times) -> Option<f64>| Spread::of(good().filter_map(figure));
    let [get, put, pair] = [spread(|t| t.ns_per_get), spread(|t| t.ns_per_put), spread(|t| t.ns_per_pair)];
    let (median, min) = (|of: Option<Spread>| Some(of?.median), |of: Option<Spread>| Some(of?.min));
    (!found.is_empty()).then(|| TimeRow {
        workload: of.name(),
        allocator: design.name(),
        order: job.order,
        threads: job.threads,
        memory_bytes: (gib as u64) << 30,
        blocks: job.blocks,
        rounds: good().count(),
        ns_per_get: median(get),
        ns_per_get_min: min(get),
        ns_per_put: median(put),
        ns_per_put_min: min(put),
        ns_per_pair: median(pair),
        ns_per_pair_min: min(pair),
        status: wrong.map_or("ok".to_owned(), |wrong| format!("failed: {wrong}")),
    })
}

/// The geometric means of Craton's times as parts of each other design's: of each figure, and of all (`time_vs_…`).
pub fn ratios(rows: &[TimeRow]) -> BTreeMap<String, f64> {
    let mut logs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for ours in rows.iter().filter(|row| row.allocator == OURS) {
        let same = |row: &&TimeRow| {
            (row.workload, row.order, row.threads) == (ours.workload, ours.order, ours.threads) && row.allocator != OURS
        };
        for other in rows.iter().filter(same) {
            for (of, what, figure) in FIGURES.iter().filter(|(of, ..)| of.name() == ours.workload) {
                let (Some(mine), Some(its)) = (figure(ours), figure(other)) else { continue };
                for name in [format!("{}_{what}", of.name()), "time".to_owned()] {
                    logs.entry(format!("{name}_vs_{}", other.allocator)).or_default().push((mine / its).ln());
                }
            }
        }
    }
    let mean = |logs: Vec<f64>| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    logs.into_iter().map(|(name, logs)| (name, mean(logs))).collect()
}

/// Findings of rows, with a note on the paper's figures below the table.
///
/// # Errors
/// A number that the document cannot hold.
pub fn findings(
    ask: &Ask<'_>,
    experiment: &str,
    rows: Vec<TimeRow>,
    paper: &str,
    pictures: impl FnOnce(&Document<TimeRow>) -> Vec<(String, String)>,
) -> Result<Findings, String> {
    let failed = rows.iter().filter(|row| row.status != "ok").count();
    let mut document = Document::new(experiment, ask.command, &[], rows, &Ratios::default());
    document.ratios = ratios(&document.rows);
    let ratios: String = document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.3}\n")).collect();
    Ok(Findings {
        text: format!("{}\n{ratios}\n{paper}{}", show(&document.rows), authors::note()),
        pictures: pictures(&document),
        failed,
        document: super::text(&document)?,
    })
}

fn cell(median: Option<f64>, min: Option<f64>) -> String {
    match (median, min) {
        (Some(median), Some(min)) => format!("{median:.1} [{min:.1}]"),
        _ => String::new(),
    }
}

fn show(rows: &[TimeRow]) -> String {
    let columns: [Column<TimeRow>; 8] = [
        ("loop", |row| row.workload.to_owned()),
        ("order", |row| row.order.to_string()),
        ("threads", |row| row.threads.to_string()),
        ("allocator", |row| row.allocator.to_owned()),
        ("get", |row| cell(row.ns_per_get, row.ns_per_get_min)),
        ("put", |row| cell(row.ns_per_put, row.ns_per_put_min)),
        ("pair", |row| cell(row.ns_per_pair, row.ns_per_pair_min)),
        ("", |row| if row.status == "ok" { String::new() } else { row.status.clone() }),
    ];
    let mut sorted: Vec<&TimeRow> = rows.iter().collect();
    sorted.sort_by_key(|row| Loop::ALL.iter().position(|of| of.name() == row.workload));
    format!("ns for each operation, the median over rounds and [the least]\n\n{}", table_of(&columns, &[0, 3], sorted))
}

/// A picture of one figure: a line for each allocator, over what `x` says of a row.
pub fn picture(
    document: &Document<TimeRow>,
    (of, what, figure): Of,
    (title, x, at): (&str, Axis, fn(&TimeRow) -> f64),
    rows: impl Fn(&TimeRow) -> bool,
) -> String {
    let line = |design: Design| {
        let of = |row: &&TimeRow| row.allocator == design.name() && row.workload == of.name() && rows(row);
        let point = |row: &TimeRow| figure(row).map(|ns| Point::new(at(row), ns / 1e9));
        Line { name: design.name().to_owned(), points: document.rows.iter().filter(of).filter_map(point).collect() }
    };
    let memory = document.rows.first().map_or(0, |row| row.memory_bytes >> 30);
    Lines {
        heading: heading(
            &format!("{}: {what}{title}", of.name()),
            &format!("time of an operation on each thread, {memory} GiB; medians"),
            document,
        ),
        x,
        y: Axis::log(format!("time of a {what}"), Unit::Seconds),
        series: Design::ALL.into_iter().map(line).filter(|line| !line.points.is_empty()).collect(),
        reference: None,
        width_px: 760.0,
    }
    .svg()
}

/// Pictures of every figure at each order, over threads.
pub fn over_threads(document: &Document<TimeRow>, orders: &[u32]) -> Vec<(String, String)> {
    let of = |(figure, order): (Of, u32)| {
        let over = (
            &*format!(", order {order}"),
            Axis::log2("threads", Unit::Count),
            (|row| row.threads as f64) as fn(&TimeRow) -> f64,
        );
        let svg = picture(document, figure, over, |row| row.order == order);
        (format!("{}-{}-order{order}", figure.0.name(), figure.1), svg)
    };
    let done = |figure: &Of| document.rows.iter().any(|row| row.workload == figure.0.name());
    let figures = FIGURES.into_iter().filter(done);
    figures.flat_map(|figure| orders.iter().map(move |order| (figure, *order))).map(of).collect()
}

#[cfg(test)]
mod tests;
