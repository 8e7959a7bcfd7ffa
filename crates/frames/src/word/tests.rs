//! How many locked operations requests take.

extern crate std;
use crate::{Config, Geometry, Init, Kind, Local, Metadata, Request, Sizes, Standard, Zone};
use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};
use std::cell::Cell;
use std::vec::Vec;

std::thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

std::thread_local! {
    static VISITS: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn visit() {
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

pub(crate) fn count() {
    COUNT.with(|count| count.set(count.get() + 1));
}

fn counted<R>(requests: usize, f: impl FnOnce() -> R) -> (f64, R) {
    let before = COUNT.get();
    let result = f();
    ((COUNT.get() - before) as f64 / requests as f64, result)
}

fn array<T: Default>(len: usize) -> Vec<T> {
    (0..len).map(|_| T::default()).collect()
}

fn with_zone(claims: bool, f: impl FnOnce(&Zone<'_>)) {
    let frames = 16 * Standard::TREE;
    let s = Sizes::of::<Standard>(frames, 1);
    let (rows, children): (Vec<AtomicU64>, Vec<AtomicU32>) = (array(s.rows), array(s.children));
    let (trees, index, locals): (Vec<AtomicU16>, Vec<AtomicU64>, Vec<Local>) =
        (array(s.trees), array(s.index), array(s.locals));
    let metadata = Metadata { rows: &rows, children: &children, trees: &trees, index: &index, locals: &locals };
    f(&Zone::new(frames, metadata, Init::Free, Config { claims, ..Config::new(1) }).unwrap());
}

fn request(order: u32) -> Request {
    Request { order, kind: if order < 9 { Kind::Movable } else { Kind::Huge }, processor: 0 }
}

/// Counts of a get, of a put, and of both together; `scramble`: puts in random order.
fn measure(claims: bool, order: u32, scramble: bool) -> (f64, f64, f64) {
    let mut all = (0.0, 0.0, 0.0);
    with_zone(claims, |zone| {
        let n = (zone.frames() / 2) >> order;
        let (gets, mut frames) = counted(n, || (0..n).map(|_| zone.get(request(order)).unwrap()).collect::<Vec<_>>());
        if scramble {
            let mut state = 1u64;
            for i in (1..n).rev() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                frames.swap(i, (state >> 33) as usize % (i + 1));
            }
        }
        let (puts, ()) = counted(n, || frames.iter().for_each(|frame| zone.put(*frame, request(order)).unwrap()));
        let pair = || zone.put(zone.get(request(order)).unwrap(), request(order)).unwrap();
        pair();
        let (pairs, ()) = counted(1000, || (0..1000).for_each(|_| pair()));
        all = (gets, puts, pairs);
    });
    all
}

#[test]
fn single_frames_take_one_operation_from_a_claim_and_two_alone() {
    let (gets, puts, pairs) = measure(true, 0, false);
    assert!(gets < 1.3 && puts < 1.4 && pairs <= 2.0, "{gets} {puts} {pairs}");
    let (gets, puts, _) = measure(true, 0, true);
    assert!(gets < 1.3 && puts < 2.05, "{gets} {puts}");
    let (gets, puts, pairs) = measure(false, 0, true);
    assert!(gets < 2.05 && puts < 2.05 && pairs <= 4.1, "{gets} {puts} {pairs}");
}

#[test]
fn a_frame_of_a_zone_that_is_nine_tenths_full_is_found_in_the_first_trees() {
    for (claims, order, most) in [(true, 0, 0.5), (false, 0, 2.0), (false, 3, 4.0)] {
        with_zone(claims, |zone| {
            let n = (zone.frames() >> order) / 10 * 9;
            let mut frames: Vec<usize> = (0..n).map(|_| zone.get(request(order)).unwrap()).collect();
            let mut state = 1u64;
            let mut random = |n: usize| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize % n
            };
            let mut churn = |requests: usize| {
                let before = VISITS.get();
                for _ in 0..requests {
                    let at = random(n);
                    zone.put(frames[at], request(order)).unwrap();
                    frames[at] = zone.get(request(order)).unwrap();
                }
                (VISITS.get() - before) as f64 / requests as f64
            };
            churn(2 * n);
            let visits = churn(100_000);
            assert!(visits <= most, "{visits} trees for each get of order {order}, claims: {claims}");
        });
    }
}

#[test]
fn huge_frames_take_one_operation() {
    for scramble in [false, true] {
        let (gets, puts, pairs) = measure(true, 9, scramble);
        assert!(gets < 1.2 && puts < 1.5 && pairs <= 2.5, "{gets} {puts} {pairs}");
    }
}

#[test]
fn a_refusal_searches_few_trees() {
    with_zone(true, |zone| {
        let frames: Vec<usize> = std::iter::from_fn(|| zone.get(request(0)).ok()).collect();
        assert_eq!(frames.len(), zone.frames());
        let visits = |order: u32| {
            let before = VISITS.get();
            assert!(zone.get(request(order)).is_err());
            VISITS.get() - before
        };
        visits(0);
        assert!(visits(0) <= 2, "{} trees of a full zone", visits(0));
        frames.iter().filter(|frame| **frame % 2 == 1).for_each(|frame| zone.put(*frame, request(0)).unwrap());
        visits(9);
        assert_eq!(visits(9), 0);
        zone.drain(0).unwrap();
        visits(1);
        // The sets' tries, then each tree once.
        assert!(visits(1) <= 16 + 12, "{} of 16 trees", visits(1));
    });
}
