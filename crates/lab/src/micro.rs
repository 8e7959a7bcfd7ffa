//! The cost of one malloc and one free, in time and instructions: `craton-micro` on each allocator
//! in turn; callgrind counts.
//!
//! **Units.** Nanoseconds and instructions for one operation of a pattern. With more threads than
//! CPUs a thread's time contains others' turns. Times contain the loop's cost, since a difference
//! may be negative; instructions do not.
//!
//! **Failure.** A failed measurement ends no other. An allocator that cannot be preloaded, or not
//! under valgrind, is tried once.

pub mod callgrind;
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

pub const QUICK_SIZES: [usize; 6] = [16, 64, 256, 1500, 32_768, 200_000];
pub const FULL_SIZES: [usize; 9] = [16, 32, 64, 256, 1024, 1500, 4096, 32_768, 200_000];

pub struct Config<'a> {
    pub allocators: &'a [Allocator],
    /// From 8 to [`pattern::MOST_BYTES`].
    pub sizes: Vec<usize>,
    /// A pattern runs on those that suit it.
    pub threads: Vec<usize>,
    pub patterns: Vec<Pattern>,
    pub counted_patterns: Vec<Pattern>,
    pub counted_sizes: Vec<usize>,
    pub quick: bool,
    pub program: PathBuf,
    pub valgrind: OsString,
    /// Set by another thread: the current process is killed and omitted.
    pub stop: &'a AtomicBool,
    pub progress: &'a dyn Fn(Progress<'_>),
}

impl<'a> Config<'a> {
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

#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    pub allocator: &'a str,
    pub pattern: Pattern,
    pub size_bytes: usize,
    pub counting: bool,
    pub done: usize,
    pub total: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    Ok,
    /// Times, but no instructions.
    NotCounted(String),
    NotServed(String),
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

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MicroRow {
    pub allocator: String,
    /// `cold-first` is the first object of [`Pattern::Cold`].
    pub pattern: String,
    pub size_bytes: usize,
    pub threads: usize,
    /// With the loop: the median over rounds of the processes' medians; 0 if none succeeded.
    pub ns_median: f64,
    pub ns_min: f64,
    /// 0 if not measured.
    pub loop_ns: f64,
    pub instructions: Option<f64>,
    pub loop_instructions: Option<f64>,
    pub status: Status,
}

impl MicroRow {
    pub fn is_timed(&self) -> bool {
        self.ns_median > 0.0
    }
}

/// When `stop` is set, returns the rows so far.
pub fn run(config: &Config<'_>) -> Result<Vec<MicroRow>, String> {
    driver::run(config)
}

#[cfg(test)]
mod tests;
