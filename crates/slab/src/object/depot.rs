//! The depot of a cache's magazines: full and empty ones, exchanged by the per-CPU layer.
//!
//! **From.** Bonwick & Adams 2001 §3. Magazines grow while the depot's lock is contended, so that
//! exchanges get rarer. Reclaim frees the least number of full and of empty magazines of the last
//! interval. Where we differ: a CPU may hold a row instead of a magazine and moves rounds by
//! [`Depot::store`] and [`Depot::fetch`]. Magazines of several sizes coexist; old sizes are freed
//! as they become empty.
//! **Threads.** Under the caller's lock; the caller reports contention. **Failure.** Without memory
//! for a magazine nothing is stored, and the rounds go to the slabs.
//! **Unsafe.** Builds magazines in the supplier's memory.

use super::magazine::{LAYOUTS, Magazine, SIZES, Stack, rounds_of};
use super::supply::PageSupplier;
use super::trusted::Trusted;
use crate::check::Broken;

/// Contended exchanges in an interval that make magazines grow (Bonwick & Adams: 3).
const CONTENDED: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DepotStats {
    /// Rounds of a magazine.
    pub rounds: usize,
    pub full: u32,
    pub empty: u32,
    /// Objects in the full ones.
    pub objects: u64,
    /// Times that the lock was contended.
    pub contended: u64,
    /// Bytes of the magazines' pages.
    pub bytes: usize,
}

#[derive(Debug)]
pub struct Depot {
    full: Stack,
    empty: Stack,
    size: u16,
    most: u16,
    pressure: u32,
    contended: u64,
    pub(super) objects: u64,
    store: [Trusted; SIZES],
    interval_ns: u64,
    /// The interval's start, plus 1; 0: none yet.
    began_ns: u64,
}

// SAFETY: the depot owns its magazines.
unsafe impl Send for Depot {}

impl Depot {
    /// The default interval of the working set: 15 s.
    pub const INTERVAL_NS: u64 = 15_000_000_000;
    /// Rounds of the largest magazine.
    pub const MOST_ROUNDS: usize = rounds_of(SIZES - 1);
    /// A depot before [`Depot::new`]; all zeros.
    pub const UNSET: Self = Self {
        full: Stack::EMPTY,
        empty: Stack::EMPTY,
        size: 0,
        most: 0,
        pressure: 0,
        contended: 0,
        objects: 0,
        store: [const { Trusted::EMPTY }; SIZES],
        interval_ns: 0,
        began_ns: 0,
    };

    /// A depot for objects of `object_bytes`: the larger they are, the smaller are the magazines.
    pub const fn new(object_bytes: usize) -> Self {
        let (size, most) = match object_bytes {
            0..=256 => (1, 4),
            257..=1024 => (1, 3),
            1025..=4096 => (0, 2),
            4097..=32768 => (0, 1),
            _ => (0, 0),
        };
        Self { size, most, interval_ns: Self::INTERVAL_NS, ..Self::UNSET }
    }

    /// Sets the interval. 0: all here is idle at each [`Depot::tick`]; `u64::MAX`: nothing ever is.
    pub fn set_interval_ns(&mut self, ns: u64) {
        self.interval_ns = ns;
    }

    /// Rounds of the magazines that are handed out now.
    pub fn rounds(&self) -> usize {
        rounds_of(self.size.into())
    }

    /// Objects in the full magazines here.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// A magazine with rounds, for an empty one, which comes by [`Depot::put_empty`].
    pub fn get_full(&mut self) -> Option<Magazine> {
        let magazine = self.full.pop()?;
        self.objects -= magazine.len() as u64;
        Some(magazine)
    }

    /// Takes a magazine that has rounds.
    pub fn put_full(&mut self, magazine: Magazine) {
        debug_assert!(!magazine.is_empty());
        self.objects += magazine.len() as u64;
        self.full.push(magazine);
    }

    /// An empty magazine of the present size. `None`: the supplier refused.
    /// # Safety
    /// `supplier` is the same in each call, or one that manages the same pages.
    pub unsafe fn get_empty(&mut self, supplier: &mut impl PageSupplier) -> Option<Magazine> {
        if let Some(magazine) = self.empty.pop() {
            return Some(magazine);
        }
        let size = usize::from(self.size);
        // SAFETY: magazines of one size are of one layout.
        let at = unsafe { self.store[size].alloc(&LAYOUTS[size], supplier) }?;
        // SAFETY: the store just allocated the memory, with a magazine's layout.
        unsafe { Magazine::begin(at, self.size) }
    }

    /// Stores an empty magazine.
    /// # Safety
    /// As [`Depot::get_empty`]; the magazine came from this depot.
    pub unsafe fn put_empty(&mut self, magazine: Magazine, supplier: &mut impl PageSupplier) {
        debug_assert!(magazine.is_empty());
        if magazine.capacity() == self.rounds() {
            self.empty.push(magazine);
        } else {
            // SAFETY: as the caller says.
            unsafe { self.discard(magazine, supplier) };
        }
    }

