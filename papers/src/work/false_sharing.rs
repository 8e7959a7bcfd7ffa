//! Cache lines that threads would share.
//!
//! **What.** Threads whose objects share a cache line fight for it: at once in `cache-thrash`; in
//! `cache-scratch` after they freed objects of one thread.
//!
//! **From.** Berger et al., "Hoard: A scalable memory allocator for multithreaded applications"
//! (ASPLOS 2000), §7: active and passive false sharing.

use super::Load;
use super::crew::crew;
use craton_lab::rng::Rng;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub fn thrash(load: &Load) -> u64 {
    crew(load.numbers(), |number| write(load, number, None))
}

pub fn scratch(load: &Load) -> u64 {
    let first: Vec<_> = load.numbers().map(|number| (number, Box::new(AtomicU64::new(number)))).collect();
    crew(first, |(number, given)| write(load, number, Some(given)))
}

const OBJECTS: u64 = 32_000;
const WRITES: u64 = 50_000;

fn write(load: &Load, number: u64, given: Option<Box<AtomicU64>>) -> u64 {
    let mut rng = Rng::new(load.seed, number);
    let mut sum = given.map_or(0, |object| object.load(Relaxed));
    for _ in 0..load.share(OBJECTS) {
        let object = Box::new(AtomicU64::new(rng.next()));
        for i in 0..WRITES {
            // Each write happens; a `fetch_add` would cost more than the line.
            object.store(object.load(Relaxed).wrapping_add(i), Relaxed);
        }
        sum = sum.wrapping_add(object.load(Relaxed));
    }
    sum
}
