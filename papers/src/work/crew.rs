//! Threads that share a workload, and what they hand to each other.
//!
//! **What.** [`crew`] runs the same work on several threads and adds up their checksums; a sum does not tell who did which
//! part. A [`Queue`] hands objects from some threads to others: bounded, and in one allocation of its final size, so
//! that it takes no part in what is measured.
//!
//! **Threads.** One lock for each queue: objects should come in batches.
//! **Failure.** A thread that panics takes the workload with it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

/// The sum of what `work` returns on each of so many threads, which are numbered from 0.
pub fn crew(threads: usize, work: impl Fn(u64) -> u64 + Sync) -> u64 {
    thread::scope(|scope| {
        let work = &work;
        let all: Vec<_> = (0..threads as u64).map(|number| scope.spawn(move || work(number))).collect();
        all.into_iter().map(|thread| thread.join().expect("no thread panics")).fold(0, u64::wrapping_add)
    })
}

/// A bounded queue of any number of threads on either side.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    not_empty: Condvar,
    not_full: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    /// Threads that may still put something in.
    senders: usize,
}

impl<T> Queue<T> {
    /// An empty queue for so many items, into which so many threads put.
    pub fn new(capacity: usize, senders: usize) -> Self {
        let state = State { items: VecDeque::with_capacity(capacity.max(1)), senders };
        Self { state: Mutex::new(state), not_empty: Condvar::new(), not_full: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no thread panics")
    }

    /// Puts an item in; waits while the queue is full.
    pub fn put(&self, item: T) {
        let full = |state: &mut State<T>| state.items.len() == state.items.capacity();
        let mut state = self.not_full.wait_while(self.lock(), full).expect("no thread panics");
        state.items.push_back(item);
        self.not_empty.notify_one();
    }

    /// Takes the oldest item out; waits while there is none. None if there will not be any.
    pub fn take(&self) -> Option<T> {
        let none_yet = |state: &mut State<T>| state.items.is_empty() && state.senders > 0;
        let mut state = self.not_empty.wait_while(self.lock(), none_yet).expect("no thread panics");
        let item = state.items.pop_front();
        self.not_full.notify_one();
        item
    }

    /// Takes the oldest item out, if there is one now.
    pub fn try_take(&self) -> Option<T> {
        let item = self.lock().items.pop_front();
        self.not_full.notify_one();
        item
    }

    /// Puts an item in, if there is room; gives it back otherwise.
    pub fn try_put(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.items.len() == state.items.capacity() {
            return Err(item);
        }
        state.items.push_back(item);
        self.not_empty.notify_one();
        Ok(())
    }

    /// Says that a sender puts nothing more in.
    pub fn done(&self) {
        self.lock().senders -= 1;
        self.not_empty.notify_all();
    }
}

#[cfg(test)]
mod tests;
