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
    with_trees(16, Config { claims, ..Config::new(1) }, f);
}

fn with_trees(trees: usize, config: Config, f: impl FnOnce(&Zone<'_>)) {
    let frames = trees * Standard::TREE;
    let s = Sizes::of::<Standard>(frames, config.processors);
    let (rows, children): (Vec<AtomicU64>, Vec<AtomicU32>) = (array(s.rows), array(s.children));
    let (trees, index, locals): (Vec<AtomicU16>, Vec<AtomicU64>, Vec<Local>) =
        (array(s.trees), array(s.index), array(s.locals));
    let metadata = Metadata { rows: &rows, children: &children, trees: &trees, index: &index, locals: &locals };
    f(&Zone::new(frames, metadata, Init::Free, config).unwrap());
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

#[test]
fn a_processor_without_a_tree_returns_to_the_huge_frame_that_it_found() {
    with_trees(1, Config::new(8), |zone| {
        let n = (zone.frames() / 2) >> 4;
        let before = VISITS.get();
        for i in 0..n {
            zone.get(Request { processor: i % 8, ..request(4) }).unwrap();
        }
        let visits = (VISITS.get() - before) as f64 / n as f64;
        assert!(visits <= 0.4, "{visits} trees for each get");
    });
}

#[test]
fn a_processor_whose_tree_is_full_becomes_a_guest_in_one_of_another_kind() {
    with_trees(2, Config::new(1), |zone| {
        let unmovable = Request { kind: Kind::Unmovable, ..request(0) };
        zone.get(unmovable).unwrap();
        // The movable kind's tree, then half of the other.
        (0..Standard::TREE).for_each(|_| _ = zone.get(request(0)).unwrap());
        let before = VISITS.get();
        (0..Standard::TREE / 2).for_each(|_| _ = zone.get(request(0)).unwrap());
        let visits = VISITS.get() - before;
        // A claim of 32 frames is one visit.
        assert!(visits <= (Standard::TREE / 64 + 2 * Standard::CHILDREN) as u64, "{visits} trees");
    });
}

#[test]
fn an_idle_claim_bars_no_frames_of_a_huge_frame() {
    with_trees(1, Config::new(1), |zone| {
        zone.get(Request { kind: Kind::Unmovable, ..request(0) }).unwrap();
        // All but the half that the unmovable kind claimed.
        for _ in 0..Standard::HUGE - (1 << Standard::CLAIM_ORDER) {
            let frame = zone.get(request(0)).unwrap();
            assert!(frame < Standard::HUGE, "{frame} while the first huge frame has free ones");
        }
        zone.check().unwrap();
    });
}
