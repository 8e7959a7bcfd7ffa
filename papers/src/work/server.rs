//! A workload like a server's: requests, some of them bursts, and live data that swing over the
//! day.
//!
//! Worker `w` of `n` handles the requests `w, w + n, …`, each made from the seed and its number:
//! the checksum depends on neither timing nor allocator.

mod worker;

use super::Load;
use super::crew::{each, ring};
use worker::Worker;

pub fn serve(load: &Load) -> u64 {
    run(&Config { workers: load.threads, requests: load.of(350_000), seed: load.seed, live_mb: 60 }).checksum
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// At least 1.
    pub workers: usize,
    pub requests: u64,
    pub seed: u64,
    /// At the day's peak, over all workers; at least 1.
    pub live_mb: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub requests: u64,
    /// Of the [`Config`] alone.
    pub checksum: u64,
}

pub fn run(config: &Config) -> Outcome {
    let workers = config.workers.max(1);
    let outcomes = each(ring(workers, worker::QUEUE), |(number, receiver, sender)| {
        Worker::new(config, number, workers as u64, sender).run(receiver)
    });
    outcomes.into_iter().fold(Outcome::default(), |sum, one| Outcome {
        requests: sum.requests + one.requests,
        checksum: sum.checksum.wrapping_add(one.checksum),
    })
}

#[cfg(test)]
mod tests;
