//! Samples of a command's memory while it runs, of which the kernel keeps no record.
//!
//! **What.** A [`Sample`] is the state of the command's largest process, whose peak the kernel
//! reports too. A [`Record`] holds a run's samples, thinned out when there are many. The steady
//! resident set is the median over the second half of the run, without the start-up.
//!
//! **Units.** Bytes; seconds from the start of the run.
//!
//! **Failure.** A process that has ended, or of another user, is skipped.
//!
//! **Cost.** The kernel walks the processes' page tables; the caller spaces samples by their
//! duration.

use super::proof::Watch;
use crate::machine;
use serde::{Deserialize, Serialize};
use std::fs;

/// The memory of the largest process of a command, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in seconds from the start.
    pub at_s: f64,
    pub rss_bytes: u64,
    /// The part of it that is anonymous, which is where a heap lies.
    pub anonymous_bytes: u64,
    /// The part of that which is on transparent hugepages.
    pub hugepage_bytes: u64,
}

/// The most samples of a run that are kept.
const MOST: usize = 512;

#[derive(Clone, Debug, Default)]
pub struct Record {
    samples: Vec<Sample>,
    /// One sample in `1 << thinned` is kept.
    thinned: u32,
    seen: u32,
    /// Looks at each process too, in a run that proves who serves.
    watch: Option<Watch>,
}

impl Record {
    /// A record that also watches the processes.
    pub fn watching(watch: Option<Watch>) -> Self {
        Self { watch, ..Self::default() }
    }

    /// The largest process, if it ran without the library that is watched for.
    pub fn largest_without(&self) -> Option<String> {
        self.watch.as_ref()?.largest_without()
    }

    /// Samples the descendants of process `of`, without itself, at `at_s`.
    pub fn sample(&mut self, of: u32, at_s: f64) {
        let Some(sample) = largest(of, at_s, self.watch.as_mut()) else { return };
        if self.seen.is_multiple_of(1 << self.thinned) {
            self.samples.push(sample);
        }
        self.seen += 1;
        if self.samples.len() == MOST {
            let mut index = 0;
            self.samples.retain(|_| (index % 2 == 0, index += 1).0);
            self.thinned += 1;
        }
    }

    /// The samples that were kept.
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

/// The sample with the largest resident set.
pub fn peak(samples: &[Sample]) -> Option<Sample> {
    samples.iter().copied().max_by_key(|sample| sample.rss_bytes)
}

/// The median resident set in the second half of a run of `wall_s`; none without samples there.
pub fn steady_rss_bytes(samples: &[Sample], wall_s: f64) -> Option<u64> {
    let mut late: Vec<u64> = samples.iter().filter(|s| s.at_s >= wall_s / 2.0).map(|s| s.rss_bytes).collect();
    late.sort_unstable();
    late.get(late.len() / 2).copied()
}

/// The largest of the processes below `of` now.
fn largest(of: u32, at_s: f64, mut watch: Option<&mut Watch>) -> Option<Sample> {
    let mut largest: Option<Sample> = None;
    let mut todo = children(of);
    while let Some(pid) = todo.pop() {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let field = |key| machine::value(&rollup, key).and_then(machine::bytes).unwrap_or(0);
        let sample = Sample {
            at_s,
            rss_bytes: field("Rss"),
            anonymous_bytes: field("Anonymous"),
            hugepage_bytes: field("AnonHugePages"),
        };
        if let Some(watch) = &mut watch {
            watch.observe(pid, sample.rss_bytes);
        }
        if sample.rss_bytes > largest.map_or(0, |l| l.rss_bytes) {
            largest = Some(sample);
        }
        todo.extend(children(pid));
    }
    largest
}

/// The children of all threads of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let parse = |list: String| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
    threads.flatten().map(of_thread).flat_map(parse).collect()
}

#[cfg(test)]
mod tests;
