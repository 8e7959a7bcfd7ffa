//! Processors' arrays of free objects, for all caches.
//!
//! **What.** Each processor has an area with an array for each cache, from which objects are taken and to which they are added by
//! restartable sequences. An array holds nothing and has no room until the slow path opens it.
//!
//! **State.** One reservation, with an area for each number that a processor can have, so that sequences find theirs without looking
//! anything up. An array that is open has its cache's handle for its owner, and a capacity; a sequence takes for the owner only, which
//! is all that it asks about a handle. One that is closed serves nobody: whoever empties arrays closes them first.
//!
//! **Threads.** Arrays change in sequences, or by whoever has closed them and interrupted all sequences. They are opened, closed and emptied under
//! the cache's lock. Another process may take an array's owner away ([`crate::mailbox`]), so that a request comes to the slow path, which opens it again. A thread finds the areas by its own word ([`crate::tls::arrays`]), which is set once the kernel is known
//! to restart its sequences.
//!
//! **Failure.** Without restartable sequences, or without room for the areas, there are no arrays: each request takes its cache's lock.
//! Where sequences cannot be interrupted, arrays keep what they hold until they are opened again.
//!
//! **Unsafe.** Reads areas by address.

use super::{ALIGN, MOST};
use crate::statics::PROCESSOR_CACHES;
use crate::tls;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use craton_os::Mutex;
use craton_os::guarded::{self, Opened};
use craton_os::rseq::{AREA, AREAS, COUNTING, Counting, Rseq};

/// Bytes of one array. A cache's number times this is where it lies in an area.
pub(super) const ARRAY: usize = 2048;
const _: () = assert!(MOST * ARRAY == AREA);
/// A bit for each area that may be written; the others read as zeros, of which sequences take nothing and where they put nothing.
static OPEN: Opened<{ AREAS / 64 }> = Opened::new();
/// The bits of a counting word that say how many objects there are.
pub(super) const COUNT_BITS: u64 = 255;

/// Where the array of a handle's cache lies in an area. Of any other word, some array.
#[inline(always)]
pub(super) fn place(handle: usize) -> usize {
    // Slots lie at multiples of all their bytes, so that these bits are the number.
    (handle / (ALIGN / ARRAY)) & ((MOST - 1) * ARRAY)
}

/// What is to be emptied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All arrays of the cache, which get no room until they are opened again.
    All,
    /// Those that nothing was taken from or added to since the last look.
    Idle,
}

pub(super) struct Arrays {
    /// Where area 0 lies; 0 before the first use, 1 if there is no room for areas.
    pub(super) areas: AtomicUsize,
    /// Areas that were ever used lie below this number.
    pub(super) end: AtomicUsize,
    making: Mutex<()>,
}

impl Arrays {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with.
    pub(super) const NONE: Self = Self { areas: AtomicUsize::new(0), end: AtomicUsize::new(0), making: Mutex::new(()) };

    /// What the calling thread uses arrays by, if it may: asks once whether the kernel restarts its sequences.
    pub(super) fn rseq(&self) -> Option<&'static Rseq> {
        match tls::arrays() {
            0 => {}
            1 => return None,
            _ => return PROCESSOR_CACHES.rseq(),
        }
        let rseq = PROCESSOR_CACHES.rseq()?;
        if tls::get() == tls::alone() || !rseq.is_registered() {
            return None;
        }
        let areas = match self.areas.load(Relaxed) {
            0 => self.make(),
            areas => areas,
        };
        if areas == 1 {
            return None;
        }
        tls::set_arrays(areas);
        Some(rseq)
    }

    #[cold]
    fn make(&self) -> usize {
        let _only_one = self.making.lock();
        if self.areas.load(Relaxed) == 0 {
            self.areas.store(guarded::reserve_zeros(AREAS * AREA).unwrap_or(1), Relaxed);
        }
        self.areas.load(Relaxed)
    }

    /// Opens this processor's array of a cache for so many objects; `false` when it has none. Under the cache's lock.
    pub(super) fn open(&self, rseq: &Rseq, cache: u16, handle: usize, rounds: usize) -> bool {
        let Some(processor) = rseq.processor() else { return false };
        if !OPEN.open(processor, self.areas.load(Relaxed) + processor * AREA, AREA) {
            return false;
        }
        self.end.fetch_max(processor + 1, Relaxed);
        let array = self.array(processor, cache);
        array.owner.store(handle, Relaxed);
        array.capacity.store(rounds.min(COUNTING) as u32, Relaxed);
        true
    }

    /// Takes objects from this processor's array, as many as it has and there is room for; how many.
    pub(super) fn take_many(&self, rseq: &Rseq, handle: usize, into: &mut [*mut u8]) -> usize {
        // SAFETY: areas have an array for each cache, and the caller's thread is registered.
        unsafe { rseq.take_many(self.areas.load(Relaxed) + place(handle), handle, into) }
    }

    /// Adds a free object to it; `false` when there is no room.
    #[inline(always)]
    pub(super) fn put(&self, rseq: &Rseq, handle: usize, object: *mut u8) -> bool {
        // SAFETY: as in `take_many`.
        unsafe { rseq.put(self.areas.load(Relaxed) + place(handle), object) }
    }

    /// Adds free objects to it, in order, as far as there is room; how many.
    pub(super) fn put_many(&self, rseq: &Rseq, handle: usize, objects: &[*mut u8]) -> usize {
        // SAFETY: as in `take_many`.
        unsafe { rseq.put_many(self.areas.load(Relaxed) + place(handle), objects) }
    }

    fn each(&self, cache: u16) -> impl Iterator<Item = &Counting> {
        (0..self.end.load(Relaxed))
            .filter(|processor| OPEN.has(*processor))
            .map(move |processor| self.array(processor, cache))
    }

    fn array(&self, processor: usize, cache: u16) -> &Counting {
        const { assert!(cfg!(loom) || size_of::<Counting>() == ARRAY) };
        debug_assert!(processor < AREAS, "of a processor that can be");
        let at = self.areas.load(Relaxed) + processor * AREA + usize::from(cache) * ARRAY;
        // SAFETY: areas have an array for each cache, zeros at first, and stay for ever.
        unsafe { &*(at as *const Counting) }
    }

    /// Objects in a cache's arrays, as far as can be seen while others use them.
    pub(super) fn count(&self, cache: u16) -> usize {
        self.each(cache).map(|a| (a.word.load(Relaxed) & COUNT_BITS) as usize).sum()
    }

    /// How many objects were ever taken from them.
    pub(super) fn taken(&self, cache: u16) -> u64 {
        self.each(cache).map(|a| a.word.load(Relaxed) / (COUNT_BITS + 1)).fold(0, u64::wrapping_add)
    }

    /// Empties arrays of a cache, and calls `each` with their objects; `false` when the system does not let us. Under the cache's lock. `alone`
    /// says that nobody uses the cache, so that the system need not be asked.
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
        let Some(rseq) = PROCESSOR_CACHES.rseq() else { return true };
        // The objects that a sequence moves meanwhile make no difference: what is closed here is closed until it is opened again.
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

    pub(super) fn hold_for_fork(&self, nested: bool) {
        self.making.hold_for_fork(nested);
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(super) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.making.release_after_fork() };
    }
}
