//! Requests that are counted before they come.

use super::super::recorder::{hardened_watched, set_gaps, set_sample, watched};
use super::{SIZE, request};
use crate::hooks::{Countdown, Hooks};
use crate::size_class;
use crate::tests::world::World;
use std::vec::Vec;

/// Requests of a new list up to the first sample, where one of `period` requests stays.
fn first_sample<H: Hooks>(w: &World<H>, period: usize, left: i64) -> usize {
    let class = size_class::class_of(SIZE);
    set_sample(1);
    w.cache().set_countdown(Countdown { left, bytes: 1 });
    let (mut kept, mut n, mut sample) = (Vec::new(), 0, None);
    while sample.is_none() && n < 10_000 {
        let (object, bytes) = request(w, class);
        (n, sample) = (n + 1, bytes);
        if n % period == 0 { kept.push(object) } else { w.give(object).unwrap() }
    }
    w.give_all(kept);
    w.empty();
    n
}

#[test]
fn the_request_that_ends_the_countdown_is_the_sample() {
    for (period, most) in [(1, 2000), (2, 127), (20, 127), (usize::MAX, 127)] {
        for nth in [1, 2, 15, 16, 17, 31, 32, 33, 100, 127, 500, 2000].into_iter().filter(|nth| *nth <= most) {
            let left = (nth * SIZE) as i64 - 1;
            assert_eq!(first_sample(&watched(8), period, left), nth, "one of {period} stays");
            assert_eq!(first_sample(&hardened_watched(8), period, left), nth, "one of {period} stays, hardened");
        }
    }
}

/// The samples' share of the bytes, of brief objects and of those that stay. In each phase brief
/// ones come first, and end together. After `ends` phases the cache is flushed.
fn seen<H: Hooks>(w: &World<H>, [size, brief, stays, ends]: [usize; 4]) -> [f64; 2] {
    let class = size_class::class_of(size);
    let phases = 200_000 * SIZE / size / (brief + stays);
    let mut sums = [0; 2];
    let mut kept = Vec::new();
    w.cache().set_countdown(set_gaps(8 << 10, brief as u64));
    for phase in 1..=phases {
        let mut ask = |to: usize, n| -> Vec<*mut u8> {
            let requests = (0..n).map(|_| request(w, class));
            let count = |(object, bytes): (*mut u8, Option<u64>)| {
                sums[to] += bytes.unwrap_or(0);
                object
            };
            requests.map(count).collect()
        };
        let brief = ask(0, brief);
        w.give_all(brief);
        kept.extend(ask(1, stays));
        if phase % ends == 0 {
            // SAFETY: the cache is ours.
            unsafe { w.heap.empty_cache(w.cache) };
        }
    }
    w.give_all(kept);
    w.empty();
    [(sums[0], brief), (sums[1], stays)]
        .map(|(sum, n)| sum as f64 / (phases * n * size_class::size_of_class(class)) as f64)
}

#[test]
fn what_stays_is_seen_at_its_size_whatever_the_pattern() {
    const NEVER: usize = usize::MAX;
    for pattern in [
        [SIZE, 1, 1, NEVER],
        [SIZE, 30, 10, NEVER],
        [SIZE, 300, 100, NEVER],
        [SIZE, 1000, 300, NEVER],
        [SIZE, 3000, 1000, NEVER],
        [SIZE, 20_000, 5000, NEVER],
        [SIZE, 1, 1, 3],
        [SIZE, 8, 2, 2],
        [SIZE, 40, 10, 1],
        [SIZE, 300, 100, 2],
        [16, 500, 100, NEVER],
        [400, 100, 30, NEVER],
        [2000, 10, 3, NEVER],
        [5000, 3, 1, 2],
        [30_000, 2, 1, NEVER],
        [100_000, 1, 1, NEVER],
    ] {
        for (seen, kind) in [(seen(&watched(16), pattern), "plain"), (seen(&hardened_watched(16), pattern), "hardened")]
        {
            // Of the 300 samples at least that stay, the sum differs by 6 % as a rule.
            assert!(seen.iter().all(|part| (0.7..1.3).contains(part)), "{kind} {pattern:?}: {seen:?}");
        }
    }
}
