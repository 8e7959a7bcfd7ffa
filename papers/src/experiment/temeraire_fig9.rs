//! `temeraire-fig9`: a program that takes half a mebibyte and gives it back, over and over.
//!
//! **What.** In simulated memory: the calls to the system that a turn of the loop costs, with the cache of hugepages and
//! without it; also of the loop of §4.4, which strands a hugepage each turn if it is packed badly. Then the real loop through
//! malloc and free on each allocator, every page written to: time and page faults of a turn.
//!
//! **From.** TEMERAIRE Figure 9 and §4.4.
//!
//! **State.** Real turns: a short process is taken off a long one, so that a start counts for nothing. Full: five rounds.
//! Quick: one, glibc and Craton alone, unless others are asked for.

mod loops;

use super::series::{self, Case, Result};
use super::{Ask, Experiment, Findings};
use craton_lab::document::Document;
use craton_lab::format::{Column, seconds, table, table_of};
use craton_lab::measure::{Allocator, Run};
use craton_lab::picture::{Axis, Bars, Direction, Estimate, Group, Unit};
use craton_lab::ratios::{BASE, OURS, Ratios, others};
use craton_lab::summary::{Figure, summarize};
use loops::{LOOPS, Played};
use serde::Serialize;
use std::ffi::OsString;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-fig9",
    about: "a loop that drains a hugepage each turn: calls to the system, time and page faults",
    answers: "TEMERAIRE figure 9; the loop of §4.4",
    run,
};

const SIMULATED_TURNS: u32 = 5000;
/// The heap as it is, and one that keeps no free hugepage.
const CACHES: [&str; 2] = ["as it is", "no cache"];
const ROUNDS: usize = 5;
const SIZE_BYTES: u64 = 512 << 10;
/// Turns of a repetition; `craton-micro` does one repetition that counts, and one before it.
const FULL_TURNS: u64 = 20_000;
const QUICK_TURNS: u64 = 2000;
const SHORT_TURNS: u64 = 1;

/// A row of the document.
#[derive(Serialize)]
struct LoopRow {
    /// `simulated`, or the allocator.
    allocator: String,
    workload: String,
    turns: u64,
    /// Calls to the system for a turn in steady state; simulated loops alone.
    calls_per_turn: Option<f64>,
    /// Hugepages' worth of memory beyond what is in spans at the end; simulated loops alone.
    hugepages_over: Option<u64>,
    turn_s: Option<f64>,
    faults_per_turn: Option<f64>,
    status: String,
}

/// What a turn took on an allocator.
struct Turn {
    allocator: String,
    wall_s: f64,
    faults: f64,
}

fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    if !ask.only.is_empty() {
        return Err(super::no_use("--only", EXPERIMENT.name));
    }
    let mut simulated = Vec::new();
    for (name, which) in LOOPS {
        for cache in CACHES {
            let no_cache = cache == CACHES[1];
            let name = if no_cache { format!("{name}, {cache}") } else { name.to_owned() };
            simulated.push((name, loops::play(which, SIMULATED_TURNS, no_cache)?));
        }
    }
    let program = (ask.tool)("craton-micro").map(OsString::from)?;
    let turns = if ask.quick { QUICK_TURNS } else { FULL_TURNS };
    let allocators: Vec<Allocator> = ask
        .allocators
        .iter()
        .filter(|a| !ask.quick || ask.peers_asked || [BASE, OURS].contains(&a.name.as_str()))
        .cloned()
        .collect();
    let rounds = ask.runs.unwrap_or(if ask.quick { 1 } else { ROUNDS });
    let cases = vec![case(&program, "loop", turns, true), case(&program, "start", SHORT_TURNS, false)];
    let results = series::measure(ask, &allocators, cases, rounds, 1);
    let figures = turn_figures(&results, turns);
    let mut rows: Vec<LoopRow> = simulated.iter().map(|(name, played)| simulated_row(name, played)).collect();
    rows.extend(results.first().into_iter().flat_map(|r| &r.runs).map(|run| real_row(run, &figures, turns)));
    let document = Document::new(EXPERIMENT.name, ask.command, &allocators, rows, &Ratios::default());
    Ok(Findings {
        text: show(&simulated, &figures, &results),
        pictures: vec![
            ("calls".to_owned(), calls_picture(&simulated, &document)),
            ("time".to_owned(), time_picture(&figures, &document)),
            ("faults".to_owned(), faults_picture(&figures, &document)),
        ],
        failed: Result::failed(&results),
        document: super::text(&document)?,
    })
}

/// Processes of so many turns and as many before them.
fn case(program: &OsString, name: &str, turns: u64, prove: bool) -> Case {
    let numbers = [("--size", SIZE_BYTES), ("--count", turns), ("--repetitions", 1)];
    let options = numbers.iter().flat_map(|(option, value)| [OsString::from(option), value.to_string().into()]);
    let head = [program.clone(), "touched-pair".into(), "--loop".into(), "none".into()];
    Case { name: name.to_owned(), command: head.into_iter().chain(options).collect(), prove }
}

