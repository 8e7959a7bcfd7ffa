//! The heap's thread while others start and end it: at most one runs, none after a stop, and none
//! waits for ever.
//!
//! **Unsafe.** Keeps the thread's handle in a cell whose races loom detects; the states guard it.
#![cfg(loom)]

#[path = "../src/govern/background"]
#[allow(dead_code)]
mod background {
    pub mod life;
}

use background::life::Life;
use craton_base::atomic::model::{check, check_weakened};
use craton_base::loom::cell::UnsafeCell;
use craton_base::loom::thread::{self, JoinHandle};
use craton_os::Bell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

struct World {
    life: Life,
    end: Bell,
    handle: UnsafeCell<Option<JoinHandle<()>>>,
    /// Ours, not the model's.
    alive: AtomicU32,
    is_restless: bool,
}

// SAFETY: one thread at a time uses the handle; loom checks.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new(is_restless: bool) -> Arc<Self> {
        let (life, end, handle) = (Life::new(), Bell::new(), UnsafeCell::new(None));
        assert!(life.may_start() && life.is_calm() && !end.is_rung());
        Arc::new(Self { life, end, handle, alive: AtomicU32::new(0), is_restless })
    }

    fn run(&self) {
        if !(self.is_restless && self.life.end_by_itself()) {
            while !self.end.wait() {}
        }
        self.alive.fetch_sub(1, Relaxed);
    }

    fn start(self: &Arc<Self>) {
        self.life.start(
            || self.join(),
            || {
                self.end.silence();
                assert_eq!(self.alive.fetch_add(1, Relaxed), 0, "there was a thread");
                let world = Arc::clone(self);
                let handle = thread::spawn(move || world.run());
                // SAFETY: loom checks for exclusive access.
                self.handle.with_mut(|h| unsafe { *h = Some(handle) });
                true
            },
        );
    }

    fn join(&self) {
        // SAFETY: as in `start`.
        let handle = self.handle.with_mut(|h| unsafe { (*h).take() });
        handle.expect("the thread that was started last").join().unwrap();
    }

    fn stop(&self) -> bool {
        self.life.stop(
            thread::yield_now,
            |end| end(),
            || {
                self.end.ring();
                self.join();
                true
            },
        )
    }

    fn assert_none(&self) {
        assert_eq!(self.alive.load(Relaxed), 0, "no thread is wanted");
    }
}

fn beside(world: &Arc<World>, f: impl Fn(&Arc<World>) + 'static) -> JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || f(&world))
}

fn fork_while_started() {
    let world = World::new(false);
    let starter = beside(&world, World::start);
    world.life.hold();
    world.stop();
    world.assert_none();
    thread::yield_now();
    world.assert_none();
    world.life.release();
    starter.join().unwrap();
    world.stop();
    world.assert_none();
}

#[test]
fn while_a_fork_holds_there_is_no_thread() {
    check(3, fork_while_started);
}

#[test]
#[should_panic = "no thread is wanted"]
fn without_its_orderings_a_fork_may_copy_a_process_with_a_thread() {
    check_weakened(3, fork_while_started);
}

#[test]
fn after_a_seal_no_thread_is_started_any_more() {
    check(3, || {
        let world = World::new(false);
        let starter = beside(&world, World::start);
        world.life.seal();
        world.stop();
        world.assert_none();
        starter.join().unwrap();
        world.assert_none();
        assert!(!world.life.may_start() && !world.life.runs());
    });
}

#[test]
fn of_two_that_start_it_one_does() {
    check(3, || {
        let world = World::new(false);
        let other = beside(&world, World::start);
        world.start();
        other.join().unwrap();
        assert!(world.life.runs() && world.stop());
        world.assert_none();
    });
}

#[test]
fn of_two_that_stop_it_each_returns_when_it_has_ended() {
    check(3, || {
        let world = World::new(false);
        world.start();
        let other = beside(&world, |world| {
            world.stop();
            world.assert_none();
        });
        world.stop();
        world.assert_none();
        other.join().unwrap();
    });
}

#[test]
fn one_that_ends_by_itself_is_waited_for_once() {
    check(3, || {
        let world = World::new(true);
        world.start();
        let other = beside(&world, |world| _ = world.stop());
        world.start();
        other.join().unwrap();
        world.stop();
        world.assert_none();
        assert!(world.life.is_calm());
    });
}
