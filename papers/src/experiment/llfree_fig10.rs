//! `llfree-fig10`: what becomes of huge frames when memory is freed and allocated again at random.
//!
//! **What.** [`aging`](crate::frames::aging) on Craton's zone and on a buddy allocator: free huge frames after each turn, and the frames that
//! would have to be moved until as many are free as could be. In the mixed course Craton is told which blocks stay
//! (`craton`), or not (`craton-untold`); the buddy allocator has no use for it. `craton-strict` is the zone without claims. The
//! authors' code takes part where it was built, and is told in the same way (`llfree4-told`, `llfree32-told`), with their own
//! policies for blocks that stay and blocks that move, or not (`llfree4`, `llfree32`).
//!
//! **From.** LLFree §5.6 and figure 10; the mixed course is ours.
//!
//! **State.** Full: 125 GiB, 100 turns as in the paper. Quick: 4 GiB and as many turns. Two threads, or one if there is but one
//! processor.

use super::{Ask, Experiment, Findings, heading, no_use};
use crate::frames::aging::{Aging, Course, State};
use crate::frames::authors::{self, Classes, Trees};
use crate::frames::{Design, GIB, World};
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

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "llfree-fig10",
    about: "page frames: free huge frames and the cost of compaction over 100 turns of random frees and gets",
    answers: "LLFree figure 10, §5.6",
    run,
};

const FULL_GIB: usize = 125;
const QUICK_GIB: usize = 4;
const TURNS: usize = 100;
const MOST_THREADS: usize = 2;

/// Who plays a course: its name, the design, whether it is told what stays.
type Player = (&'static str, Design, bool);

const PLAYERS: [Player; 8] = [
    (OURS, Design::Craton, true),
    ("craton-untold", Design::Craton, false),
    ("craton-strict", Design::Strict, true),
    ("buddy", Design::Buddy, false),
    ("llfree4", Design::Authors(Trees::Four, Classes::Simple), false),
    ("llfree4-told", Design::Authors(Trees::Four, Classes::Movable), true),
    ("llfree32", Design::Authors(Trees::ThirtyTwo, Classes::Simple), false),
    ("llfree32-told", Design::Authors(Trees::ThirtyTwo, Classes::Movable), true),
];

/// The paper's cost after turns, as a part of the cost before the first, and its recovered huge frames.
const PAPER: &str = "\
the paper's figures, 125 GiB, after turns 0, 10, 50, 100
LLFree: cost 100, 35.1, 5.0, 4.3 %; recovered 0, 0, 15.2, 46.6 %
buddy:  cost 100, 99.4, 97.2, 96.7 %; recovered a single huge frame
";

/// A row of the document.
#[derive(Clone, Serialize)]
struct AgeRow {
    workload: &'static str,
    allocator: &'static str,
    turn: usize,
    free_huge: usize,
    possible_huge: usize,
    /// Of the huge frames that could be free, and were not at first, the part that is.
    recovered: f64,
    cost_frames: usize,
    /// As a part of the cost at first.
    cost: f64,
    pinned_huge: usize,
    ns_per_get: f64,
    ns_per_put: f64,
    status: String,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask)?;
    let frames = if ask.quick { QUICK_GIB } else { FULL_GIB } * GIB;
    let threads = processors().len().clamp(1, MOST_THREADS);
    let wanted = |course: &Course| ask.only.is_empty() || ask.only.iter().any(|only| only == course.name());
    let mut rows = Vec::new();
    let courses = Course::ALL.into_iter().filter(wanted);
    let all: Vec<(Course, Player)> = courses.flat_map(|course| PLAYERS.map(|player| (course, player))).collect();
    // Where nothing stays there is nothing to be told.
    let built = authors::here();
    let plays = |course, (name, design, _): Player| {
        let twice = name == "craton-untold" || name.ends_with("-told");
        let there = !matches!(design, Design::Authors(trees, _) if !built.contains(&trees));
        there && (course == Course::Mixed || !twice)
    };
    let all: Vec<_> = all.into_iter().filter(|(course, player)| plays(*course, *player)).collect();
    for (done, (course, (name, design, tells))) in all.iter().copied().enumerate() {
        if ask.stop.load(Relaxed) {
            break;
        }
        (ask.progress)(course.name(), Progress { allocator: name, round: Some(0), done, total: all.len() });
        let world = World { frames, order: 0, processors: threads };
        let job = Aging { course, frames, threads, turns: TURNS, tells };
        rows.extend(of_states(course, name, design.with(&world, job).and_then(|done| done)));
    }
    if rows.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    let mut document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    document.ratios = ratios(&document.rows);
    Ok(Findings {
        text: show(&document) + &authors::note(),
        pictures: pictures(&document),
        failed: document.rows.iter().filter(|row| row.status != "ok").count(),
        document: super::text(&document)?,
    })
}

fn check(ask: &Ask<'_>) -> Result<(), String> {
    let option = [(ask.peers_asked, "--peers"), (ask.runs.is_some(), "--runs")].into_iter().find(|(asked, _)| *asked);
    if let Some((_, option)) = option {
        return Err(no_use(option, &format!("{}, which ages allocators of frames once", EXPERIMENT.name)));
    }
    let names = Course::ALL.map(Course::name);
    match ask.only.iter().find(|only| !names.contains(&only.as_str())) {
        Some(unknown) => Err(format!("--only {unknown}: no such course here; there are: {}", names.join(", "))),
        None => Ok(()),
    }
}