    /// # Safety
    /// As [`Depot::put_empty`].
    unsafe fn discard(&mut self, magazine: Magazine, supplier: &mut impl PageSupplier) {
        // SAFETY: the caller passes ownership; the layout is that of the magazine's size.
        unsafe {
            let size = magazine.size();
            self.store[size].free(&LAYOUTS[size], magazine.address(), supplier);
        }
    }

    /// Stores rounds and returns how many, from the first on: not all if the supplier refused.
    /// # Safety
    /// As [`Depot::get_empty`].
    pub unsafe fn store(&mut self, rounds: &[*mut u8], supplier: &mut impl PageSupplier) -> usize {
        let mut stored = 0;
        while stored < rounds.len() {
            // SAFETY: as the caller says.
            let Some(mut magazine) = (unsafe { self.get_empty(supplier) }) else { break };
            let n = (rounds.len() - stored).min(magazine.capacity());
            magazine.fill(&rounds[stored..stored + n]);
            stored += n;
            self.put_full(magazine);
        }
        stored
    }

    /// Fills `into` with the rounds stored last, in their order; returns how many.
    /// # Safety
    /// As [`Depot::get_empty`].
    pub unsafe fn fetch(&mut self, into: &mut [*mut u8], supplier: &mut impl PageSupplier) -> usize {
        let mut at = into.len();
        while at > 0 {
            let Some(mut magazine) = self.get_full() else { break };
            let n = magazine.len().min(at);
            into[at - n..at].copy_from_slice(&magazine.as_slice()[magazine.len() - n..]);
            at -= n;
            magazine.drop_last(n);
            if magazine.is_empty() {
                // SAFETY: it is of this depot.
                unsafe { self.put_empty(magazine, supplier) };
            } else {
                self.put_full(magazine);
            }
        }
        into.copy_within(at.., 0);
        into.len() - at
    }

    /// Records a wait for the depot's lock.
    pub fn count_contended(&mut self) {
        self.pressure += 1;
        self.contended += 1;
    }

    /// Advances the time; true at an interval's end, when magazines grow if the lock was contended.
    pub fn tick(&mut self, now_ns: u64) -> bool {
        let began = match self.began_ns {
            0 => {
                self.began_ns = now_ns.saturating_add(1);
                now_ns
            }
            plus_1 => plus_1 - 1,
        };
        if self.interval_ns == u64::MAX || now_ns.saturating_sub(began) < self.interval_ns {
            return false;
        }
        self.began_ns = now_ns.saturating_add(1);
        if self.pressure > CONTENDED && self.size < self.most {
            self.size += 1;
        }
        self.pressure = 0;
        for stack in [&mut self.full, &mut self.empty] {
            stack.set.turn();
            if self.interval_ns == 0 {
                stack.set.turn();
            }
        }
        true
    }

    /// An idle full magazine to drain into the slabs; return it by [`Depot::drop_empty`].
    pub fn get_idle(&mut self) -> Option<Magazine> {
        if self.full.set.idle() == 0 { None } else { self.get_any() }
    }

    /// A full magazine, to be emptied for good: when the cache is destroyed, or memory is short.
    pub fn get_any(&mut self) -> Option<Magazine> {
        let magazine = self.full.pop_idle()?;
        self.objects -= magazine.len() as u64;
        Some(magazine)
    }

    /// Frees the memory of an empty magazine.
    /// # Safety
    /// As [`Depot::put_empty`].
    pub unsafe fn drop_empty(&mut self, magazine: Magazine, supplier: &mut impl PageSupplier) {
        debug_assert!(magazine.is_empty());
        // SAFETY: as the caller says.
        unsafe { self.discard(magazine, supplier) };
    }

    /// Frees idle empty magazines, or `all`; returns the bytes freed.
    /// # Safety
    /// As [`Depot::get_empty`].
    pub unsafe fn reap_empty(&mut self, all: bool, supplier: &mut impl PageSupplier) -> usize {
        let before = self.bytes();
        while all || self.empty.set.idle() > 0 {
            let Some(magazine) = self.empty.pop_idle() else { break };
            // SAFETY: it is of this depot.
            unsafe { self.discard(magazine, supplier) };
        }
        before - self.bytes()
    }

    /// Walks O5.
    pub fn check(&self) -> Result<(), Broken> {
        let stacks = self.full.check(true).zip(self.empty.check(false));
        let live: u32 = self.store.iter().map(Trusted::live).sum();
        let holds = stacks.is_some_and(|((full, objects), (empty, _))| objects == self.objects && full + empty <= live);
        if holds { Ok(()) } else { Err(Broken::of_none("O5")) }
    }

    pub fn bytes(&self) -> usize {
        self.store.iter().map(Trusted::bytes).sum()
    }

    pub fn stats(&self) -> DepotStats {
        DepotStats {
            rounds: self.rounds(),
            full: self.full.set.count(),
            empty: self.empty.set.count(),
            objects: self.objects,
            contended: self.contended,
            bytes: self.bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
