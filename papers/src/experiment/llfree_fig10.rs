//! `llfree-fig10`: huge frames under random frees and allocations ([`aging`](crate::frames::aging);
//! LLFree §5.6, figure 10; the mixed course is ours). Only the mixed course gives hints which
//! blocks stay.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, json, lines, percent, runs, table};
use super::{Ask, Findings};
use crate::frames::aging::{Aging, Course, State};
use crate::frames::authors::{self, Classes};
use crate::frames::{Design, GIB, World};
use craton_lab::machine::processors;
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::OURS;
use craton_lab::summary::Spread;

const FULL_GIB: usize = 125;
const QUICK_GIB: usize = 4;
const TURNS: usize = 100;
const MOST_THREADS: usize = 2;

/// Name, design, whether it gets hints.
type Player = (&'static str, Design, bool);

const PLAYERS: [Player; 9] = [
    (OURS, Design::Craton, true),
    ("craton-untold", Design::Craton, false),
    ("craton-strict", Design::Strict, true),
    ("craton-paper", Design::Paper, true),
    ("buddy", Design::Buddy, false),
    ("llfree4", Design::Authors(4, Classes::Simple), false),
    ("llfree4-told", Design::Authors(4, Classes::Movable), true),
    ("llfree32", Design::Authors(32, Classes::Simple), false),
    ("llfree32-told", Design::Authors(32, Classes::Movable), true),
];

const PAPER: &str = "\
the paper's figures, 125 GiB, after turns 0, 10, 50, 100
LLFree: cost 100, 35.1, 5.0, 4.3 %; recovered 0, 0, 15.2, 46.6 %
buddy:  cost 100, 99.4, 97.2, 96.7 %; recovered a single huge frame
";

const COLUMNS: [Column; 9] = [
    ("course", "workload", Show::Text),
    ("allocator", "allocator", Show::Text),
    ("turn", "turn", Show::Plain),
    ("free huge", "", Show::By(|row| format!("{} of {}", row.int("free_huge"), row.int("possible_huge")))),
    ("recovered", "recovered", Show::Percent(1)),
    ("cost", "cost", Show::Percent(2)),
    ("huge with what stays", "pinned_huge", Show::Plain),
    ("get + put", "", Show::By(|row| format!("{:.0} + {:.0} ns", row.num("ns_per_get"), row.num("ns_per_put")))),
    ("", "status", Show::Status),
];

const SERIES: [&str; 2] = ["workload", "allocator"];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    ask.refuse(&["--peers", "--runs"], ", which ages allocators of frames once")?;
    ask.known("course", &Course::ALL.map(Course::name))?;
    let frames = ask.form(QUICK_GIB, FULL_GIB) * GIB;
    let threads = processors().len().clamp(1, MOST_THREADS);
    let built = authors::here();
    let plays = |course, (name, design, _): Player| {
        let twice = name == "craton-untold" || name.ends_with("-told");
        let there = !matches!(design, Design::Authors(trees, _) if !built.contains(&trees));
        there && (course == Course::Mixed || !twice)
    };
    let courses = Course::ALL.into_iter().filter(|course| ask.wants(course.name()));
    let all = courses.flat_map(|course| PLAYERS.map(|player| (course, player)));
    let all: Vec<(Course, Player)> = all.filter(|(course, player)| plays(*course, *player)).collect();
    let mut rows = Vec::new();
    for (done, (course, (name, design, tells))) in all.iter().copied().enumerate().take_while(|_| !ask.stopped()) {
        ask.show(course.name(), name, 0, (done, all.len()));
        let world = World { frames, order: 0, processors: threads };
        let job = Aging { course, frames, threads, turns: TURNS, tells };
        rows.extend(of_states(course, name, design.with(&world, job).and_then(|done| done)));
    }
    let mut sheet = Sheet::new(ask, rows).measured()?;
    let ratios = sheet.ratios(ratios, 4);
    draw(&mut sheet);
    let text = format!("{}\n{ratios}\n{PAPER}{}", show(sheet.rows()), authors::note());
    sheet.findings(text)
}

