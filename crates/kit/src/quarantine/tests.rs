use super::*;
use crate::{Buffer, Mistake};
use std::vec::Vec;

fn wait(quarantine: &Quarantine, address: usize, bytes: usize) -> Vec<usize> {
    let mut left = Vec::new();
    let waited = quarantine.wait(
        address,
        bytes,
        |_| (),
        |address| {
            left.push(address);
            Ok(())
        },
    );
    assert!(waited.is_ok());
    left
}

#[test]
fn the_oldest_leave_when_there_are_more_bytes_than_the_option_allows() {
    let quarantine = Quarantine::new();
    assert_eq!(quarantine.limit(), 16 << 20);
    quarantine.set_limit(1000);
    for address in 1..=10 {
        assert_eq!(wait(&quarantine, address, 100), []);
    }
    assert_eq!(wait(&quarantine, 11, 250), [1, 2, 3]);
    assert_eq!(wait(&quarantine, 12, 1001), [12], "one that is too large pushes no other out");
    quarantine.set_limit(0);
    assert_eq!(wait(&quarantine, 13, 1), [13]);
    quarantine.set_limit(100);
    assert_eq!(wait(&quarantine, 14, 100), [4, 5, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn the_next_ones_are_prefetched() {
    let quarantine = Quarantine::new();
    quarantine.set_limit(500);
    (1..=5).for_each(|address| assert_eq!(wait(&quarantine, address, 100), []));
    let soon = core::cell::Cell::new(0);
    quarantine.wait(6, 100, |address| soon.set(address), |_| Ok(())).unwrap_or_else(|_| unreachable!());
    assert_eq!(soon.get(), 1 + AHEAD);
}

#[test]
fn a_full_ring_lets_the_oldest_go_whatever_its_bytes() {
    let quarantine = Quarantine::new();
    quarantine.set_limit(usize::MAX >> 1);
    (0..MOST - 1).for_each(|address| assert!(wait(&quarantine, address, 0).is_empty()));
    assert_eq!(wait(&quarantine, MOST, 0), [0]);
    assert_eq!(wait(&quarantine, MOST + 1, 0), [1]);
}

#[test]
fn a_finding_ends_the_wait_and_the_rest_stays() {
    let quarantine = Quarantine::new();
    quarantine.set_limit(300);
    (1..=3).for_each(|address| assert_eq!(wait(&quarantine, address, 100), []));
    let finding = Finding { mistake: Mistake::DoubleFree, buffer: Buffer::default() };
    assert!(quarantine.wait(4, 300, |_| (), |_| Err(finding)).is_err());
    let mut rest = Vec::new();
    quarantine.each_own(|address| rest.push(address));
    assert_eq!(rest, [2, 3, 4]);
}

#[test]
fn a_child_owns_only_what_it_has_freed_itself() {
    let quarantine = Quarantine::new();
    quarantine.set_limit(500);
    (1..=3).for_each(|address| assert_eq!(wait(&quarantine, address, 100), []));
    quarantine.lock_for_fork(false);
    // SAFETY: taken just now.
    unsafe {
        quarantine.forked();
        quarantine.release_after_fork();
    }
    assert_eq!(wait(&quarantine, 4, 100), []);
    let own = |quarantine: &Quarantine| {
        let mut own = Vec::new();
        quarantine.each_own(|address| own.push(address));
        own
    };
    assert_eq!(own(&quarantine), [4]);
    assert_eq!(wait(&quarantine, 5, 400), [1, 2, 3]);
    assert_eq!(own(&quarantine), [4, 5]);
    assert!(quarantine.range().0 != 0);
}
