//! Cache lines that threads would share: at once in `cache-thrash`; in `cache-scratch` after they
//! freed objects of one thread.
//!
//! **From.** Hoard (Berger et al., ASPLOS 2000), §7.

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
            // A `fetch_add` would cost more than the line.
            object.store(object.load(Relaxed).wrapping_add(i), Relaxed);
        }
        sum = sum.wrapping_add(object.load(Relaxed));
    }
    sum
}
