//! A workload like a server's.
//!
//! **What.** Threads handle numbered requests. Each takes short-lived buffers from 16 B to 64 KiB, most near 1 KiB, and
//! strings that are built and torn down; looks a session up; reads and writes a cache whose values change size, and
//! throws the least recently used out. One buffer in some goes to another thread, which frees it. Now and then a
//! request is a burst of thousands of small objects; over the day the live data swing between half and all of their
//! budget. Every buffer is written, and read again before it is freed.
//!
//! **From.** No paper's: the mixture that they all describe of servers (short life, small sizes, a long tail of both,
//! frees on other threads, load that comes and goes), in a program that needs nothing else to run.
//!
//! **State.** Worker `w` of `n` handles the requests `w, w + n, …` on a cache and sessions of its own; a request is made
//! from the seed and its number. So the checksum, a sum over requests and over buffers handed on, depends on neither
//! the threads' timing nor the allocator: another one means that memory was not what had been written.
//!
//! **Units.** Requests; MiB of live data in the caches, over all workers.
//!
//! **Threads.** Each worker sends to the next in a ring through a bounded queue and never waits: what does not fit it
//! frees itself.
//!
//! **Not here.** A library to preload: the program uses Rust's default, the C library's malloc, so that any can serve it.

mod lru;
mod worker;

use super::Workload;
use std::sync::mpsc;
use std::thread;
use worker::Worker;

/// The workload, in the list.
pub const WORKLOAD: Workload = Workload {
    name: "server",
    about: "requests with lifetimes, a cache, sessions, bursts and a daily swing; some frees on the next thread",
    from: "the mixture that server papers describe",
    threads: 2,
    run: |load| {
        run(&Config { workers: load.threads, requests: load.of(350_000), seed: load.seed, live_mb: 60 }).checksum
    },
    known: [0x7188_3f7b_6a9e_cb7b, 0x9cd1_a25a_5486_7b98],
};

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Threads that handle requests, at least 1.
    pub workers: usize,
    /// Requests in total, over all workers.
    pub requests: u64,
    /// Where the random numbers start.
    pub seed: u64,
    /// Live data in the caches at the top of the day, in MiB, over all workers; at least 1.
    pub live_mb: usize,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests handled.
    pub requests: u64,
    /// The same for the same requests, seed, workers and live data.
    pub checksum: u64,
}

/// Runs the workload.
pub fn run(config: &Config) -> Outcome {
    let workers = config.workers.max(1);
    let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::sync_channel(worker::QUEUE)).unzip();
    // Worker w sends to w + 1, the last to the first.
    senders.rotate_left(1);
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let spawn = |(number, (sender, receiver))| {
            scope.spawn(move || Worker::new(config, number as u64, workers as u64, sender).run(receiver))
        };
        let threads: Vec<_> = senders.into_iter().zip(receivers).enumerate().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
    });
    outcomes.into_iter().fold(Outcome::default(), |sum, one| Outcome {
        requests: sum.requests + one.requests,
        checksum: sum.checksum.wrapping_add(one.checksum),
    })
}

#[cfg(test)]
mod tests;
