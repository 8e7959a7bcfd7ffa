//! One measurement in one process, and its line of JSON.
//!
//! **Units.** Nanoseconds for one operation on one thread: the mean over threads, then minimum and
//! median over repetitions. A first repetition warms the heap and does not count, but in
//! [`Pattern::Cold`].
//!
//! **Threads.** Before the common wait the first worker stores the last repetition's number, which
//! all read afterwards.

use super::calls::{self, Calls, Empty, System};
use super::loops::{Shared, Turn, Worker};
use super::pattern::Pattern;
use crate::summary::Spread;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const ENOUGH: Duration = Duration::from_millis(250);
const FEWEST: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// To count instructions from outside.
    None,
    Also,
    /// Likewise.
    Only,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub pattern: Pattern,
    pub size_bytes: usize,
    pub threads: usize,
    pub count: usize,
    /// A slow allocator may do fewer.
    pub repetitions: usize,
    pub with_loop: Loop,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub pattern: String,
    pub size_bytes: usize,
    pub threads: usize,
    pub operations: usize,
    pub ns_median: f64,
    pub ns_min: f64,
    pub loop_ns: Option<f64>,
    pub steps: Vec<(usize, f64)>,
    pub malloc_from: String,
}

impl Measurement {
    pub fn parse(text: &str) -> Result<Self, String> {
        let line = text.trim();
        let parsed: Self = serde_json::from_str(line).map_err(|e| {
            format!("{:?} is no result of craton-micro: {e}", line.chars().take(100).collect::<String>())
        })?;
        let positive = parsed.ns_median > 0.0 && parsed.ns_min > 0.0 && parsed.operations > 0;
        positive.then_some(parsed).ok_or_else(|| format!("a result of no time or no operations: {line}"))
    }
}

struct Timed {
    ns: Vec<f64>,
    operations: usize,
    steps: Vec<(usize, f64)>,
}

pub fn measure(request: &Request) -> Measurement {
    let timed = match request.with_loop {
        Loop::Only => time::<Empty>(&Request { threads: 1, ..request.clone() }),
        _ => time::<System>(request),
    };
    let loop_ns = (request.with_loop == Loop::Also)
        .then(|| Spread::of(time::<Empty>(&Request { threads: 1, ..request.clone() }).ns))
        .flatten()
        .map(|spread| spread.median);
    let spread = Spread::of(timed.ns).unwrap_or(Spread { median: 0.0, min: 0.0, max: 0.0 });
    Measurement {
        pattern: request.pattern.name(),
        size_bytes: request.size_bytes,
        threads: request.threads,
        operations: timed.operations,
        ns_median: spread.median,
        ns_min: spread.min,
        loop_ns,
        steps: timed.steps,
        malloc_from: calls::malloc_from(),
    }
}

fn time<C: Calls>(request: &Request) -> Timed {
    let shared = Shared::new(request.threads);
    if request.threads == 1 {
        // A second thread would lead the C library to longer paths.
        return summed(&[turns::<C>(request, &shared, 0)]);
    }
    let all = std::thread::scope(|scope| {
        let start = |index| {
            scope.spawn({
                let shared = &shared;
                move || turns::<C>(request, shared, index)
            })
        };
        let workers: Vec<_> = (0..request.threads).map(start).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker ends")).collect::<Vec<_>>()
    });
    summed(&all)
}

type Turns = (Vec<Turn>, Vec<(usize, f64)>);

fn turns<C: Calls>(request: &Request, shared: &Shared, index: usize) -> Turns {
    let repetitions = if request.pattern == Pattern::Cold { 0 } else { request.repetitions };
    let mut turns = Vec::with_capacity(repetitions + 1);
    let mut worker = Worker::<C>::new(request.pattern, request.size_bytes, shared, index);
    let start = Instant::now();
    for repetition in 0..=repetitions {
        if index == 0 && repetition > FEWEST && start.elapsed() > ENOUGH {
            shared.end_before(repetition);
        }
        shared.wait();
        if shared.is_over(repetition) {
            break;
        }
        turns.push(worker.turn(request.count));
    }
    (turns, std::mem::take(&mut worker.steps))
}

/// Without the warm-up unless it is the only one.
fn summed(all: &[Turns]) -> Timed {
    let repetitions = all.first().map_or(0, |(turns, _)| turns.len());
    let skip = usize::from(repetitions > 1);
    let mean = |repetition: usize| {
        let each = all.iter().map(|(turns, _)| turns[repetition].ns / turns[repetition].operations.max(1) as f64);
        each.sum::<f64>() / all.len() as f64
    };
    Timed {
        ns: (skip..repetitions).map(mean).collect(),
        operations: all.iter().flat_map(|(turns, _)| turns).map(|turn| turn.operations).sum(),
        steps: all.first().map(|(_, steps)| steps.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
