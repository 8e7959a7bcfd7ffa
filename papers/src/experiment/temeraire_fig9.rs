//! `temeraire-fig9`: a program that allocates and frees half a mebibyte in a loop (TEMERAIRE Figure
//! 9, §4.4). A short process is subtracted from a long one, to exclude the start.

mod loops;

use super::series::{self, Case, Result};
use super::sheet::{Column, Row, Sheet, Show, Title, json, table};
use super::{Ask, Findings};
use craton_lab::format::seconds;
use craton_lab::measure::{Allocator, Run, Status};
use craton_lab::picture::{Axis, Estimate, Group, Unit};
use craton_lab::ratios::{BASE, OURS, Ratios, others};
use craton_lab::summary::{Figure, summarize};
use loops::{LOOPS, Played};
use std::ffi::OsString;

const SIMULATED_TURNS: u32 = 5000;
const CACHES: [&str; 2] = ["as it is", "no cache"];
const ROUNDS: usize = 5;
const SIZE_BYTES: u64 = 512 << 10;
/// `craton-micro` does a repetition that counts, and one before it.
const FULL_TURNS: u64 = 20_000;
const QUICK_TURNS: u64 = 2000;
const SHORT_TURNS: u64 = 1;

const LOOP_COLUMNS: [Column; 3] = [
    ("loop", "workload", Show::Text),
    ("calls a turn", "calls_per_turn", Show::Fixed(3, "")),
    ("hugepages over", "hugepages_over", Show::Plain),
];

struct Turn {
    allocator: String,
    wall_s: f64,
    faults: f64,
}

pub fn run(ask: &Ask<'_>) -> std::result::Result<Findings, String> {
    ask.refuse(&["--only"], "")?;
    let mut simulated = Vec::new();
    for (name, which) in LOOPS {
        for cache in CACHES {
            let no_cache = cache == CACHES[1];
            let name = if no_cache { format!("{name}, {cache}") } else { name.to_owned() };
            simulated.push((name, loops::play(which, SIMULATED_TURNS, no_cache)?));
        }
    }
    let program = (ask.tool)("craton-micro").map(OsString::from)?;
    let turns = ask.form(QUICK_TURNS, FULL_TURNS);
    let allocators: Vec<Allocator> = ask
        .allocators
        .iter()
        .filter(|a| !ask.quick || ask.peers_asked || [BASE, OURS].contains(&a.name.as_str()))
        .cloned()
        .collect();
    let cases = vec![case(&program, "loop", turns, true), case(&program, "start", SHORT_TURNS, false)];
    let results = series::measure(ask, &allocators, cases, ask.rounds(1, ROUNDS), 1);
    let figures = turn_figures(&results, turns);
    let mut rows: Vec<Row> = simulated.iter().map(|(name, played)| simulated_row(name, played)).collect();
    let loops = table(&LOOP_COLUMNS, &rows);
    rows.extend(results.first().into_iter().flat_map(|r| &r.runs).map(|run| real_row(run, &figures, turns)));
    let mut sheet = Sheet::new(ask, rows).compared(&allocators, &Ratios::default());
    draw(&mut sheet, &simulated, &figures);
    // Also processes that only start.
    let failed = results.iter().skip(1).flat_map(|of| &of.runs).filter(|run| run.status != Status::Ok).count();
    sheet.failed += failed;
    sheet.findings(show(&loops, &figures, &results))
}

fn case(program: &OsString, name: &str, turns: u64, prove: bool) -> Case {
    let numbers = [("--size", SIZE_BYTES), ("--count", turns), ("--repetitions", 1)];
    let options = numbers.iter().flat_map(|(option, value)| [OsString::from(option), value.to_string().into()]);
    let head = [program.clone(), "touched-pair".into(), "--loop".into(), "none".into()];
    Case { name: name.to_owned(), command: head.into_iter().chain(options).collect(), prove }
}

