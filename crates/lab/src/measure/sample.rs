//! Samples of a command's largest process. The kernel walks page tables for each.

use super::proof::Watch;
use crate::machine;
use serde::{Deserialize, Serialize};
use std::fs;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at_s: f64,
    pub rss_bytes: u64,
    pub anonymous_bytes: u64,
    pub hugepage_bytes: u64,
}

const MOST: usize = 512;

#[derive(Clone, Debug, Default)]
pub struct Record {
    samples: Vec<Sample>,
    /// One in `1 << thinned` is kept.
    thinned: u32,
    seen: u32,
    watch: Option<Watch>,
}

impl Record {
    pub fn watching(watch: Option<Watch>) -> Self {
        Self { watch, ..Self::default() }
    }

    pub fn largest_without(&self) -> Option<String> {
        self.watch.as_ref()?.largest_without()
    }

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

    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

pub fn peak(samples: &[Sample]) -> Option<Sample> {
    samples.iter().copied().max_by_key(|sample| sample.rss_bytes)
}

pub fn steady_rss_bytes(samples: &[Sample], wall_s: f64) -> Option<u64> {
    let mut late: Vec<u64> = samples.iter().filter(|s| s.at_s >= wall_s / 2.0).map(|s| s.rss_bytes).collect();
    late.sort_unstable();
    late.get(late.len() / 2).copied()
}

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

pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let parse = |list: String| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
    threads.flatten().map(of_thread).flat_map(parse).collect()
}

#[cfg(test)]
mod tests;
