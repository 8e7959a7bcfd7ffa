//! Stops all writers for a moment, so that a sync point copies one state. A thread holds its gate
//! while it runs commands.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Gates(Box<[Mutex<()>]>);

/// No thread writes meanwhile.
pub type Paused<'a> = Vec<MutexGuard<'a, ()>>;

impl Gates {
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Mutex::default()).collect())
    }

    pub fn enter(&self, i: usize) -> MutexGuard<'_, ()> {
        self.0[i].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn pause(&self) -> Paused<'_> {
        (0..self.0.len()).map(|i| self.enter(i)).collect()
    }
}
