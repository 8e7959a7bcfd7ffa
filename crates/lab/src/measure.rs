//! The same command on several allocators, in turn: a disturbance of the machine affects all.
//!
//! **What.** An allocator is a preloaded library. A program that links an allocator runs on that,
//! unless it preloads `libc.so.6` (`real/redis-list.sh`). Processes left in a run's group would
//! disturb the next: they are killed.
//!
//! **Proof.** A library that cannot be preloaded would be measured as the C library: unless the
//! first warm-up proves its service ([`proof`]), the run is [`Status::NotServed`].

mod launcher;
pub mod once;
pub mod proof;
mod sample;
pub mod server;

pub use sample::Sample;

use proof::Service;
use server::{Load, Server};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

pub const STDERR_BYTES: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    pub name: String,
    /// Before those of `LD_PRELOAD`; none: the C library's allocator.
    pub preload: Option<PathBuf>,
    pub env: Vec<(OsString, OsString)>,
}

impl Allocator {
    pub fn glibc() -> Self {
        Self { name: "glibc".to_owned(), preload: None, env: Vec::new() }
    }

    pub fn preloaded(name: impl Into<String>, library: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), preload: Some(library.into()), env: Vec::new() }
    }
}

pub struct Plan<'a> {
    pub command: Vec<OsString>,
    pub allocators: Vec<Allocator>,
    pub runs: usize,
    pub warmup: usize,
    /// Adds a run if there is no warm-up.
    pub prove: bool,
    /// Empty: any.
    pub processors: Vec<usize>,
    pub timeout: Option<Duration>,
    /// The command is a server that this loads and ends; none: it ends by itself.
    pub server: Option<&'a Server>,
    /// Another thread sets it: the current run is killed and omitted.
    pub stop: &'a AtomicBool,
    pub progress: &'a dyn Fn(Progress<'_>),
}

#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    pub allocator: &'a str,
    /// None in the warm-up.
    pub round: Option<usize>,
    /// With warm-up.
    pub done: usize,
    pub total: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    Ok,
    Exit(i32),
    Signal(i32),
    TimedOut,
    NotServed,
    CannotStart(String),
    /// A server on which the command for readiness did not succeed in this time.
    NotReady(Duration),
    LoadFailed(String),
    /// A server that ended with status 0 before its load.
    EndedEarly,
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
            Self::NotReady(limit) => write!(f, "not ready within {} s", limit.as_secs_f64()),
            Self::LoadFailed(why) => write!(f, "load failed: {why}"),
            Self::EndedEarly => f.write_str("ended before its load did; a server has to stay in the foreground"),
        }
    }
}

/// Time and faults include descendants that ended before the command.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub allocator: String,
    pub index: usize,
    /// Monotonic time from before the process starts to its end; of a server, the load's.
    pub wall_s: f64,
    pub user_s: f64,
    pub sys_s: f64,
    /// The peak of any one process, from the kernel or a sample; of a server, the peak of its
    /// samples.
    pub peak_rss_bytes: u64,
    /// The largest process's median in the run's second half.
    pub steady_rss_bytes: Option<u64>,
    pub minor_faults: u64,
    /// With input.
    pub major_faults: u64,
    /// Anonymous, in the sample with the largest resident set.
    pub hugepage_bytes: u64,
    /// 0 to 1.
    pub hugepage_coverage: Option<f64>,
    pub samples: Vec<Sample>,
    /// Of a server.
    pub load: Option<Load>,
    pub status: Status,
    /// At most [`STDERR_BYTES`].
    pub stderr: String,
}

impl Run {
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.sys_s
    }

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
            load: None,
            status,
            stderr: String::new(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Counted runs, and failed warm-ups of excluded allocators.
    pub runs: Vec<Run>,
    pub service: BTreeMap<String, Service>,
}

struct Turn<'a> {
    allocator: &'a Allocator,
    given_up: bool,
    proven: bool,
}

/// An allocator whose warm-up cannot start, times out or is not served is excluded.
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
            turn.given_up = round < warmup
                && matches!(
                    run.status,
                    Status::CannotStart(_) | Status::TimedOut | Status::NotServed | Status::NotReady(_)
                );
            if round >= warmup || turn.given_up {
                measured.runs.push(run);
            }
        }
    }
    measured
}

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
