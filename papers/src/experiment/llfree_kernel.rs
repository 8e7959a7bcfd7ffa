//! Common parts of the experiments in a Linux kernel (docs/kernel.md): each line of the module's
//! log becomes part of a row. Times are emulated; instructions repeat.

use super::sheet::{Column, Fields, Map, Row, Sheet, Show, Title, by, distinct, json, lines, pairs};
use super::{Ask, llfree};
use craton_lab::picture::{Axis, Unit as AxisUnit};
use craton_lab::ratios::OURS;
use craton_lab::summary::Spread;
use std::path::Path;
use std::process::Command;

pub const BUDDY: &str = "buddy";
/// Besides 1 CPU.
const CPUS: usize = 2;
const ROUNDS: usize = 3;
/// CPUs of [`turns`].
const TURNS: usize = 8;
const QUICK_TURNS: usize = 2;
const MEMORY: u64 = 1 << 30;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Time,
    /// Of one CPU.
    Instructions,
}

pub fn guest(ask: &Ask<'_>, unit: Unit) -> Result<Vec<Row>, String> {
    let (cpus, name) = match unit {
        Unit::Time => (CPUS, "time"),
        Unit::Instructions => (1, "instructions"),
    };
    let rounds = ask.rounds(1, if unit == Unit::Time { ROUNDS } else { 1 });
    run(ask, name, &[&cpus.to_string()], &[("UNIT", name), ("ROUNDS", &rounds.to_string())], "done")
}

/// Of CPUs that take turns at each operation: instructions, those under the zone's lock, and cache
/// lines that move between CPUs. Counted, so that the host's processors do not matter.
pub fn turns(ask: &Ask<'_>) -> Result<Vec<Row>, String> {
    let cpus = ask.form(QUICK_TURNS, TURNS).to_string();
    let lines = run(ask, "turns", &["turns", &cpus], &[], "lines")?;
    Ok(lines.iter().filter(|line| line.word("step") == "lines").map(turn_row).collect())
}

fn turn_row(line: &Row) -> Row {
    let (cpus, instructions, locked) = (line.num("cpus"), line.num("instructions"), line.num("locked"));
    json!({
        "workload": line.word("name"),
        "call": line.word("call"),
        "allocator": line.word("allocator"),
        "order": line.int("order"),
        "threads": line.int("cpus"),
        "instructions": instructions,
        "locked": locked,
        "moved": line.num("moved"),
        // CPUs share the work, but for what the lock orders.
        "least": (instructions / cpus).max(locked),
    })
}

fn run(ask: &Ask<'_>, name: &str, of: &[&str], environment: &[(&str, &str)], last: &str) -> Result<Vec<Row>, String> {
    ask.refuse(&["--peers"], ", which compares allocators in a kernel")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/kernel-module.sh");
    if !script.exists() {
        return Err(format!("{} is not there: this experiment needs Craton's sources", script.display()));
    }
    ask.show("a Linux guest", name, 0, (0, 1));
    let said = Command::new(&script)
        .args(of)
        .envs(environment.iter().copied())
        .output()
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let lines: Vec<Row> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.iter().any(|line| line.word("step") == last) {
        return Ok(lines);
    }
    let why = String::from_utf8_lossy(&said.stderr);
    let why = why.lines().last().or_else(|| text.lines().last()).unwrap_or("the guest said nothing");
    Err(format!("the Linux guest did not come to its end: {why}"))
}

