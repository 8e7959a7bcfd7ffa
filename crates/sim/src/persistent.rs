//! Simulated persistent memory behind volatile caches, whose crashes a test can list.
//!
//! **What.** The test asks each recorded [`Moment`] for the images that a crash can leave.
//! ```
//! use craton_base::Medium;
//! use craton_sim::{Rng, SimMedium};
//! let (medium, mut rng) = (SimMedium::new(4096, 1 << 20), Rng::new(1));
//! medium.record();
//! // A value becomes valid when its flag is set.
//! medium.store(0, 7);
//! medium.flush(0);
//! medium.fence();
//! medium.store(64, 1);
//! medium.flush(64);
//! medium.fence();
//! for moment in medium.take_moments() {
//!     for image in moment.new_images(4096, &mut rng) {
//!         let after = SimMedium::from_image(&image); // Recovery would run on it.
//!         assert!(after.load(64) == 0 || after.load(0) == 7);
//!     }
//! }
//! assert!(medium.now().images(4096, &mut rng).all(|image| image.word(64) == 1));
//! ```
//! **From.** NVAlloc §2.1, §3.1; x86's store order: a crash leaves a prefix of each line's stores.
//! **Invariants.** *Z6* what loads see of a line is its durable content under its unfenced stores:
//! a store past the seam panics at the line's next event; in an array it counts as made there. *Z7*
//! the last recorded moment is `now`.
//! **Threads.** A fence makes durable what its thread flushed. A probe runs after each event,
//! without the lock, so that a test can run other threads in between.
//! **Sizes.** Durable when [`resize`](Space::resize) returns, as after `fsync`. A crash may undo a
//! discard until one of its pages is stored to or the size changes.

mod arrays;
mod history;
mod image;
mod state;
mod trace;

use crate::FaultRule;
use arrays::Arrays;
use craton_base::{LINE_BYTES, LINE_WORDS, Line, Medium, Space, SpaceError};
use image::PAGE_BYTES;
pub use image::{Event, Image, Images, Moment};
pub use state::Fallible;
use state::State;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
pub use trace::{Counted, Counters, Latency, REFLUSH_DISTANCES};

/// Volatile caches.
pub type SimMedium = SimPersistent<true>;
/// Persistent caches, or processes that die.
pub type SimCached = SimPersistent<false>;

/// Clones share it.
#[derive(Clone, Debug)]
pub struct SimPersistent<const FLUSHES: bool> {
    inner: Arc<Inner>,
}

const PAGE_WORDS: usize = PAGE_BYTES as usize / 8;
const GROUP_PAGES: usize = 512;
type Words = Box<[AtomicU64; PAGE_WORDS]>;
type Group = Box<[OnceLock<Words>]>;

struct Inner {
    limit: u64,
    len: AtomicU64,
    groups: Box<[OnceLock<Group>]>,
    arrays: Arrays,
    state: Mutex<State>,
    probe: OnceLock<Probe>,
}

type Probe = Box<dyn Fn(Event) + Send + Sync>;

impl<const FLUSHES: bool> SimPersistent<FLUSHES> {
    pub fn new(len: u64, limit: u64) -> Self {
        Self::from_image(&Image::zeros(len, limit))
    }

