//! A fork's walk over the locks, in this process.

use super::*;
use crate::front;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

#[test]
fn a_fork_holds_every_lock_and_gives_all_up_again() {
    assert!(!front::malloc(1).is_null(), "the heap is set up");
    hold_all(false);
    let held = [
        SETTING_UP.is_own(),
        LIMITS.callback.function.is_own(),
        REGISTRY.is_own(),
        STATS_FILE.is_own(),
        TRACE.recorder.is_own(),
        TRACE.asked.is_own(),
        TRACE.path.is_own(),
    ];
    // SAFETY: taken above.
    unsafe { release_all() };
    assert_eq!(held, [true; 7]);
    assert!(!SETTING_UP.is_own() && !TRACE.path.is_own());
    assert!(!front::malloc(300 << 10).is_null(), "the heap's locks are free again");
}

#[test]
fn no_other_thread_is_inside_while_a_fork_holds_the_locks() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    assert!(!front::malloc(1).is_null());
    hold_all(false);
    let other = thread::spawn(|| {
        // A large object of a size that no cache keeps.
        let object = front::malloc(3 << 20);
        DONE.store(1, Relaxed);
        // SAFETY: the object is ours.
        unsafe { front::free(object) }.unwrap();
    });
    thread::sleep(Duration::from_millis(30));
    let before = DONE.load(Relaxed);
    // SAFETY: taken above.
    unsafe { release_all() };
    other.join().unwrap();
    assert_eq!((before, DONE.load(Relaxed)), (0, 1));
}

#[test]
fn a_handler_that_forks_keeps_the_locks_of_what_it_interrupted() {
    let guard = STATS_FILE.lock();
    hold_all(true);
    // SAFETY: taken above.
    unsafe { release_all() };
    assert!(STATS_FILE.is_own(), "the interrupted part goes on with it");
    drop(guard);
    assert!(!STATS_FILE.is_own());
}
