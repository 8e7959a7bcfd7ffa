//! The same command under several allocators, in turn.
//!
//! **What.** [`measure`] warms each allocator up, then runs the command once on each, round after round, so that what
//! disturbs the machine for a while disturbs all of them. An allocator is a library that is preloaded. Nothing is
//! preloaded for the C library's own: a program that links an allocator by itself, as Debian's redis-server does, then
//! runs on that one (`scripts/redis-load.sh` preloads `libc.so.6` for this reason).
//!
//! **State.** A run has its own process group, /dev/null as standard input and output, and a pipe as standard error, the
//! end of which is kept. Whatever is left of the group when the command has ended is killed: it would disturb the next
//! run. Only the groups made here are ever signalled.
//!
//! **Proof.** A library that was preloaded in vain would be measured as the C library. A run on Craton is therefore
//! asked for its statistics, and is [`Status::NotServed`] if no process of it wrote any when it left. So is one whose
//! processes all leave by `_exit`, as dash does; a program that the shell starts is proof.
//!
//! **Failure.** A run that failed is in the list with its status; nothing here panics or gives up half way.

mod launcher;
pub(crate) mod once;
pub(crate) mod proof;
mod sample;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How much of a run's standard error is kept.
pub const STDERR_BYTES: usize = 4096;

/// An allocator: what has to be preloaded and set so that a program uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// The name in tables; `craton` is asked to prove that it served the program.
    pub name: String,
    /// The library to preload, before those that `LD_PRELOAD` names already; none for the C library's allocator.
    pub preload: Option<PathBuf>,
    /// Variables that the program gets besides those of this process.
    pub env: Vec<(OsString, OsString)>,
}

impl Allocator {
    /// The C library's allocator: nothing is preloaded.
    pub fn glibc() -> Self {
        Self { name: "glibc".to_owned(), preload: None, env: Vec::new() }
    }

    /// An allocator that `library` holds.
    pub fn preloaded(name: impl Into<String>, library: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), preload: Some(library.into()), env: Vec::new() }
    }

    /// Whether this is Craton, by its name or by its library's.
    pub fn is_craton(&self) -> bool {
        let library = self.preload.as_deref().and_then(Path::file_name);
        self.name == "craton" || library.is_some_and(|name| name == "libcraton.so")
    }
}

/// What to measure.
pub struct Plan<'a> {
    /// The program, sought in `PATH`, and its arguments.
    pub command: Vec<OsString>,
    /// The allocators, in the order of their turns.
    pub allocators: Vec<Allocator>,
    /// Rounds that count; each allocator runs once in each.
    pub runs: usize,
    /// Rounds before them that do not count.
    pub warmup: usize,
    /// What a run may take at most; it is then killed.
    pub timeout: Option<Duration>,
    /// Set by another thread or a signal handler to end early: the run under way is killed and left out.
    pub stop: &'a AtomicBool,
    /// Called before each run.
    pub progress: &'a dyn Fn(Progress<'_>),
}

/// Where a measurement stands: the run that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The allocator whose turn it is.
    pub allocator: &'a str,
    /// Whether this run does not count.
    pub warmup: bool,
    /// Runs done so far, warm-up included.
    pub done: usize,
    /// Runs in total, warm-up included.
    pub total: usize,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The command left with status 0, on the allocator asked for.
    Ok,
    /// It left with another status.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
    /// It took longer than the plan allows, and was killed.
    TimedOut,
    /// It left with status 0, but nothing shows that the allocator served it.
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

/// What one run cost.
///
/// Time and faults are those of the command and of all its descendants that have ended when it ends; a process of
/// another parent, which the command merely talks to, is not in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The allocator's name.
    pub allocator: String,
    /// The round, from 0.
    pub index: usize,
    /// From just before the command's process is made to its end, on the monotonic clock.
    pub wall_s: f64,
    /// Processor time, user and system.
    pub cpu_s: f64,
    /// The largest resident set that any one process of the command had, as the kernel keeps it.
    pub peak_rss_bytes: u64,
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// The most anonymous memory seen on hugepages, over the processes of the command, sampled about every 20 ms;
    /// 0 for a run that is shorter.
    pub hugepage_bytes: u64,
    /// How it ended.
    pub status: Status,
    /// The end of what it wrote on standard error, at most [`STDERR_BYTES`].
    pub stderr: String,
}

impl Run {
    /// A run that did not take place.
    pub(crate) fn without(allocator: &str, index: usize, status: Status) -> Self {
        Self {
            allocator: allocator.to_owned(),
            index,
            wall_s: 0.0,
            cpu_s: 0.0,
            peak_rss_bytes: 0,
            minor_faults: 0,
            hugepage_bytes: 0,
            status,
            stderr: String::new(),
        }
    }
}

/// Runs the plan: the warm-up, then `runs` rounds of one run on each allocator.
///
/// An allocator whose warm-up cannot start or takes too long is not run again: that run is in the list as round 0.
/// When `stop` is set, the runs so far come back.
pub fn measure(plan: &Plan<'_>) -> Vec<Run> {
    let mut runs = Vec::new();
    let proofs = proof::Directory::new();
    let mut given_up = vec![false; plan.allocators.len()];
    let total = (plan.warmup + plan.runs) * plan.allocators.len();
    let mut done = 0;
    for round in 0..plan.warmup + plan.runs {
        let warmup = round < plan.warmup;
        for (allocator, given_up) in plan.allocators.iter().zip(&mut given_up) {
            if plan.stop.load(Relaxed) {
                return runs;
            }
            if !*given_up {
                (plan.progress)(Progress { allocator: &allocator.name, warmup, done, total });
                let Some(run) = once::run(plan, allocator, round.saturating_sub(plan.warmup), &proofs) else {
                    return runs;
                };
                *given_up = warmup && matches!(run.status, Status::CannotStart(_) | Status::TimedOut);
                if !warmup || *given_up {
                    runs.push(run);
                }
            }
            done += 1;
        }
    }
    runs
}

#[cfg(test)]
mod tests;