fn of_states(course: Course, allocator: &'static str, states: Result<Vec<State>, String>) -> Vec<AgeRow> {
    let (states, status) = match states {
        Ok(states) => (states, "ok".to_owned()),
        Err(wrong) => (vec![State::default()], format!("failed: {wrong}")),
    };
    let first = states[0];
    let part = |some: usize, of: usize| if of == 0 { 0.0 } else { some as f64 / of as f64 };
    let row = |state: &State| AgeRow {
        workload: course.name(),
        allocator,
        turn: state.turn,
        free_huge: state.free_huge,
        possible_huge: state.possible_huge,
        recovered: part(
            state.free_huge.saturating_sub(first.free_huge),
            state.possible_huge.saturating_sub(first.free_huge),
        ),
        cost_frames: state.cost_frames,
        cost: part(state.cost_frames, first.cost_frames),
        pinned_huge: state.pinned_huge,
        ns_per_get: state.ns_per_get,
        ns_per_put: state.ns_per_put,
        status: status.clone(),
    };
    states.iter().map(row).collect()
}

/// A series: the rows of a player on a course.
fn series(rows: &[AgeRow]) -> impl Iterator<Item = &[AgeRow]> {
    rows.chunk_by(|a, b| (a.workload, a.allocator) == (b.workload, b.allocator))
}

/// What is compared of a series, at its end: less is better.
fn at_end(of: &[AgeRow]) -> Option<[(&'static str, f64); 4]> {
    let last = of.last().filter(|last| last.status == "ok")?;
    let pair = Spread::of(of.iter().filter(|row| row.turn > 0).map(|row| row.ns_per_get + row.ns_per_put))?;
    let unrecovered = last.possible_huge - last.free_huge;
    Some([
        ("cost", last.cost_frames as f64),
        ("unrecovered", unrecovered as f64),
        ("pinned", last.pinned_huge as f64),
        ("time", pair.median),
    ])
}

/// Craton's figures at the end as parts of others', on each course.
fn ratios(rows: &[AgeRow]) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    for ours in series(rows).filter(|of| of[0].allocator == OURS) {
        for other in series(rows).filter(|of| of[0].workload == ours[0].workload && of[0].allocator != OURS) {
            let (Some(mine), Some(its)) = (at_end(ours), at_end(other)) else { continue };
            for ((name, mine), (_, its)) in mine.into_iter().zip(its).filter(|(_, (_, its))| *its > 0.0) {
                ratios.insert(format!("{}_{name}_vs_{}", ours[0].workload, other[0].allocator), mine / its);
            }
        }
    }
    ratios
}

/// Turns that the table shows.
const SHOWN: [usize; 8] = [0, 1, 5, 10, 20, 50, 75, 100];

fn show(document: &Document<AgeRow>) -> String {
    let percent = |part: f64| format!("{:.2} %", part * 100.0);
    let columns: [Column<AgeRow>; 9] = [
        ("course", |row| row.workload.to_owned()),
        ("allocator", |row| row.allocator.to_owned()),
        ("turn", |row| row.turn.to_string()),
        ("free huge", |row| format!("{} of {}", row.free_huge, row.possible_huge)),
        ("recovered", |row| format!("{:.1} %", row.recovered * 100.0)),
        ("cost", |row| format!("{:.2} %", row.cost * 100.0)),
        ("huge with what stays", |row| row.pinned_huge.to_string()),
        ("get + put", |row| format!("{:.0} + {:.0} ns", row.ns_per_get, row.ns_per_put)),
        ("", |row| if row.status == "ok" { String::new() } else { row.status.clone() }),
    ];
    let shown = document.rows.iter().filter(|row| SHOWN.contains(&row.turn));
    let times: String = series(&document.rows)
        .filter_map(|of| Some((of, at_end(of)?)))
        .map(|(of, end)| {
            let cost = of.last().map_or(0.0, |row| row.cost);
            let name = format!("{}, {}", of[0].workload, of[0].allocator);
            format!("{name}: cost {} at the end; {:.0} ns for a get and a put\n", percent(cost), end[3].1)
        })
        .collect();
    let ratios: String = document.ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.4}\n")).collect();
    format!("{}\n{times}\n{ratios}\n{PAPER}", table_of(&columns, &[0, 1], shown))
}

/// What a picture shows of a row.
type Figure = fn(&AgeRow) -> f64;

fn pictures(document: &Document<AgeRow>) -> Vec<(String, String)> {
    let figures: [(&str, &str, Figure); 2] = [
        ("huge", "free huge frames, as a part of those that could be", |row| {
            row.free_huge as f64 / (row.possible_huge as f64).max(1.0)
        }),
        ("cost", "frames to move, as a part of those at first", |row| row.cost),
    ];
    let mut pictures = Vec::new();
    for course in Course::ALL {
        let of = |rows: &&[AgeRow]| rows[0].workload == course.name() && rows[0].status == "ok";
        if !series(&document.rows).any(|rows| of(&rows)) {
            continue;
        }
        for (name, label, figure) in figures {
            let line = |rows: &[AgeRow]| Line {
                name: rows[0].allocator.to_owned(),
                points: rows.iter().map(|row| Point::new(row.turn as f64, figure(row))).collect(),
            };
            let lines = Lines {
                heading: heading(
                    &format!("Huge frames as memory ages, {} course", course.name()),
                    "blocks are freed at random, and as many allocated, in each turn",
                    document,
                ),
                x: Axis::linear("turns", Unit::Count),
                y: Axis::linear(label, Unit::Part),
                series: series(&document.rows).filter(of).map(line).collect(),
                reference: None,
                width_px: 760.0,
            };
            pictures.push((format!("{}-{name}", course.name()), lines.svg()));
        }
    }
    pictures
}

#[cfg(test)]
mod tests;
