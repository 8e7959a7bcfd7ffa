//! The same command on several allocators, in turn.
//!
//! **What.** [`measure`] warms each allocator up, then runs the command once on each, round after
//! round, so that a disturbance of the machine affects all. An allocator is a preloaded library;
//! for the C library's nothing is preloaded. A program that links an allocator, as Debian's
//! redis-server does, then runs on that one (`real/redis-list.sh` preloads `libc.so.6` for this
//! reason).
//!
//! **State.** A run has a process group, /dev/null as standard input and output, and a pipe as
//! standard error, of which the end is kept. Processes that the command leaves in the group are
//! killed, since they would disturb the next run. Only groups created here are signalled.
//!
//! **Proof.** A library that cannot be preloaded would be measured as the C library. So the first
//! warm-up of each allocator is watched ([`proof`]): if no process was bound to the library's
//! malloc, or the largest one has not mapped it, the run is [`Status::NotServed`].
//!
//! **Failure.** A failed run is in the list with its status; nothing here panics or stops half way.

mod launcher;
pub mod once;
pub mod proof;
mod sample;

pub use sample::Sample;

use proof::Service;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How much of a run's standard error is kept.
pub const STDERR_BYTES: usize = 4096;

/// An allocator: the library to preload, and the variables to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    pub name: String,
    /// The library to preload, before those of `LD_PRELOAD`; none for the C library's allocator.
    pub preload: Option<PathBuf>,
    /// Variables that the program gets besides those of this process.
    pub env: Vec<(OsString, OsString)>,
}

impl Allocator {
    /// The C library's allocator: nothing is preloaded.
    pub fn glibc() -> Self {
        Self { name: "glibc".to_owned(), preload: None, env: Vec::new() }
    }

    pub fn preloaded(name: impl Into<String>, library: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), preload: Some(library.into()), env: Vec::new() }
    }
}

pub struct Plan<'a> {
    /// The program, sought in `PATH`, and its arguments.
    pub command: Vec<OsString>,
    pub allocators: Vec<Allocator>,
    /// Rounds that count; each allocator runs once in each.
    pub runs: usize,
    /// Rounds before them that do not count.
    pub warmup: usize,
    /// Whether each allocator has to prove that it serves the command; adds a run if there is no
    /// warm-up.
    pub prove: bool,
    /// The processors to stay on; any, if empty.
    pub processors: Vec<usize>,
    /// The time after which a run is killed.
    pub timeout: Option<Duration>,
    /// Set by another thread or a signal handler to stop: the current run is killed and omitted.
    pub stop: &'a AtomicBool,
    /// Called before each run.
    pub progress: &'a dyn Fn(Progress<'_>),
}

/// Where a measurement stands: the run that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The allocator whose turn it is.
    pub allocator: &'a str,
    /// The round, from 0; none in the warm-up, which does not count.
    pub round: Option<usize>,
    /// Runs done so far, warm-up included.
    pub done: usize,
    /// Runs in total, warm-up included.
    pub total: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The command left with status 0, on the allocator asked for.
    Ok,
    /// It left with another status.
    Exit(i32),
    Signal(i32),
    /// It took longer than the plan allows, and was killed.
    TimedOut,
    /// It left with status 0, but the allocator did not serve it.
    NotServed,
    /// It was not started, for the reason given.
    CannotStart(String),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Exit(status) => write!(f, "exit {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotServed => f.write_str("not served"),
            Self::CannotStart(why) => write!(f, "cannot start: {why}"),
        }
    }
}

