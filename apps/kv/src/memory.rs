//! A store in memory, for tests: a second vector has what a crash would leave. Freeing twice, or a
//! foreign offset, panics.

use crate::store::{Change, Reservation, Store, StoreError};
use craton_base::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Outside of all objects.
pub const ROOT: u64 = 8;

/// The root slot lies before.
const FIRST: u64 = 64;

pub struct Memory {
    words: Vec<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct State {
    durable: Vec<u64>,
    /// Size by offset.
    live: BTreeMap<u64, u64>,
    reserved: BTreeMap<u64, u64>,
    free: BTreeMap<u64, Vec<u64>>,
    end: u64,
    images: Option<Vec<Image>>,
    /// Requests left.
    budget: Option<u64>,
    /// Calls of `maintain`, and the last one's time.
    maintained: u64,
    now_ms: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Image {
    words: Vec<u64>,
    live: BTreeMap<u64, u64>,
}

#[derive(Debug)]
pub struct Object {
    at: u64,
}

impl Reservation for Object {
    fn at(&self) -> u64 {
        self.at
    }
}

impl Memory {
    pub fn new(bytes: u64) -> Self {
        let words = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let durable = vec![0; words.len()];
        let state = State { durable, end: FIRST, ..State::default() };
        Self { words, state: Mutex::new(state) }
    }

    /// Calls of [`Store::maintain`].
    pub fn maintained(&self) -> u64 {
        self.state().maintained
    }

    /// A crash now would leave it.
    pub fn crashed(&self) -> Self {
        let state = self.state();
        Self::restarted(&Image { words: state.durable.clone(), live: state.live.clone() })
    }

    pub fn restarted(image: &Image) -> Self {
        let words = image.words.iter().map(|word| AtomicU64::new(*word)).collect();
        let mut state = State { durable: image.words.clone(), live: image.live.clone(), ..State::default() };
        state.end = FIRST;
        // Gaps between live objects are lost.
        if let Some((at, size)) = state.live.last_key_value() {
            state.end = at + size;
        }
        Self { words, state: Mutex::new(state) }
    }

    /// Around each change of durable words.
    pub fn watch(&self) {
        self.state().images = Some(Vec::new());
    }

    /// Since [`watch`](Self::watch) or the last call.
    pub fn images(&self) -> Vec<Image> {
        self.state().images.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Refuses requests for memory after the next `n`.
    pub fn refuse_after(&self, n: Option<u64>) {
        self.state().budget = n;
    }

    /// Published, and reserved.
    pub fn objects(&self) -> (usize, usize) {
        let state = self.state();
        (state.live.len(), state.reserved.len())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Durable at once.
    fn set(&self, state: &mut State, at: u64, value: u64) {
        // ORDERING: pairs with the acquire in `load`.
        self.words[(at / 8) as usize].store(value, Ordering::Release);
        state.durable[(at / 8) as usize] = value;
    }

    fn get(&self, at: u64) -> u64 {
        self.words[(at / 8) as usize].load(Ordering::Relaxed)
    }
}

impl State {
    fn publish(&mut self, at: u64) {
        let size = self.reserved.remove(&at).expect("only reserved objects are published");
        self.live.insert(at, size);
    }

    fn free(&mut self, at: u64) {
        let size = self.live.remove(&at).unwrap_or_else(|| panic!("no object to free at {at}"));
        self.free.entry(size).or_default().push(at);
    }

    fn keep_image(&mut self) {
        let Self { durable, live, images, .. } = self;
        if let Some(images) = images {
            images.push(Image { words: durable.clone(), live: live.clone() });
        }
    }
}

impl Store for Memory {
    type Reserved = Object;

    fn load(&self, at: u64) -> Option<u64> {
        let word = if at.is_multiple_of(8) { self.words.get((at / 8) as usize) } else { None };
        // ORDERING: pairs with the releases in `store` and `set`.
        word.map(|word| word.load(Ordering::Acquire))
    }

    fn store(&self, at: u64, value: u64) {
        // ORDERING: pairs with the acquire in `load`.
        self.words[(at / 8) as usize].store(value, Ordering::Release);
    }

    fn reserve(&self, bytes: u64) -> Result<Object, StoreError> {
        let size = bytes.next_multiple_of(16);
        let mut state = self.state();
        match &mut state.budget {
            Some(0) => return Err(StoreError::NoMemory),
            Some(left) => *left -= 1,
            None => {}
        }
        let at = match state.free.get_mut(&size).and_then(Vec::pop) {
            Some(at) => at,
            None if state.end + size <= 8 * self.words.len() as u64 => {
                state.end += size;
                state.end - size
            }
            None => return Err(StoreError::NoMemory),
        };
        state.reserved.insert(at, size);
        Ok(Object { at })
    }

    fn cancel(&self, object: Object) {
        let mut state = self.state();
        let size = state.reserved.remove(&object.at).expect("only reserved objects are cancelled");
        state.free.entry(size).or_default().push(object.at);
    }

    fn persist(&self, at: u64, bytes: u64) {
        let mut state = self.state();
        for at in (at / 8 * 8..at + bytes).step_by(8) {
            state.durable[(at / 8) as usize] = self.get(at);
        }
        state.keep_image();
    }

    fn commit<I: IntoIterator<Item = Change<Object>>>(&self, changes: I) -> Result<(), StoreError> {
        let mut state = self.state();
        state.keep_image();
        for change in changes {
            match change {
                Change::Attach { slot, object } => {
                    state.publish(object.at);
                    self.set(&mut state, slot, object.at);
                }
                Change::Replace { slot, object } => {
                    state.free(self.get(slot));
                    state.publish(object.at);
                    self.set(&mut state, slot, object.at);
                }
                Change::Free { slot } => {
                    state.free(self.get(slot));
                    self.set(&mut state, slot, 0);
                }
                Change::Set { slot, value } => self.set(&mut state, slot, value),
                Change::Link { slot, object, word, value } => {
                    state.publish(object.at);
                    self.set(&mut state, slot, object.at);
                    self.set(&mut state, word, value);
                }
            }
        }
        state.keep_image();
        Ok(())
    }

    fn maintain(&self, now_ms: u64) {
        let mut state = self.state();
        state.maintained += 1;
        assert!(now_ms >= state.now_ms);
        state.now_ms = now_ms;
    }
}