    pub fn from_image(image: &Image) -> Self {
        let Image { len, limit, contents } = image.clone();
        assert!(len.is_multiple_of(PAGE_BYTES) && len <= limit, "a medium of {len} bytes below {limit}");
        let groups = limit.div_ceil(PAGE_BYTES * GROUP_PAGES as u64);
        let unfenced = Arc::new(BTreeMap::new());
        let now = Moment { len, limit, durable: contents, unfenced, discarded: Vec::new(), event: None, step: 0 };
        let state = State::new(now);
        let groups = (0..groups).map(|_| OnceLock::new()).collect();
        let (len, state, probe) = (AtomicU64::new(len), Mutex::new(state), OnceLock::new());
        Self { inner: Arc::new(Inner { limit, len, groups, arrays: Arrays::new(limit), state, probe }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a moment after each event, this one first.
    pub fn record(&self) {
        let mut state = self.state();
        let now = Moment { event: None, ..state.now.clone() };
        state.moments = Some(vec![now]);
    }

    /// Since [`record`](Self::record), which ends.
    pub fn take_moments(&self) -> Vec<Moment> {
        self.state().moments.take().unwrap_or_default()
    }

    pub fn now(&self) -> Moment {
        self.state().now.clone()
    }

    pub fn steps(&self) -> u64 {
        self.state().now.step
    }

    /// For runs too long or too parallel to record.
    pub fn stop_at(&self, step: u64) {
        let mut state = self.state();
        (state.stop, state.stopped) = (Some(step), None);
    }

    pub fn stopped(&self) -> Option<Moment> {
        self.state().stopped.clone()
    }

    /// Without a lock held; once for each medium.
    pub fn set_probe(&self, probe: impl Fn(Event) + Send + Sync + 'static) {
        assert!(self.inner.probe.set(Box::new(probe)).is_ok(), "the medium has a probe");
    }

    /// From 1 on.
    pub fn fail(&self, event: Fallible, rule: FaultRule) {
        self.state().rules[event as usize] = (rule, 0);
    }

    /// Since the kind's rule was set.
    pub fn fallible_events(&self, event: Fallible) -> u64 {
        self.state().rules[event as usize].1
    }

    pub fn counters(&self) -> Counters {
        self.state().trace.counters
    }

    /// The offsets of the first flushes.
    pub fn reset_counters(&self, keep_first: usize) {
        self.state().trace.reset(keep_first);
    }

    /// And line stores: the points of figure 2.
    pub fn first_flushes(&self) -> Vec<u64> {
        self.state().trace.first_flushes()
    }

    /// In each `bytes` bytes.
    pub fn histogram(&self, bytes: u64) -> BTreeMap<u64, u64> {
        self.state().trace.histogram(bytes)
    }

    pub fn load(&self, at: u64) -> u64 {
        if let Some(array) = self.inner.arrays.find(at) {
            return array.load(at);
        }
        // ORDERING: pairs with `put`: a reader of a flag sees earlier stores.
        self.word(at).load(Ordering::Acquire)
    }

    fn words(&self, page: u64) -> &Words {
        let (group, at) = (page as usize / GROUP_PAGES, page as usize % GROUP_PAGES);
        let make_group = || (0..GROUP_PAGES).map(|_| OnceLock::new()).collect();
        self.inner.groups[group].get_or_init(make_group)[at].get_or_init(|| {
            // A resize can change them.
            let state = self.state();
            let is_discarded = state.now.discarded.iter().any(|pages| pages.contains(&page));
            let durable = state.now.durable.page(page).filter(|_| !is_discarded).cloned();
            drop(state);
            let word = |i: usize| durable.as_ref().map_or(0, |page| page[i / LINE_WORDS][i % LINE_WORDS]);
            Box::new(std::array::from_fn(|i| AtomicU64::new(word(i))))
        })
    }

    fn line_seen(&self, line: u64) -> Line {
        std::array::from_fn(|word| self.load(line * LINE_BYTES + 8 * word as u64))
    }

    fn event<T>(&self, event: Event, at: u64, act: impl FnOnce(&mut State, u64) -> T) -> T {
        let line = at / LINE_BYTES;
        // Makes the page, which takes the lock.
        let _ = self.load(at / 8 * 8);
        let mut state = self.state();
        let page = at / PAGE_BYTES;
        if matches!(event, Event::Store(_) | Event::StoreLine(_)) {
            state.settle_discards(|pages| pages.contains(&page));
        }
        if !state.now.discarded.iter().any(|pages| pages.contains(&page)) {
            let expected = state.now.unfenced.get(&line).map_or_else(|| state.now.durable.line(line), |h| h.seen());
            let seen = self.line_seen(line);
            let is_array = self.inner.arrays.find(line * LINE_BYTES).is_some();
            assert!(is_array || seen == expected, "the line at {} was stored to past the medium", line * LINE_BYTES);
            for word in (0..LINE_WORDS).filter(|word| seen[*word] != expected[*word]) {
                Self::record_store(&mut state, line, word, seen[word]);
            }
        }
        let result = act(&mut state, line);
        state.end(event);
        drop(state);
        self.probe(event);
        result
    }

    fn probe(&self, event: Event) {
        if let Some(probe) = self.inner.probe.get() {
            probe(event);
        }
    }

    fn put(&self, at: u64, value: u64) {
        // ORDERING: pairs with `load`, and acquiring loads of the medium's users.
        self.word(at).store(value, Ordering::Release);
    }

    fn store_word(&self, state: &mut State, at: u64, value: u64) {
        state.trace.counters.stores += 1;
        Self::record_store(state, at / LINE_BYTES, (at % LINE_BYTES / 8) as usize, value);
        self.put(at, value);
    }

    fn record_store(state: &mut State, line: u64, word: usize, value: u64) {
        if FLUSHES {
            state.history(line).store(word, value);
        } else {
            let mut content = state.now.durable.line(line);
            content[word] = value;
            state.now.durable.set(line, content);
        }
    }

    fn check_pages(&self, at: u64, len: u64) {
        assert!(at.is_multiple_of(PAGE_BYTES) && len.is_multiple_of(PAGE_BYTES), "{at}+{len} are not whole pages");
    }

    fn zero(&self, pages: Range<u64>) {
        let bytes = pages.start * PAGE_BYTES..pages.end * PAGE_BYTES;
        self.inner.arrays.iter().for_each(|array| array.zero(&bytes));
        for page in pages {
            let group = self.inner.groups[page as usize / GROUP_PAGES].get();
            if let Some(words) = group.and_then(|group| group[page as usize % GROUP_PAGES].get()) {
                // ORDERING: pairs with `load`.
                words.iter().for_each(|word| word.store(0, Ordering::Release));
            }
        }
    }
}

impl<const FLUSHES: bool> Medium for SimPersistent<FLUSHES> {
    const FLUSHES: bool = FLUSHES;

    fn len(&self) -> u64 {
        // ORDERING: pairs with `resize`.
        self.inner.len.load(Ordering::Acquire)
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        let len = self.len();
        assert!(at.is_multiple_of(8) && at < len, "no word at {at} of a medium of {len} bytes");
        if let Some(array) = self.inner.arrays.find(at) {
            let words = array.words().unwrap_or_else(|| panic!("no word of 8 bytes at {at}"));
            return &words[(at - array.begin()) as usize / 8];
        }
        &self.words(at / PAGE_BYTES)[(at % PAGE_BYTES / 8) as usize]
    }

    fn store(&self, at: u64, value: u64) {
        assert!(at.is_multiple_of(8), "no word at {at}");
        self.event(Event::Store(at), at, |state, _| self.store_word(state, at, value));
    }

    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        assert!(at.is_multiple_of(8), "no word at {at}");
        self.event(Event::Store(at), at, |state, _| {
            let old = self.load(at);
            self.store_word(state, at, (old | set) & !clear);
            old
        })
    }

    fn store_line(&self, at: u64, line: &Line) {
        assert!(at.is_multiple_of(LINE_BYTES), "no line at {at}");
        let thread = thread::current().id();
        let store = |state: &mut State, number| {
            state.trace.store_line(at);
            state.history(number).store_line(thread, *line);
            state.cover(thread, number);
            (at..).step_by(8).zip(line).for_each(|(at, value)| self.put(at, *value));
        };
        self.event(Event::StoreLine(at), at, store);
        if !FLUSHES {
            // The process can die with some words stored.
            self.event(Event::Fence, at, |state, _| state.fence(thread));
        }
    }

    fn flush(&self, at: u64) {
        let thread = thread::current().id();
        self.event(Event::Flush(at), at, |state, line| {
            state.trace.flush(at);
            let is_dirty = state.now.unfenced.contains_key(&line);
            let is_new = if state.fails(Fallible::Flush) {
                is_dirty
            } else if is_dirty {
                state.cover(thread, line);
                state.history(line).flush(thread)
            } else {
                false
            };
            state.trace.counters.clean_flushes += u64::from(!is_new);
        });
    }

    fn fence(&self) {
        let mut state = self.state();
        state.trace.fence();
        if !state.fails(Fallible::Fence) {
            state.fence(thread::current().id());
        }
        state.end(Event::Fence);
        drop(state);
        self.probe(Event::Fence);
    }

    fn array(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        let bytes = 8 * words as u64;
        let array = (at + bytes <= self.len()).then(|| self.inner.arrays.get(at, bytes, false, |at| self.load(at)));
        array?.words()?.get(..words)
    }

    fn half_array(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        let bytes = 4 * words as u64;
        let array = (at + bytes <= self.len()).then(|| self.inner.arrays.get(at, bytes, true, |at| self.load(at)));
        array?.halves()?.get(..words)
    }

    fn stored(&self, at: u64) {
        self.event(Event::Store(at / 8 * 8), at, |state, _| state.trace.counters.stores += 1);
    }
}

impl<const FLUSHES: bool> Space for SimPersistent<FLUSHES> {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        self.check_pages(0, len);
        let mut state = self.state();
        if state.fails(Fallible::Resize) || len > self.inner.limit {
            return Err(SpaceError::Full);
        }
        state.settle_discards(|_| true);
        let old = std::mem::replace(&mut state.now.len, len);
        if len < old {
            let gone = len / PAGE_BYTES..old / PAGE_BYTES;
            state.now.discarded.push(gone.clone());
            state.settle_discards(|_| true);
            self.zero(gone);
        }
        // ORDERING: pairs with `len`.
        self.inner.len.store(len, Ordering::Release);
        state.end(Event::Resize);
        drop(state);
        self.probe(Event::Resize);
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        self.check_pages(at, len);
        assert!(at + len <= self.len(), "no pages at {at}+{len} of a medium of {} bytes", self.len());
        let mut state = self.state();
        if state.fails(Fallible::Discard) {
            return Err(SpaceError::System(5));
        }
        let pages = at / PAGE_BYTES..(at + len) / PAGE_BYTES;
        if FLUSHES {
            state.now.discarded.push(pages.clone());
        } else {
            state.now.durable.clear(pages.clone());
        }
        self.zero(pages);
        state.end(Event::Discard);
        drop(state);
        self.probe(Event::Discard);
        Ok(())
    }

    fn allocate(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        self.check_pages(at, len);
        assert!(at + len <= self.len(), "no pages at {at}+{len} of a medium of {} bytes", self.len());
        if self.state().fails(Fallible::Allocate) { Err(SpaceError::Full) } else { Ok(()) }
    }

    fn limit(&self) -> u64 {
        self.inner.limit
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimPersistent").field("len", &self.len).field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
