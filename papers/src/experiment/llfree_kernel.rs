//! Common parts of the experiments in a Linux kernel (docs/kernel.md): each line of the module's
//! log becomes part of a row. Times are emulated; instructions, of one CPU, repeat.

use super::sheet::{Fields, Row, json};
use super::{Ask, llfree};
use craton_lab::ratios::OURS;
use craton_lab::summary::Spread;
use std::path::Path;
use std::process::Command;

pub const BUDDY: &str = "buddy";
/// Besides 1 CPU.
const CPUS: usize = 2;
const ROUNDS: usize = 3;
const MEMORY: u64 = 1 << 30;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Time,
    /// Of one CPU.
    Instructions,
}

pub fn guest(ask: &Ask<'_>, unit: Unit) -> Result<Vec<Row>, String> {
    ask.refuse(&["--peers"], ", which compares allocators in a kernel")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/kernel-module.sh");
    if !script.exists() {
        return Err(format!("{} is not there: this experiment needs Craton's sources", script.display()));
    }
    let (cpus, name) = match unit {
        Unit::Time => (CPUS, "time"),
        Unit::Instructions => (1, "instructions"),
    };
    ask.show("a Linux guest", name, 0, (0, 1));
    let said = Command::new(&script)
        .arg(cpus.to_string())
        .env("UNIT", name)
        .env("ROUNDS", ask.rounds(1, if unit == Unit::Time { ROUNDS } else { 1 }).to_string())
        .output()
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let lines: Vec<Row> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.iter().any(|line| line.word("step") == "done") {
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

/// The buddy allocator's by ours.
pub fn ratios(rows: &[Row], unit: Unit) -> super::sheet::Map {
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
