//! Cursors of `SCAN`: the protocol wants numbers, so the server keeps the keys of the latest steps.
//! An unknown number is refused.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

const MOST: usize = 4096;

#[derive(Default)]
pub struct Cursors(Mutex<State>);

#[derive(Default)]
struct State {
    /// The first key's number, less one: numbers begin at 1.
    forgotten: u64,
    keys: VecDeque<Box<[u8]>>,
}

impl Cursors {
    /// The number can be used again.
    pub fn keep(&self, key: Box<[u8]>) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.keys.len() == MOST {
            state.keys.pop_front();
            state.forgotten += 1;
        }
        state.keys.push_back(key);
        state.forgotten + state.keys.len() as u64
    }

    pub fn key(&self, number: u64) -> Option<Box<[u8]>> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let i = number.checked_sub(state.forgotten + 1)?;
        state.keys.get(usize::try_from(i).ok()?).cloned()
    }
}
