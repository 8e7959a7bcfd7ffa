//! Processors' arrays of free objects, for all caches.
//!
//! Each processor's area has an array for each cache, for restartable sequences. An open array has
//! its cache's handle as owner, which is a sequence's whole check of a handle.
//!
//! **Threads.** Sequences change open arrays; the thread that closed an array and interrupted all
//! sequences changes closed ones. Opening, closing and emptying hold the cache's lock. Another
//! process may clear an owner (`craton set`): the next slow path opens the array again. Where
//! sequences cannot be interrupted, arrays keep their objects until reopened.
//!
//! Sequences take 14 instructions to pop and 12 to push; with areas found by a table, as in
//! `craton_heap::cpu_cache`, 18 and 19.
//!
//! **Unsafe.** Reads areas by address.

use super::MOST;
use crate::process::{Process, Words};
use crate::slots::SLOT_ALIGN;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use craton_os::guarded::{self, Opened};
use craton_os::rseq::{AREA, AREAS, COUNTING, Counting, Rseq};
use craton_os::{Mutex, Rank};

/// Bytes; times a cache's number: its place in an area.
pub(super) const ARRAY: usize = 2048;
const _: () = assert!(MOST * ARRAY == AREA);
/// Objects, in a counting word.
pub(super) const COUNT_BITS: u64 = 255;
pub(super) const MOST_FILL: usize = COUNTING / 2;

/// For a word that is no handle, some array.
#[inline(always)]
pub(super) fn place(handle: usize) -> usize {
    // Slots lie at multiples of the table's size: these bits are the number.
    (handle / (SLOT_ALIGN / ARRAY)) & ((MOST - 1) * ARRAY)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Unchanged since the last such call.
    Idle,
}

pub(super) struct Arrays<P: Process> {
    /// Area 0; 0: not used yet.
    pub(super) areas: AtomicUsize,
    /// Areas ever used lie below.
    pub(super) end: AtomicUsize,
    making: Mutex<()>,
    /// Other areas read as zeros: no objects, no room.
    open: Opened<{ AREAS / 64 }>,
    process: PhantomData<fn() -> P>,
}

impl<P: Process> Arrays<P> {
    pub(super) const fn new() -> Self {
        Self {
            areas: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            making: Mutex::ranked(Rank::CacheArrays, ()),
            open: Opened::new(),
            process: PhantomData,
        }
    }

    /// `None`: this thread may use no arrays. Asks the kernel once.
    pub(super) fn sequences(&self) -> Option<&'static Rseq> {
        let words = P::words();
        match words.arrays {
            Words::NOT_ASKED => {}
            Words::NONE => return None,
            _ => return P::sequences(false),
        }
        let rseq = P::sequences(true)?;
        let areas = match self.areas.load(Relaxed) {
            0 => self.make(),
            areas => areas,
        };
        if areas == Words::NONE {
            return None;
        }
        P::set_words(Words { arrays: areas, ..words });
        Some(rseq)
    }

    #[cold]
    fn make(&self) -> usize {
        let _only_one = self.making.lock();
        if self.areas.load(Relaxed) == 0 {
            self.areas.store(guarded::reserve_zeros(AREAS * AREA).unwrap_or(Words::NONE), Relaxed);
        }
        self.areas.load(Relaxed)
    }

    /// Under the cache's lock.
    pub(super) fn open(&self, rseq: &Rseq, cache: u16, handle: usize, rounds: usize) -> bool {
        let Some(processor) = rseq.processor() else { return false };
        if !self.open.open(processor, self.areas.load(Relaxed) + processor * AREA, AREA) {
            return false;
        }
        self.end.fetch_max(processor + 1, Relaxed);
        let array = self.array(processor, cache);
        array.owner.store(handle, Relaxed);
        array.capacity.store(rounds.min(COUNTING) as u32, Relaxed);
        true
    }

    pub(super) fn pop_many(&self, rseq: &Rseq, handle: usize, into: &mut [*mut u8]) -> usize {
        // SAFETY: areas have an array for each cache; the thread is registered.
        unsafe { rseq.pop_many(self.areas.load(Relaxed) + place(handle), handle, into) }
    }

    #[inline(always)]
    pub(super) fn push(&self, rseq: &Rseq, handle: usize, object: *mut u8) -> bool {
        // SAFETY: as in `pop_many`.
        unsafe { rseq.push_counted(self.areas.load(Relaxed) + place(handle), object) }
    }

    /// Returns how many had room.
    pub(super) fn push_many(&self, rseq: &Rseq, handle: usize, objects: &[*mut u8]) -> usize {
        // SAFETY: as in `pop_many`.
        unsafe { rseq.push_many(self.areas.load(Relaxed) + place(handle), objects) }
    }

    fn each(&self, cache: u16) -> impl Iterator<Item = &Counting> {
        (0..self.end.load(Relaxed))
            .filter(|processor| self.open.has(*processor))
            .map(move |processor| self.array(processor, cache))
    }

    fn array(&self, processor: usize, cache: u16) -> &Counting {
        const { assert!(cfg!(loom) || size_of::<Counting>() == ARRAY) };
        debug_assert!(processor < AREAS, "of a processor that can be");
        let at = self.areas.load(Relaxed) + processor * AREA + usize::from(cache) * ARRAY;
        // SAFETY: areas have an array for each cache, zeros at first, and stay.
        unsafe { &*(at as *const Counting) }
    }

    /// Approximate while threads use them.
    pub(super) fn count(&self, cache: u16) -> usize {
        self.each(cache).map(|a| (a.word.load(Relaxed) & COUNT_BITS) as usize).sum()
    }

    pub(super) fn taken(&self, cache: u16) -> u64 {
        self.each(cache).map(|a| a.word.load(Relaxed) / (COUNT_BITS + 1)).fold(0, u64::wrapping_add)
    }

    /// Under the cache's lock. `false`: sequences cannot be interrupted. `alone`: none runs.
    pub(super) fn empty(&self, cache: u16, which: Which, alone: bool, mut each: impl FnMut(*mut u8)) -> bool {
        let is_wanted = |array: &Counting| match which {
            Which::All => array.word.load(Relaxed) & COUNT_BITS != 0 || array.capacity.load(Relaxed) != 0,
            Which::Idle => {
                array.word.load(Relaxed) as u32 == array.note.load(Relaxed)
                    && array.word.load(Relaxed) & COUNT_BITS != 0
            }
        };
        let wanted = self.each(cache).any(is_wanted);
        if which == Which::Idle {
            self.each(cache).for_each(|a| a.note.store(a.word.load(Relaxed) as u32, Relaxed));
        }
        if !wanted {
            return true;
        }
        let Some(rseq) = P::sequences(false) else { return true };
        // Sequences may go on: a closed array stays closed until opened.
        let is_chosen = |array: &&Counting| {
            let word = array.word.load(Relaxed);
            which == Which::All || (word & COUNT_BITS != 0 && word as u32 == array.note.load(Relaxed))
        };
        for array in self.each(cache).filter(is_chosen) {
            array.owner.store(0, Relaxed);
            array.capacity.store(0, Relaxed);
        }
        let ours = rseq.interrupt() || alone;
        if ours {
            for array in self.each(cache).filter(|array| array.capacity.load(Relaxed) == 0) {
                let count = array.word.fetch_and(!COUNT_BITS, Relaxed) & COUNT_BITS;
                array.slots[..count as usize].iter().for_each(|slot| each(slot.load(Relaxed)));
            }
        }
        ours
    }

    pub(super) fn lock_for_fork(&self, nested: bool) {
        self.making.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(super) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.making.release_after_fork() };
    }
}
