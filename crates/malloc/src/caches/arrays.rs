//! Processors' arrays of free objects, for all caches.
//!
//! **What.** Each processor has an area with an array for each cache, from which objects are taken and to which they are added by
//! restartable sequences. An array holds nothing and has no room until the slow path opens it.
//!
//! **State.** Areas are made at their first use, and stay. The table that sequences look into has each area, or null while somebody empties
//! arrays in it: then requests go the slow way.
//!
//! **Threads.** Arrays change in sequences, or by whoever has taken all areas out of the table, under `emptying`, and interrupted all sequences. Room
//! is opened and closed under the cache's lock. A thread finds the table by its own word ([`crate::tls::arrays`]), which is set once the kernel is known
//! to restart its sequences.
//!
//! **Failure.** Without restartable sequences there are no arrays: each request takes its cache's lock.
//!
//! **Unsafe.** Reads areas by address.

use super::MOST;
use crate::front::PROCESSOR_CACHES;
use crate::tls;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::rseq::{COUNTING, Counting, PROCESSORS, Rseq, Table};
use craton_os::{Mutex, mapping};

/// Bytes of one array. A cache's number times this is where it lies in an area.
pub(super) const ARRAY: usize = 512;
pub(super) const AREA: usize = MOST * ARRAY;
/// The bits of a counting word that say how many objects there are.
pub(super) const COUNT_BITS: u64 = 255;

/// What is to be emptied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All arrays of the cache, which get no room until they are opened again.
    All,
    /// Those that nothing was taken from or added to since the last look.
    Idle,
}

pub(super) struct Arrays {
    /// What sequences look into.
    table: Table,
    pub(super) areas: [AtomicPtr<u8>; PROCESSORS],
    /// Areas lie below this number.
    pub(super) end: AtomicUsize,
    emptying: Mutex<()>,
}

impl Arrays {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with.
    pub(super) const NONE: Self = Self {
        table: [const { AtomicPtr::new(null_mut()) }; PROCESSORS],
        areas: [const { AtomicPtr::new(null_mut()) }; PROCESSORS],
        end: AtomicUsize::new(0),
        emptying: Mutex::new(()),
    };

    /// What the calling thread uses arrays by, if it may: asks once whether the kernel restarts its sequences.
    pub(super) fn rseq(&self) -> Option<&'static Rseq> {
        let known = tls::arrays();
        if known == 1 {
            return None;
        }
        let rseq = PROCESSOR_CACHES.rseq()?;
        let table = core::ptr::from_ref(&self.table) as usize;
        if known != table {
            if tls::get() == tls::alone() || !rseq.is_registered() {
                return None;
            }
            tls::set_arrays(table);
        }
        Some(rseq)
    }

    /// Opens this processor's array of a cache for so many objects; `false` when it has no area. Under the cache's lock.
    pub(super) fn open(&self, rseq: &Rseq, cache: u16, rounds: usize) -> bool {
        let Some(processor) = rseq.processor() else { return false };
        let area = match self.areas[processor].load(Relaxed) {
            area if area.is_null() => self.make(processor),
            area => area,
        };
        if area.is_null() {
            return false;
        }
        array(area, cache).capacity.store(rounds.min(COUNTING) as u32, Relaxed);
        true
    }

    #[cold]
    fn make(&self, processor: usize) -> *mut u8 {
        let _only_one = self.emptying.lock();
        let known = self.areas[processor].load(Relaxed);
        if !known.is_null() {
            return known;
        }
        let Some(at) = mapping::map(AREA, 4096) else { return null_mut() };
        mapping::advise_small(at, AREA);
        self.end.fetch_max(processor + 1, Relaxed);
        self.areas[processor].store(at as *mut u8, Relaxed);
        self.table[processor].store(at as *mut u8, Relaxed);
        at as *mut u8
    }

    /// Takes an object from this processor's array.
    #[inline(always)]
    pub(super) fn take(&self, rseq: &Rseq, cache: u16) -> *mut u8 {
        // SAFETY: areas have an array for each cache, and the caller's thread is registered.
        unsafe { rseq.take(&self.table, usize::from(cache) * ARRAY) }
    }

    /// Adds a free object to it; `false` when there is no room.
    #[inline(always)]
    pub(super) fn put(&self, rseq: &Rseq, cache: u16, object: *mut u8) -> bool {
        // SAFETY: as in `take`.
        unsafe { rseq.put(&self.table, usize::from(cache) * ARRAY, object) }
    }

    fn each(&self, cache: u16) -> impl Iterator<Item = &Counting> {
        let areas = self.areas[..self.end.load(Relaxed)].iter().map(|a| a.load(Relaxed));
        areas.filter(|a| !a.is_null()).map(move |area| array(area, cache))
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
        let _only_one = self.emptying.lock();
        let end = self.end.load(Relaxed);
        self.table[..end].iter().for_each(|entry| entry.store(null_mut(), Relaxed));
        let ours = rseq.interrupt() || alone;
        if ours {
            for array in
                self.each(cache).filter(|a| which == Which::All || a.word.load(Relaxed) as u32 == a.note.load(Relaxed))
            {
                if which == Which::All {
                    array.capacity.store(0, Relaxed);
                }
                let count = array.word.fetch_and(!COUNT_BITS, Relaxed) & COUNT_BITS;
                array.slots[..count as usize].iter().for_each(|slot| each(slot.load(Relaxed)));
            }
        }
        for (entry, area) in self.table[..end].iter().zip(&self.areas) {
            // ORDERING: Release pairs with the load of the table in sequences, which the processor orders before what follows from it: the
            // arrays are seen as we leave them.
            entry.store(area.load(Relaxed), Ordering::Release);
        }
        ours
    }

    pub(super) fn hold_for_fork(&self, nested: bool) {
        self.emptying.hold_for_fork(nested);
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(super) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.emptying.release_after_fork() };
    }
}

fn array(area: *mut u8, cache: u16) -> &'static Counting {
    const { assert!(cfg!(loom) || size_of::<Counting>() == ARRAY) };
    // SAFETY: areas have an array for each cache, zeros at first, and stay for ever.
    unsafe { &*area.add(usize::from(cache) * ARRAY).cast::<Counting>() }
}