/// The cost of one run.
///
/// Time and faults include descendants that have ended before the command's end, but no process of
/// another parent that the command only talks to.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub allocator: String,
    /// The round, from 0.
    pub index: usize,
    /// From just before the command's process starts to its end, on the monotonic clock.
    pub wall_s: f64,
    pub user_s: f64,
    pub sys_s: f64,
    /// The largest resident set of any one process of the command, from the kernel or a sample.
    pub peak_rss_bytes: u64,
    /// The steady resident set of the largest process: the median of samples in the second half of
    /// the run; none for a run too short to be sampled.
    pub steady_rss_bytes: Option<u64>,
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Anonymous memory on hugepages in the sample with the largest resident set; 0 without
    /// samples.
    pub hugepage_bytes: u64,
    /// The part of that sample's anonymous memory on hugepages, from 0 to 1.
    pub hugepage_coverage: Option<f64>,
    /// The memory of its largest process over time, about every 20 ms; fewer in a long run.
    pub samples: Vec<Sample>,
    pub status: Status,
    /// The end of what it wrote on standard error, at most [`STDERR_BYTES`].
    pub stderr: String,
}

impl Run {
    /// Processor time, in user mode and in the kernel.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.sys_s
    }

    /// A run that did not take place.
    pub fn without(allocator: &str, index: usize, status: Status) -> Self {
        Self {
            allocator: allocator.to_owned(),
            index,
            wall_s: 0.0,
            user_s: 0.0,
            sys_s: 0.0,
            peak_rss_bytes: 0,
            steady_rss_bytes: None,
            minor_faults: 0,
            major_faults: 0,
            hugepage_bytes: 0,
            hugepage_coverage: None,
            samples: Vec::new(),
            status,
            stderr: String::new(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The runs that count, and the failed warm-ups of excluded allocators, in order.
    pub runs: Vec<Run>,
    /// The modules that served the command, by allocator.
    pub service: BTreeMap<String, Service>,
}

struct Turn<'a> {
    allocator: &'a Allocator,
    given_up: bool,
    proven: bool,
}

/// Runs the plan: the warm-up, then `runs` rounds of one run on each allocator.
///
/// An allocator whose warm-up cannot start, times out or is not served is excluded; that run is in
/// the list as round 0. When `stop` is set, returns the runs so far.
pub fn measure(plan: &Plan<'_>) -> Measured {
    let mut measured = Measured::default();
    let warmup = plan.warmup.max(usize::from(plan.prove));
    let new = |allocator| Turn { allocator, given_up: false, proven: !plan.prove };
    let mut turns: Vec<Turn<'_>> = plan.allocators.iter().map(new).collect();
    let total = (warmup + plan.runs) * turns.len();
    for round in 0..warmup + plan.runs {
        for (place, turn) in turns.iter_mut().enumerate() {
            if plan.stop.load(Relaxed) {
                return measured;
            }
            if turn.given_up {
                continue;
            }
            let now = Progress {
                allocator: &turn.allocator.name,
                round: round.checked_sub(warmup),
                done: round * plan.allocators.len() + place,
                total,
            };
            (plan.progress)(now);
            let run = if round == 0 && plan.prove {
                prove(plan, turn, &mut measured.service)
            } else {
                once::run(plan, turn.allocator, round.saturating_sub(warmup))
            };
            let Some(mut run) = run else { return measured };
            if run.status == Status::Ok && !turn.proven {
                run.status = Status::NotServed;
            }
            turn.given_up =
                round < warmup && matches!(run.status, Status::CannotStart(_) | Status::TimedOut | Status::NotServed);
            if round >= warmup || turn.given_up {
                measured.runs.push(run);
            }
        }
    }
    measured
}

/// The first run of an allocator, watched.
fn prove(plan: &Plan<'_>, turn: &mut Turn<'_>, services: &mut BTreeMap<String, Service>) -> Option<Run> {
    let allocator = turn.allocator;
    let directory = match proof::Directory::new() {
        Ok(directory) => directory,
        Err(why) => return Some(Run::without(&allocator.name, 0, Status::CannotStart(why))),
    };
    let (run, largest_without) = once::run_proven(plan, allocator, &directory)?;
    let service = Service { largest_without, ..directory.read() };
    let library = allocator.preload.as_deref().map(once::library);
    let bound = library.is_none_or(|library| library.is_ok_and(|library| service.served_by(&library) > 0));
    turn.proven = bound && service.largest_without.is_none();
    services.insert(allocator.name.clone(), service);
    Some(run)
}

#[cfg(test)]
mod tests;
