//! The cost of one malloc and one free: by size, warm and cold, on one thread and several, in time
//! and instructions.
//!
//! **What.** [`run`] runs `craton-micro` for one [`pattern::Pattern`] on each allocator in turn (A
//! B C A B C …), and makes a [`MicroRow`] of the rounds. valgrind's callgrind counts some.
//! [`report`] makes ratios and a table.
//!
//! **Units.** Nanoseconds of elapsed time, and instructions, for one operation of a pattern: mostly
//! a malloc and its free. With more threads than processors a thread's time contains others' turns.
//!
//! **State.** The loop's cost is beside each figure. Times contain it, since a difference may be
//! negative; instructions are exact, and do not.
//!
//! **Proof.** The program reports the file of its `malloc`. If that is not the expected one, the
//! row is [`Status::NotServed`] and has no number.
//!
//! **Failure.** Every row has a [`Status`]; a failed measurement ends no other. An allocator that
//! cannot be preloaded, or not under valgrind, is tried once.

mod callgrind;
pub mod calls;
mod driver;
mod loops;
pub mod measurement;
pub mod pattern;
pub mod process;
pub mod report;

use crate::measure::Allocator;
use pattern::Pattern;
use serde::{Serialize, Serializer};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The sizes of a quick run, in bytes.
pub const QUICK_SIZES: [usize; 6] = [16, 64, 256, 1500, 32_768, 200_000];
/// The sizes of a full run.
pub const FULL_SIZES: [usize; 9] = [16, 32, 64, 256, 1024, 1500, 4096, 32_768, 200_000];

pub struct Config<'a> {
    /// The allocators, in the order of their turns.
    pub allocators: &'a [Allocator],
    /// The sizes of objects, in bytes: 8 to [`pattern::MOST_BYTES`].
    pub sizes: Vec<usize>,
    /// Numbers of threads; a pattern runs on those that make sense for it.
    pub threads: Vec<usize>,
    pub patterns: Vec<Pattern>,
    /// The patterns of which instructions are counted, on one thread.
    pub counted_patterns: Vec<Pattern>,
    /// The sizes for which they are.
    pub counted_sizes: Vec<usize>,
    /// One round and shorter repetitions, instead of three.
    pub quick: bool,
    /// The program `craton-micro`.
    pub program: PathBuf,
    /// Valgrind: a name that is sought in `PATH`, or a path.
    pub valgrind: OsString,
    /// Set by another thread or a signal handler to stop: the current process is killed and
    /// omitted.
    pub stop: &'a AtomicBool,
    /// Called before each process.
    pub progress: &'a dyn Fn(Progress<'_>),
}

impl<'a> Config<'a> {
    /// The standard measurement: a quick one takes seconds, a full one minutes.
    pub fn standard(
        quick: bool,
        allocators: &'a [Allocator],
        program: PathBuf,
        stop: &'a AtomicBool,
        progress: &'a dyn Fn(Progress<'_>),
    ) -> Self {
        let batch = Pattern::BatchLifo(64);
        Self {
            allocators,
            sizes: if quick { QUICK_SIZES.to_vec() } else { FULL_SIZES.to_vec() },
            threads: if quick { vec![1, 2] } else { vec![1, 2, 4] },
            patterns: if quick {
                vec![Pattern::Pair, batch, Pattern::LiveRandom, Pattern::Cold, Pattern::Remote]
            } else {
                Pattern::ALL.to_vec()
            },
            counted_patterns: if quick { vec![Pattern::Pair] } else { vec![Pattern::Pair, batch, Pattern::LiveRandom] },
            counted_sizes: if quick { vec![16, 256] } else { vec![16, 64, 256, 1500, 32_768] },
            quick,
            program,
            valgrind: "valgrind".into(),
            stop,
            progress,
        }
    }
}

/// Where a measurement stands: the process that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The allocator whose turn it is.
    pub allocator: &'a str,
    pub pattern: Pattern,
    pub size_bytes: usize,
    /// Whether instructions are being counted.
    pub counting: bool,
    /// Measurements done so far.
    pub done: usize,
    /// Measurements in total.
    pub total: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The row has all the numbers that were asked for.
    Ok,
    /// It has times; the requested instructions are missing, for this reason.
    NotCounted(String),
    /// The allocator did not serve the program, for the reason given: no number.
    NotServed(String),
    /// The program failed, for the reason given: no number.
    Failed(String),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::NotCounted(why) => write!(f, "instructions not counted: {why}"),
            Self::NotServed(why) => write!(f, "not served: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One pattern at one size on one allocator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MicroRow {
    pub allocator: String,
    /// The pattern's name; `cold-first` is the very first object of [`Pattern::Cold`].
    pub pattern: String,
    pub size_bytes: usize,
    pub threads: usize,
    /// Nanoseconds of one operation with the loop: the median over rounds of the processes'
    /// medians; 0 if no round succeeded.
    pub ns_median: f64,
    /// The smallest over all repetitions of all rounds; 0 if no round succeeded.
    pub ns_min: f64,
    /// The loop's time with empty functions, part of the two above; 0 where not measured.
    pub loop_ns: f64,
    /// Instructions of one operation in the allocator: without the loop and the calls.
    pub instructions: Option<f64>,
    /// Instructions of the loop and the calls, not part of the number above.
    pub loop_instructions: Option<f64>,
    pub status: Status,
}

impl MicroRow {
    pub fn is_timed(&self) -> bool {
        self.ns_median > 0.0
    }
}

/// Measures. When `stop` is set, returns the rows so far. Error: no directory for the processes'
/// files.
pub fn run(config: &Config<'_>) -> Result<Vec<MicroRow>, String> {
    driver::run(config)
}

#[cfg(test)]
mod tests;
