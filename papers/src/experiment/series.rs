//! Measures several commands, each on all allocators. An allocator that does not serve becomes
//! one row with the reason.

use super::Ask;
use super::sheet::{Row, Sheet};
use crate::real::{self, REAL, Real, Size};
use craton_lab::document;
use craton_lab::measure::{self, Allocator, Plan, Progress, Run, Status};
use craton_lab::ratios::{OURS, Ratios};
use craton_lab::scratch::Scratch;
use std::cell::Cell;
use std::ffi::OsString;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(600);

pub struct Case {
    pub name: String,
    pub command: Vec<OsString>,
    /// Else [`prove`] did for all.
    pub prove: bool,
}

#[derive(Clone, Debug)]
pub struct Result {
    pub name: String,
    pub runs: Vec<Run>,
}

impl Result {
    pub fn rows_with(results: &[Self], more: impl Fn(&Self, Row) -> Row) -> Vec<Row> {
        let row = |of: &Self, run| serde_json::to_value(document::Row::new(&of.name, run)).unwrap_or_default();
        results.iter().flat_map(|of| of.runs.iter().map(|run| more(of, row(of, run))).collect::<Vec<_>>()).collect()
    }

    pub fn sheet(ask: &Ask<'_>, allocators: &[Allocator], results: &[Self]) -> std::result::Result<Sheet, String> {
        let ratios = Ratios::of(&Self::runs(results), OURS);
        Ok(Sheet::new(ask, Self::rows_with(results, |_, row| row)).measured()?.compared(allocators, &ratios))
    }

    pub fn runs(results: &[Self]) -> Vec<&[Run]> {
        results.iter().map(|result| result.runs.as_slice()).collect()
    }
}

pub fn status(runs: &[Run], allocator: &str) -> String {
    let first = runs.iter().find(|run| run.allocator == allocator && run.status != Status::Ok);
    first.map_or("-".to_owned(), |run| run.status.to_string())
}

pub fn prove(ask: &Ask<'_>, command: Vec<OsString>) -> (Vec<Allocator>, Vec<Run>) {
    let plan = Plan { command, allocators: ask.allocators.to_vec(), runs: 0, warmup: 1, prove: true, ..plan(ask) };
    let measured = measure::measure(&Plan { progress: &|now| (ask.progress)("proof", now), ..plan });
    let serves = |allocator: &&Allocator| !measured.runs.iter().any(|run| run.allocator == allocator.name);
    (ask.allocators.iter().filter(serves).cloned().collect(), measured.runs)
}

pub fn measure(ask: &Ask<'_>, allocators: &[Allocator], cases: Vec<Case>, runs: usize, warmup: usize) -> Vec<Result> {
    let rounds = |case: &Case| warmup.max(usize::from(case.prove)) + runs;
    let total: usize = cases.iter().map(|case| rounds(case) * allocators.len()).sum();
    let before = Cell::new(0);
    let mut results = Vec::new();
    for case in cases {
        let progress = |now: Progress<'_>| {
            (ask.progress)(&case.name, Progress { done: before.get() + now.done, total, ..now });
        };
        let plan = Plan {
            command: case.command.clone(),
            allocators: allocators.to_vec(),
            runs,
            warmup,
            prove: case.prove,
            progress: &progress,
            ..plan(ask)
        };
        let measured = measure::measure(&plan).runs;
        before.set(before.get() + rounds(&case) * allocators.len());
        if !measured.is_empty() {
            results.push(Result { name: case.name, runs: measured });
        }
        if ask.stopped() {
            break;
        }
    }
    results
}

fn plan<'a>(ask: &'a Ask<'_>) -> Plan<'a> {
    Plan {
        command: Vec::new(),
        allocators: Vec::new(),
        runs: 0,
        warmup: 0,
        prove: false,
        processors: Vec::new(),
        timeout: Some(TIMEOUT),
        server: None,
        stop: ask.stop,
        progress: &|_| {},
    }
}

pub fn real_cases(wanted: impl Fn(&Real) -> bool) -> (Vec<Case>, String) {
    let (mut cases, mut missing) = (Vec::new(), String::new());
    for real in REAL.iter().filter(|real| wanted(real)) {
        match real.available() {
            Ok(()) => cases.push(Case { name: real.name.to_owned(), command: Vec::new(), prove: true }),
            Err(why) => missing += &format!("not measured: {why}\n"),
        }
    }
    (cases, missing)
}

/// Inputs of cases without a command. Removes failed cases; returns lines about them.
pub fn prepare(ask: &Ask<'_>, cases: &mut Vec<Case>, scratch: &Scratch, size: Size) -> String {
    let mut missing = String::new();
    for case in cases.iter_mut().filter(|case| case.command.is_empty()) {
        let Some(real) = real::find(&case.name) else { continue };
        (ask.progress)(&format!("inputs of {}", case.name), Progress { allocator: "", round: None, done: 0, total: 0 });
        match real::prepare(&scratch.path().join(real.name), real, size) {
            Ok(command) => case.command = command,
            Err(why) => missing += &format!("not measured: {why}\n"),
        }
    }
    cases.retain(|case| !case.command.is_empty());
    missing
}