pub fn rows(lines: &[Row]) -> Vec<Row> {
    let bench: Vec<&Row> = lines.iter().filter(|line| line.word("step") == "bench").collect();
    let same = ["name", "allocator", "order", "cpus"];
    let mut rows: Vec<Row> = Vec::new();
    let mut seen: Vec<&Row> = Vec::new();
    for line in &bench {
        if seen.iter().any(|other| other.like(line, &same)) {
            continue;
        }
        seen.push(line);
        let spread = |figure: &str| {
            let of = bench.iter().filter(|other| other.like(line, &same)).map(|other| other.num(figure) / 1000.0);
            let spread = Spread::of(of.filter(|value| value.is_finite()));
            (spread.map(|of| of.median), spread.map(|of| of.min))
        };
        let [get, put, pair] = ["get_ps", "put_ps", "pair_ps"].map(spread);
        rows.push(json!({
            "workload": line.word("name"),
            "allocator": line.word("allocator"),
            "order": line.int("order"),
            "threads": line.int("cpus"),
            "memory_bytes": MEMORY,
            "ns_per_get": get.0,
            "ns_per_get_min": get.1,
            "ns_per_put": put.0,
            "ns_per_put_min": put.1,
            "ns_per_pair": pair.0,
            "ns_per_pair_min": pair.1,
        }));
    }
    rows
}

pub const TURN_COLUMNS: [Column; 9] = [
    ("loop", "workload", Show::Text),
    ("call", "call", Show::Text),
    ("order", "order", Show::Plain),
    ("CPUs", "threads", Show::Plain),
    ("allocator", "allocator", Show::Text),
    ("instructions", "instructions", Show::Fixed(1, "")),
    ("under the lock", "locked", Show::Fixed(1, "")),
    ("lines moved", "moved", Show::Fixed(2, "")),
    ("at least", "least", Show::Fixed(1, "")),
];

pub const TURNS_TEXT: &str = "\
means of an operation of CPUs that take turns at each operation: its instructions, those of them under the zone's\n\
lock, the cache lines that another CPU changed, and the instructions that pass until the next operation ends, at\n\
least: CPUs share all but what the lock orders. The time of moved lines comes on top.\n";

/// A picture of the instructions that pass for each operation, for every loop and order.
pub fn draw_turns(sheet: &mut Sheet, rows: &[Row]) {
    let place = |row: &Row| (row.word("workload").to_owned(), row.word("call").to_owned(), row.int("order"));
    for (of, call, order) in distinct(rows, place) {
        let title = Title(
            &format!("{of}-{call}-order{order}"),
            &format!("{of}: {call}, order {order}, in Linux"),
            "instructions that pass until the next operation of any CPU ends, at least",
        );
        let wanted = |row: &&Row| place(row) == (of.clone(), call.clone(), order);
        let series = lines(rows.iter().filter(wanted), by("allocator"), |row| (row.num("threads"), row.num("least")));
        sheet.lines(
            title,
            (Axis::log2("CPUs", AxisUnit::Count), Axis::log("instructions", AxisUnit::Count)),
            series,
            None,
        );
    }
}

/// How `least` of ours compares with the buddy allocator's, by CPUs.
pub fn turn_ratios(rows: &[Row]) -> Map {
    let who = |name: &'static str| move |row: &Row| row.word("allocator") == name;
    let mut ratios = Map::new();
    for (of, call, order, cpus) in distinct(rows, |row| {
        (row.word("workload").to_owned(), row.word("call").to_owned(), row.int("order"), row.int("threads"))
    }) {
        let here = |row: &&Row| {
            row.has(&[("workload", &of), ("call", &call)]) && row.int("order") == order && row.int("threads") == cpus
        };
        let of_these: Vec<Row> = rows.iter().filter(here).cloned().collect();
        if let [one] = pairs(&of_these, "least", (&who(OURS), &who(BUDDY)), &["threads"])[..] {
            ratios.insert(format!("{of}_{call}_order{order}_cpus{cpus}_least_vs_{BUDDY}"), one);
        }
    }
    ratios
}

/// The buddy allocator's by ours.
pub fn ratios(rows: &[Row], unit: Unit) -> Map {
    let suffix = if unit == Unit::Time { "time" } else { "instructions" };
    let of = |(name, ratio): (String, f64)| {
        (name.replace("time_vs_", "all_vs_").replace(&format!("_vs_{BUDDY}"), &format!("_{suffix}_vs_{BUDDY}")), ratio)
    };
    llfree::ratios(rows).into_iter().map(of).collect()
}

pub fn is_ours(row: &Row) -> bool {
    row.word("allocator") == OURS
}

#[cfg(test)]
mod tests;
