//! Two threads free the same frames at once.

use crate::common::Arrays;
use craton_frames::{Config, Error, Geometry, Init, Kind, Request, Sizes, Standard, Zone};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

const FRAMES: usize = Standard::TREE;
const BATCH: usize = 512;

fn request(processor: usize, order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor }
}

/// Waits until both threads are at this step.
fn meet(arrived: &AtomicUsize, step: usize) {
    arrived.fetch_add(1, SeqCst);
    let mut spins = 0;
    while arrived.load(SeqCst) < 2 * (step + 1) {
        spins += 1;
        if spins % 1000 == 0 { thread::yield_now() } else { std::hint::spin_loop() }
    }
}

fn race(order: u32, claims: bool, processors: [usize; 2], rounds: usize) {
    let arrays = Arrays::new(Sizes::of::<Standard>(FRAMES, 2));
    let zone: Zone<'_> = arrays.zone(FRAMES, Init::Free, Config { claims, ..Config::new(2) }).unwrap();
    let blocks = BATCH.min(FRAMES >> order);
    for round in 0..rounds {
        let mut list: Vec<usize> = (0..blocks).map(|at| zone.get(request(at % 2, order)).unwrap()).collect();
        // In order, from the other end, and apart.
        match round % 3 {
            0 => {}
            1 => list.reverse(),
            _ => list.sort_by_key(|frame| frame.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        }
        let arrived = AtomicUsize::new(0);
        let free_all = |processor: usize| -> Vec<bool> {
            let put = |(at, frame): (usize, &usize)| {
                meet(&arrived, at);
                match zone.put(*frame, request(processor, order)) {
                    Ok(()) => true,
                    Err(Error::NotAllocated { .. }) => false,
                    Err(other) => panic!("{other}"),
                }
            };
            list.iter().enumerate().map(put).collect()
        };
        let (one, two) = thread::scope(|scope| {
            let other = scope.spawn(|| free_all(processors[1]));
            (free_all(processors[0]), other.join().unwrap())
        });
        let wrong = one.iter().zip(&two).filter(|(one, two)| one == two).count();
        assert_eq!(wrong, 0, "of {blocks} blocks of order {order} in round {round}, claims: {claims}");
        zone.check().unwrap();
        assert_eq!(zone.free_frames(), FRAMES);
    }
    (0..2).for_each(|processor| zone.drain(processor).unwrap());
    zone.check().unwrap();
    let all: Vec<usize> = (0..FRAMES).map(|_| zone.get(request(0, 0)).unwrap()).collect();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), FRAMES);
}

/// Each step waits for both threads, on a busy machine for long.
#[test]
fn of_two_frees_of_a_frame_one_succeeds() {
    let (apart, together) = if std::env::var_os("CRATON_FULL").is_some() { (16, 8) } else { (6, 3) };
    for claims in [true, false] {
        race(0, claims, [0, 1], apart);
        race(0, claims, [1, 1], together);
    }
}

#[test]
fn of_two_frees_of_a_block_one_succeeds() {
    for order in 1..=Standard::MAX_ORDER {
        race(order, true, [0, 1], 4);
    }
}