/// Long processes less short ones, for each turn, by allocator.
fn turn_figures(results: &[Result], turns: u64) -> Vec<Turn> {
    let [long, short] = results else { return Vec::new() };
    let names = others(&[&long.runs], "");
    let turn = |name: &&str| {
        let (long, short) = (summarize(&long.runs, name)?, summarize(&short.runs, name)?);
        // The repetition that counts and the one before it.
        let more = 2.0 * (turns - SHORT_TURNS) as f64;
        let of = |figure| Some((long.spread(figure)?.median - short.spread(figure)?.median).max(0.0) / more);
        Some(Turn { allocator: (*name).to_owned(), wall_s: of(Figure::Wall)?, faults: of(Figure::MinorFaults)? })
    };
    names.iter().filter_map(turn).collect()
}

fn simulated_row(name: &str, played: &Played) -> LoopRow {
    LoopRow {
        allocator: "simulated".to_owned(),
        workload: name.to_owned(),
        turns: played.calls.len() as u64,
        calls_per_turn: Some(played.steady_calls()),
        hugepages_over: Some(played.hugepages_over),
        turn_s: None,
        faults_per_turn: None,
        status: "ok".to_owned(),
    }
}

fn real_row(run: &Run, figures: &[Turn], turns: u64) -> LoopRow {
    let figure = figures.iter().find(|turn| turn.allocator == run.allocator);
    LoopRow {
        allocator: run.allocator.clone(),
        workload: "drain".to_owned(),
        turns: 2 * turns,
        calls_per_turn: None,
        hugepages_over: None,
        turn_s: figure.map(|turn| turn.wall_s),
        faults_per_turn: figure.map(|turn| turn.faults),
        status: run.status.to_string(),
    }
}

fn show(simulated: &[(String, Played)], figures: &[Turn], results: &[Result]) -> String {
    let columns: [Column<(String, Played)>; 3] = [
        ("loop", |(name, _)| name.clone()),
        ("calls a turn", |(_, played)| format!("{:.3}", played.steady_calls())),
        ("hugepages over", |(_, played)| played.hugepages_over.to_string()),
    ];
    let simulated = table_of(&columns, &[0], simulated);
    let mut rows = vec![["", "a turn", "faults a turn"].map(str::to_owned).to_vec()];
    for turn in figures {
        rows.push(vec![turn.allocator.clone(), seconds_of_turn(turn.wall_s), format!("{:.2}", turn.faults)]);
    }
    for run in results.iter().flat_map(|r| &r.runs) {
        if !figures.iter().any(|turn| turn.allocator == run.allocator) && !rows.iter().any(|r| r[0] == run.allocator) {
            rows.push(vec![run.allocator.clone(), run.status.to_string(), String::new()]);
        }
    }
    format!(
        "in simulated memory, steady state of {SIMULATED_TURNS} turns\n\n{simulated}\n\
         malloc, a write to each of 128 pages of 4 KiB, free: medians, without the start of the process\n\n{}",
        table(&rows, &[0])
    )
}

fn seconds_of_turn(s: f64) -> String {
    if s < 1e-3 { format!("{:.2} us", s * 1e6) } else { seconds(s) }
}

fn calls_picture(simulated: &[(String, Played)], document: &Document<LoopRow>) -> String {
    let bar = |(_, played): &(String, Played)| Some(Estimate::exact(played.steady_calls()));
    let group = |ways: &[(String, Played)]| Group { name: ways[0].0.clone(), bars: ways.iter().map(bar).collect() };
    Bars {
        heading: super::heading(
            "A loop that drains a hugepage asks nothing of the system",
            "in simulated memory; drain: 512 KiB taken and given back; pathological: 100 MiB and a page taken, a page taken \
             that stays, the first given back; no cache: free hugepages lose their memory after each turn",
            document,
        ),
        axis: Axis::linear("calls to the system in a turn, steady state", Unit::Count),
        series: CACHES.map(str::to_owned).to_vec(),
        groups: simulated.chunks(CACHES.len()).map(group).collect(),
        reference: None,
        direction: Direction::Right,
        width_px: 760.0,
    }
    .svg()
}

fn bars(figures: &[Turn], title: &str, axis: Axis, of: fn(&Turn) -> f64, document: &Document<LoopRow>) -> String {
    Bars {
        heading: super::heading(
            title,
            "malloc of 512 KiB, a write to each of its 128 pages, free; medians over rounds; less is better",
            document,
        ),
        axis,
        series: figures.iter().map(|turn| turn.allocator.clone()).collect(),
        groups: vec![Group {
            name: "drain".to_owned(),
            bars: figures.iter().map(|turn| Some(Estimate::exact(of(turn)))).collect(),
        }],
        reference: None,
        direction: Direction::Right,
        width_px: 760.0,
    }
    .svg()
}

fn time_picture(figures: &[Turn], document: &Document<LoopRow>) -> String {
    let axis = Axis::linear("time of a turn", Unit::Seconds);
    bars(figures, "Time of a turn of the draining loop", axis, |turn| turn.wall_s, document)
}

fn faults_picture(figures: &[Turn], document: &Document<LoopRow>) -> String {
    let axis = Axis::linear("page faults of a turn", Unit::Count);
    bars(figures, "Page faults of a turn of the draining loop", axis, |turn| turn.faults, document)
}

#[cfg(test)]
mod tests;