fn of_states(course: Course, allocator: &str, states: Result<Vec<State>, String>) -> Vec<Row> {
    let (states, status) = match states {
        Ok(states) => (states, "ok".to_owned()),
        Err(wrong) => (vec![State::default()], format!("failed: {wrong}")),
    };
    let first = states[0];
    let part = |some: usize, of: usize| if of == 0 { 0.0 } else { some as f64 / of as f64 };
    let freed = |huge: usize| huge.saturating_sub(first.free_huge);
    let row = |state: &State| {
        json!({
            "workload": course.name(),
            "allocator": allocator,
            "turn": state.turn,
            "free_huge": state.free_huge,
            "possible_huge": state.possible_huge,
            // Of those that could be free, but were not at first.
            "recovered": part(freed(state.free_huge), freed(state.possible_huge)),
            "cost_frames": state.cost_frames,
            "cost": part(state.cost_frames, first.cost_frames),
            "pinned_huge": state.pinned_huge,
            "ns_per_get": state.ns_per_get,
            "ns_per_put": state.ns_per_put,
            "status": status,
        })
    };
    states.iter().map(row).collect()
}

/// Less is better.
fn at_end(of: &[Row]) -> Option<[(&'static str, f64); 4]> {
    let last = of.last().filter(|last| last.is_ok())?;
    let turns = of.iter().filter(|row| row.int("turn") > 0);
    let pair = Spread::of(turns.map(|row| row.num("ns_per_get") + row.num("ns_per_put")))?;
    Some([
        ("cost", last.num("cost_frames")),
        ("unrecovered", last.num("possible_huge") - last.num("free_huge")),
        ("pinned", last.num("pinned_huge")),
        ("time", pair.median),
    ])
}

fn ratios(rows: &[Row]) -> Map {
    let mut ratios = Map::new();
    for ours in runs(rows, &SERIES).filter(|of| of[0].word("allocator") == OURS) {
        for other in
            runs(rows, &SERIES).filter(|of| of[0].like(&ours[0], &SERIES[..1]) && !of[0].like(&ours[0], &SERIES))
        {
            let (Some(mine), Some(its)) = (at_end(ours), at_end(other)) else { continue };
            for ((name, mine), (_, its)) in mine.into_iter().zip(its).filter(|(_, (_, its))| *its > 0.0) {
                let (course, other) = (ours[0].word("workload"), other[0].word("allocator"));
                ratios.insert(format!("{course}_{name}_vs_{other}"), mine / its);
            }
        }
    }
    ratios
}

const SHOWN: [u64; 8] = [0, 1, 5, 10, 20, 50, 75, 100];

fn show(rows: &[Row]) -> String {
    let shown = rows.iter().filter(|row| SHOWN.contains(&row.int("turn")));
    let end = |of: &[Row]| {
        let (end, cost) = (at_end(of)?, percent(of.last()?.num("cost"), 2));
        let name = format!("{}, {}", of[0].word("workload"), of[0].word("allocator"));
        Some(format!("{name}: cost {cost} at the end; {:.0} ns for a get and a put\n", end[3].1))
    };
    let times: String = runs(rows, &SERIES).filter_map(end).collect();
    format!("{}\n{times}", table(&COLUMNS, shown))
}

type Figure = fn(&Row) -> f64;

fn draw(sheet: &mut Sheet) {
    let figures: [(&str, &str, Figure); 2] = [
        ("huge", "free huge frames, as a part of those that could be", |row| {
            row.num("free_huge") / row.num("possible_huge").max(1.0)
        }),
        ("cost", "frames to move, as a part of those at first", |row| row.num("cost")),
    ];
    for course in Course::ALL.map(Course::name) {
        let of = |row: &&Row| row.word("workload") == course && row.is_ok();
        let rows: Vec<Row> = sheet.rows().iter().filter(of).cloned().collect();
        if rows.is_empty() {
            continue;
        }
        for (name, label, figure) in figures {
            let title = Title(
                &format!("{course}-{name}"),
                &format!("Huge frames as memory ages, {course} course"),
                "blocks are freed at random, and as many allocated, in each turn",
            );
            let series = lines(&rows, by("allocator"), |row| (row.num("turn"), figure(row)));
            sheet.lines(title, (Axis::linear("turns", Unit::Count), Axis::linear(label, Unit::Part)), series, None);
        }
    }
}

#[cfg(test)]
mod tests;
