//! The lock and the bell over a futex like the kernel's.
//!
//! **Unsafe.** Guarded values in cells whose races loom detects; a lock as over a fork.
#![cfg(loom)]

use craton_base::atomic::model::{check, check_weakened};
use craton_base::loom::cell::UnsafeCell;
use craton_base::loom::thread;
use craton_os::{Bell, Mutex};
use std::sync::Arc;

type Counter = Mutex<UnsafeCell<u32>>;

fn count(counter: &Counter) {
    let guard = counter.lock();
    // SAFETY: loom checks for exclusive access.
    guard.with_mut(|n| unsafe { *n += 1 });
}

fn counters(threads: u32, turns: u32) {
    let counter = Arc::new(Counter::new(UnsafeCell::new(0)));
    drop(counter.lock());
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || (0..turns).for_each(|_| count(&counter)))
        })
        .collect();
    (0..turns).for_each(|_| count(&counter));
    others.into_iter().for_each(|t| t.join().unwrap());
    // SAFETY: as in `count`.
    assert_eq!(counter.lock().with(|n| unsafe { *n }), threads * turns);
}

#[test]
fn two_threads_are_never_in_it_at_once_and_each_gets_its_turns() {
    check(4, || counters(2, 2));
}

#[test]
fn of_three_threads_none_sleeps_for_ever() {
    check(2, || counters(3, 1));
}

#[test]
#[should_panic = "Causality violation"]
fn without_its_orderings_what_it_guards_is_torn() {
    check_weakened(3, || counters(2, 1));
}

#[test]
fn a_fork_holds_the_lock_while_others_wait() {
    check(3, || {
        let counter = Arc::new(Counter::new(UnsafeCell::new(0)));
        drop(counter.lock());
        let other = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || count(&counter))
        };
        counter.lock_for_fork(false);
        thread::yield_now();
        // SAFETY: taken just now.
        unsafe { counter.release_after_fork() };
        count(&counter);
        other.join().unwrap();
        // SAFETY: as in `count`.
        assert_eq!(counter.lock().with(|n| unsafe { *n }), 2);
    });
}

fn ringing() {
    #[allow(clippy::arc_with_non_send_sync)] // loom's threads share what its cells look after.
    let shared = Arc::new((Bell::new(), UnsafeCell::new(0)));
    assert!(!shared.0.is_rung());
    let ringer = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            // SAFETY: loom checks for exclusive access.
            shared.1.with_mut(|n| unsafe { *n = 7 });
            shared.0.ring();
        })
    };
    while !shared.0.wait() {}
    // SAFETY: as above.
    assert_eq!(shared.1.with(|n| unsafe { *n }), 7);
    ringer.join().unwrap();
    assert!(shared.0.is_rung(), "until it is silenced");
}

#[test]
fn a_ring_is_heard() {
    check(4, ringing);
}

#[test]
fn a_nudge_ends_one_sleep_whenever_it_comes() {
    check(4, || {
        let bell = Arc::new(Bell::new());
        assert!(!bell.is_rung());
        let other = {
            let bell = Arc::clone(&bell);
            thread::spawn(move || bell.nudge())
        };
        assert!(!bell.wait());
        other.join().unwrap();
    });
}

#[test]
#[should_panic = "Causality violation"]
fn without_its_orderings_a_bell_says_nothing_of_what_was_written() {
    check_weakened(3, ringing);
}
