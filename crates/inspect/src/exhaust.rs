//! A search by several threads, which hand each other work.
//!
//! **State.** Each thread has a stack of open items. A thread without one waits in the pool, and
//! another leaves half of its stack there. When all wait, the search is over.
//!
//! **Threads.** The pool is behind a lock; `wanted` only tells when to look there.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A shorter stack is not worth a hand-over.
const LEAST: usize = 256;
const MOST_THREADS: usize = 8;

/// As many as the machine runs at once.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

struct Pool<T> {
    threads: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
    /// Threads that wait.
    wanted: AtomicUsize,
}

struct State<T> {
    stacks: Vec<Vec<T>>,
    waiting: usize,
}

/// Each thread calls what `make` gave it until no item is open. A call takes some from the end of
/// the stack, and may add others.
pub fn exhaust<T: Send, S: FnMut(&mut Vec<T>)>(open: Vec<T>, threads: usize, make: impl Fn() -> S + Sync) {
    let state = Mutex::new(State { stacks: vec![open], waiting: 0 });
    let pool = Pool { threads, state, changed: Condvar::new(), wanted: AtomicUsize::new(0) };
    let work = || {
        let mut step = make();
        while let Some(mut open) = pool.next() {
            while !open.is_empty() {
                step(&mut open);
                // ORDERING: relaxed; a late answer only delays the hand-over, which takes the lock.
                if open.len() >= LEAST && pool.wanted.load(Relaxed) > 0 {
                    pool.leave(open.split_off(open.len() / 2));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}

impl<T> Pool<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when all threads wait.
    fn next(&self) -> Option<Vec<T>> {
        let mut state = self.lock();
        state.waiting += 1;
        loop {
            if let Some(stack) = state.stacks.pop() {
                state.waiting -= 1;
                self.tell(&state);
                return Some(stack);
            }
            if state.waiting == self.threads {
                self.changed.notify_all();
                return None;
            }
            self.tell(&state);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leave(&self, stack: Vec<T>) {
        let mut state = self.lock();
        state.stacks.push(stack);
        self.tell(&state);
        self.changed.notify_one();
    }

    /// Each stack in the pool serves one of those that wait.
    fn tell(&self, state: &State<T>) {
        self.wanted.store(state.waiting.saturating_sub(state.stacks.len()), Relaxed);
    }
}

#[cfg(test)]
mod tests;
