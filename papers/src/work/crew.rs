//! Threads that share a workload. Bounded channels have their final size from the start: no part of
//! the figures.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::thread;

pub fn each<P: Send, R: Send>(parts: impl IntoIterator<Item = P>, work: impl Fn(P) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || work(part))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

/// The sum hides the threads' order.
pub fn crew<P: Send>(parts: impl IntoIterator<Item = P>, work: impl Fn(P) -> u64 + Sync) -> u64 {
    each(parts, work).into_iter().fold(0, u64::wrapping_add)
}

pub fn ring<T>(count: usize, capacity: usize) -> impl Iterator<Item = (u64, Receiver<T>, Sender<T>)> {
    let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| bounded(capacity)).unzip();
    senders.rotate_left(1);
    (0..).zip(receivers).zip(senders).map(|((number, receiver), sender)| (number, receiver, sender))
}

#[cfg(test)]
mod tests;
