use super::*;
use crate::{caches, front, heaps};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A handler's fork takes a lock out of order: two would wait for each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_fork_holds_every_lock_and_gives_all_up_again() {
    let _alone = alone();
    assert!(!front::malloc(1).is_null(), "the heap is set up");
    lock_all(false);
    let held = [
        SETTING_UP.is_own(),
        LIMITS.callback.function.is_own(),
        REGISTRY.is_own(),
        STATS_FILE.is_own(),
        TRACE.recorder.is_own(),
        TRACE.requested.is_own(),
        TRACE.path.is_own(),
    ];
    // SAFETY: taken above.
    unsafe { release_all() };
    assert_eq!(held, [true; 7]);
    assert!(!SETTING_UP.is_own() && !TRACE.path.is_own());
    assert!(!front::malloc(300 << 10).is_null(), "the heap's locks are free again");
}

fn object_cache() -> caches::Options<'static> {
    caches::Options {
        name: b"fork",
        size: 64,
        align: 0,
        constructor: None,
        destructor: None,
        reclaim: None,
        argument: null_mut(),
        limit_objects: 0,
        limit_bytes: 0,
        working_set_ms: 0,
        flags: 0,
    }
}

#[test]
fn no_other_thread_is_inside_while_a_fork_holds_the_locks() {
    let _alone = alone();
    let requests: [fn(); 4] = [
        || {
            // Large: no cache keeps it.
            let object = front::malloc(3 << 20);
            // SAFETY: ours.
            unsafe { front::free(object) }.unwrap();
        },
        || {
            let options = heaps::Options { name: b"fork", limit: 0, place: heaps::Place::Shared };
            heaps::api::destroy(heaps::api::create(options).unwrap()).unwrap();
        },
        || {
            let made = caches::api::create(&object_cache()).unwrap();
            caches::api::destroy(made).unwrap().unwrap();
        },
        || KIT.show_option(|_| ()),
    ];
    // To make all tables.
    requests.iter().for_each(|request| request());
    let done = [const { AtomicU32::new(0) }; 4];
    thread::scope(|scope| {
        lock_all(false);
        for (request, done) in requests.iter().zip(&done) {
            scope.spawn(move || {
                request();
                done.store(1, Relaxed);
            });
        }
        thread::sleep(Duration::from_millis(30));
        let before = done.each_ref().map(|done| done.load(Relaxed));
        // SAFETY: taken above.
        unsafe { release_all() };
        assert_eq!(before, [0; 4]);
    });
    assert_eq!(done.map(|done| done.into_inner()), [1; 4]);
}

#[test]
fn a_handler_that_forks_keeps_the_locks_of_what_it_interrupted() {
    let _alone = alone();
    let guard = STATS_FILE.lock();
    lock_all(true);
    // SAFETY: taken above.
    unsafe { release_all() };
    assert!(STATS_FILE.is_own(), "the interrupted part goes on with it");
    drop(guard);
    assert!(!STATS_FILE.is_own());
}
