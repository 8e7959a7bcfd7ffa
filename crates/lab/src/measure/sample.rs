//! Samples of a command's memory while it runs, of which the kernel keeps no record.
//!
//! **What.** A [`Sample`] is of the command's largest process, or the sum over a server's. A
//! [`Record`] is thinned out when there are many.
//!
//! **Cost.** The kernel walks page tables; the caller spaces samples by their duration.

use super::proof::Watch;
use super::server::SETTLE;
use crate::machine;
use serde::{Deserialize, Serialize};
use std::fs;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at_s: f64,
    /// Resident; of a server, the sum of proportional sets (PSS), where shared pages count once.
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
    summed: bool,
}

impl Record {
    /// `summed`: over all processes.
    pub fn watching(watch: Option<Watch>, summed: bool) -> Self {
        Self { watch, summed, ..Self::default() }
    }

    pub fn largest_without(&self) -> Option<String> {
        self.watch.as_ref()?.largest_without()
    }

    pub fn sample(&mut self, of: u32, at_s: f64) {
        let all = each(of, at_s, self.summed, self.watch.as_mut());
        let sample = match self.summed {
            true => all.into_iter().reduce(sum),
            false => all.into_iter().reduce(|a, b| if b.rss_bytes > a.rss_bytes { b } else { a }),
        };
        let Some(sample) = sample.filter(|sample| sample.rss_bytes > 0) else { return };
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

/// The median from one time to another; none without samples there.
pub fn steady_rss_bytes(samples: &[Sample], from_s: f64, to_s: f64) -> Option<u64> {
    let there = samples.iter().filter(|sample| (from_s..=to_s).contains(&sample.at_s));
    let mut late: Vec<u64> = there.map(|sample| sample.rss_bytes).collect();
    late.sort_unstable();
    late.get(late.len() / 2).copied()
}

/// The median of the half second before SIGTERM, which comes [`SETTLE`] after the load.
pub fn after_load(samples: &[Sample], load_end_s: f64) -> Option<u64> {
    let end_s = load_end_s + SETTLE.as_secs_f64();
    steady_rss_bytes(samples, end_s - 0.5, end_s)
}

/// In no order.
fn each(of: u32, at_s: f64, shared_once: bool, mut watch: Option<&mut Watch>) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut todo = children(of);
    while let Some(pid) = todo.pop() {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let field = |key| machine::value(&rollup, key).and_then(machine::bytes).unwrap_or(0);
        if let Some(watch) = &mut watch {
            watch.observe(pid, field("Rss"));
        }
        samples.push(Sample {
            at_s,
            rss_bytes: field(if shared_once { "Pss" } else { "Rss" }),
            anonymous_bytes: field("Anonymous"),
            hugepage_bytes: field("AnonHugePages"),
        });
        todo.extend(children(pid));
    }
    samples
}

fn sum(a: Sample, b: Sample) -> Sample {
    Sample {
        at_s: a.at_s,
        rss_bytes: a.rss_bytes + b.rss_bytes,
        anonymous_bytes: a.anonymous_bytes + b.anonymous_bytes,
        hugepage_bytes: a.hugepage_bytes + b.hugepage_bytes,
    }
}

pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let parse = |list: String| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
    threads.flatten().map(of_thread).flat_map(parse).collect()
}

#[cfg(test)]
mod tests;
