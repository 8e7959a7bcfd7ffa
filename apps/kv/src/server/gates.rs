//! Stops all writers for a moment, so that a sync point copies one state.
//!
//! **What.** A gate for each thread that writes, held while it runs commands: with all gates held,
//! no command is half done. **Cost.** A lock that no other thread wants.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Gates(Box<[Mutex<()>]>);

/// No thread writes while this lives.
pub type Paused<'a> = Vec<MutexGuard<'a, ()>>;

impl Gates {
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Mutex::default()).collect())
    }

    /// Locks the gate of thread `i`, while it writes.
    pub fn enter(&self, i: usize) -> MutexGuard<'_, ()> {
        self.0[i].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread is inside of its gate.
    pub fn pause(&self) -> Paused<'_> {
        (0..self.0.len()).map(|i| self.enter(i)).collect()
    }
}