fn turn_figures(results: &[Result], turns: u64) -> Vec<Turn> {
    let [long, short] = results else { return Vec::new() };
    let names = others(&[&long.runs], "");
    let turn = |name: &&str| {
        let (long, short) = (summarize(&long.runs, name)?, summarize(&short.runs, name)?);
        let more = 2.0 * (turns - SHORT_TURNS) as f64;
        let of = |figure| Some((long.spread(figure)?.median - short.spread(figure)?.median).max(0.0) / more);
        Some(Turn { allocator: (*name).to_owned(), wall_s: of(Figure::Wall)?, faults: of(Figure::MinorFaults)? })
    };
    names.iter().filter_map(turn).collect()
}

fn simulated_row(name: &str, played: &Played) -> Row {
    json!({
        "allocator": "simulated",
        "workload": name,
        "turns": played.calls.len(),
        // Of a steady turn; hugepages' worth of memory beyond spans at the end.
        "calls_per_turn": played.steady_calls(),
        "hugepages_over": played.hugepages_over,
        "turn_s": null,
        "faults_per_turn": null,
        "status": "ok",
    })
}

fn real_row(run: &Run, figures: &[Turn], turns: u64) -> Row {
    let figure = figures.iter().find(|turn| turn.allocator == run.allocator);
    json!({
        "allocator": run.allocator,
        "workload": "drain",
        "turns": 2 * turns,
        "calls_per_turn": null,
        "hugepages_over": null,
        "turn_s": figure.map(|turn| turn.wall_s),
        "faults_per_turn": figure.map(|turn| turn.faults),
        "status": run.status.to_string(),
    })
}

fn show(loops: &str, figures: &[Turn], results: &[Result]) -> String {
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
        "in simulated memory, steady state of {SIMULATED_TURNS} turns\n\n{loops}\n\
         malloc, a write to each of 128 pages of 4 KiB, free: medians, without the start of the process\n\n{}",
        craton_lab::format::table(&rows, &[0])
    )
}

fn seconds_of_turn(s: f64) -> String {
    if s < 1e-3 { format!("{:.2} us", s * 1e6) } else { seconds(s) }
}

type OfTurn = fn(&Turn) -> f64;

fn draw(sheet: &mut Sheet, simulated: &[(String, Played)], figures: &[Turn]) {
    let bar = |(_, played): &(String, Played)| Some(Estimate::exact(played.steady_calls()));
    let group = |ways: &[(String, Played)]| Group { name: ways[0].0.clone(), bars: ways.iter().map(bar).collect() };
    let title = Title(
        "calls",
        "A loop that drains a hugepage asks nothing of the system",
        "in simulated memory; drain: 512 KiB taken and given back; pathological: 100 MiB and a page taken, a page taken \
                   that stays, the first given back; no cache: free hugepages lose their memory after each turn",
    );
    let axis = Axis::linear("calls to the system in a turn, steady state", Unit::Count);
    let groups = simulated.chunks(CACHES.len()).map(group).collect();
    sheet.bars(title, axis, &CACHES.map(str::to_owned), groups, None);
    let series: Vec<String> = figures.iter().map(|turn| turn.allocator.clone()).collect();
    let of: [(&str, &str, Axis, OfTurn); 2] = [
        ("time", "Time", Axis::linear("time of a turn", Unit::Seconds), |turn| turn.wall_s),
        ("faults", "Page faults", Axis::linear("page faults of a turn", Unit::Count), |turn| turn.faults),
    ];
    for (name, what, axis, figure) in of {
        let title = Title(
            name,
            &format!("{what} of a turn of the draining loop"),
            "malloc of 512 KiB, a write to each of its 128 pages, free; medians over rounds; less is better",
        );
        let bars = figures.iter().map(|turn| Some(Estimate::exact(figure(turn)))).collect();
        sheet.bars(title, axis, &series, vec![Group { name: "drain".to_owned(), bars }], None);
    }
}

#[cfg(test)]
mod tests;
