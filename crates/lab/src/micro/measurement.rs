//! One measurement in one process, and the line that it becomes.
//!
//! **What.** [`Request`] is what `craton-micro` is asked for; [`measure`] does it and yields a [`Measurement`], which the
//! program prints as one line of JSON and the driver reads back.
//!
//! **Units.** Nanoseconds of elapsed time for one operation on one thread: the mean over the threads of a repetition;
//! then the smallest and the median over the repetitions.
//!
//! **Cost.** A first repetition warms the heap and does not count. [`Pattern::Cold`] has one repetition only. Where the
//! allocator is so slow that [`ENOUGH`] is over, no more than [`FEWEST`] repetitions count.
//!
//! **Threads.** They agree on the end: the first worker puts the number of the last repetition down before it waits for
//! the others at the next one, and all look after that wait.
//!
//! **Failure.** A line that is none is an error with the line in it.

use super::calls::{self, Calls, Empty, System};
use super::loops::{Shared, Turn, Worker};
use super::pattern::Pattern;
use crate::summary::Spread;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// When this time is over, there are enough repetitions.
const ENOUGH: Duration = Duration::from_millis(250);
/// Repetitions that count, unless fewer are asked for.
const FEWEST: usize = 2;

/// What to do about the loop around the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Only the allocator's functions are called: for counting instructions from outside.
    None,
    /// The loop is measured too, with empty functions.
    Also,
    /// Only empty functions are called: for counting the loop's instructions from outside.
    Only,
}

/// What a process measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is done.
    pub pattern: Pattern,
    /// The size of an object, in bytes.
    pub size_bytes: usize,
    /// Threads, at least 1.
    pub threads: usize,
    /// Operations of each thread in one repetition.
    pub count: usize,
    /// Repetitions that count, at least 1; a slow allocator may do fewer.
    pub repetitions: usize,
    /// What to do about the loop.
    pub with_loop: Loop,
}

/// The result of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The pattern's name.
    pub pattern: String,
    /// The size of an object, in bytes.
    pub size_bytes: usize,
    /// Threads.
    pub threads: usize,
    /// Operations that all threads did, warm-up included.
    pub operations: usize,
    /// Of one operation, the loop included: the median over the repetitions.
    pub ns_median: f64,
    /// The same, the smallest.
    pub ns_min: f64,
    /// What the loop takes with empty functions on one thread: the median; none if that was not asked for.
    pub loop_ns: Option<f64>,
    /// Of cold objects: so many of them, and nanoseconds from the start until they were there.
    pub steps: Vec<(usize, f64)>,
    /// The file that `malloc` came from.
    pub malloc_from: String,
}

impl Measurement {
    /// Reads the line that the program printed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let line = text.trim();
        let parsed: Self = serde_json::from_str(line).map_err(|e| {
            format!("{:?} is no result of craton-micro: {e}", line.chars().take(100).collect::<String>())
        })?;
        let positive = parsed.ns_median > 0.0 && parsed.ns_min > 0.0 && parsed.operations > 0;
        positive.then_some(parsed).ok_or_else(|| format!("a result of no time or no operations: {line}"))
    }
}

/// Repetitions of a pattern: nanoseconds for each, operations in total, and the steps of cold objects.
struct Timed {
    ns: Vec<f64>,
    operations: usize,
    steps: Vec<(usize, f64)>,
}

/// Does what is asked.
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
    // Before any thread: their own memory is allocated, too.
    let shared = Shared::new(request.threads);
    if request.threads == 1 {
        // No second thread: the C library takes shorter ways as long as there is none.
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

/// The turns of one thread, the warm-up first.
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

/// Repetition by repetition the mean over the threads, without the warm-up unless that is all there is.
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
mod tests {
    use super::*;

    fn request(pattern: Pattern, threads: usize) -> Request {
        Request { pattern, size_bytes: 300, threads, count: 500, repetitions: 2, with_loop: Loop::None }
    }

    #[test]
    fn every_pattern_does_at_least_the_operations_asked_for() {
        for pattern in Pattern::ALL {
            let threads = if pattern == Pattern::Remote { 2 } else { 1 };
            let result = measure(&request(pattern, threads));
            let repetitions = if pattern == Pattern::Cold { 1 } else { 3 };
            assert!(result.operations >= 500 * repetitions * threads, "{result:?}");
            assert!(result.ns_min > 0.0 && result.ns_median >= result.ns_min, "{result:?}");
            let parsed = Measurement::parse(&serde_json::to_string(&result).unwrap()).unwrap();
            assert!((parsed.ns_median - result.ns_median).abs() < 1e-6, "{parsed:?} {result:?}");
            let others = Measurement { ns_median: result.ns_median, ns_min: result.ns_min, ..parsed };
            assert_eq!(Measurement { steps: Vec::new(), ..others }, Measurement { steps: Vec::new(), ..result });
        }
    }

    #[test]
    fn threads_share_no_object_and_all_are_counted() {
        for pattern in [Pattern::Pair, Pattern::LiveRandom, Pattern::Remote] {
            let result = measure(&request(pattern, 3));
            assert_eq!((result.threads, result.operations >= 3 * 3 * 500), (3, true), "{result:?}");
        }
    }

    #[test]
    fn enough_is_enough_whatever_was_asked_for() {
        let asked = Request { count: 100_000, repetitions: 10_000, ..request(Pattern::Pair, 3) };
        // All of them would take seconds; the threads agree on how many are done, or this never ends.
        let done = measure(&asked).operations;
        assert!((3 * 300_000..10_000 * 300_000).contains(&done) && done.is_multiple_of(300_000), "{done}");
    }

    #[test]
    fn cold_objects_have_steps_at_powers_of_two_which_grow() {
        let result = measure(&request(Pattern::Cold, 1));
        let counts: Vec<usize> = result.steps.iter().map(|s| s.0).collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert!(result.steps.is_sorted_by(|a, b| a.1 <= b.1), "{:?}", result.steps);
    }

    #[test]
    fn a_line_that_is_no_result_is_shown() {
        let why = Measurement::parse("Segmentation fault").unwrap_err();
        assert!(why.contains("Segmentation fault"), "{why}");
        let mut empty = measure(&request(Pattern::Pair, 1));
        empty.ns_median = 0.0;
        assert!(Measurement::parse(&serde_json::to_string(&empty).unwrap()).is_err());
    }
}
