//! The depot of full and empty magazines (Bonwick & Adams 2001 §3).
//!
//! Magazines grow while the depot's lock is contended, so those of several sizes coexist. A CPU may
//! hold a row instead, and moves rounds by [`Depot::store`] and [`Depot::fetch`].
//! **Unsafe.** Builds magazines in the supplier's memory.

use super::magazine::{LAYOUTS, Magazine, SIZES, Stack, rounds_of};
use super::supply::PageSupplier;
use super::trusted::Trusted;
use crate::check::Broken;

/// Magazines grow then.
const CONTENDED: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DepotStats {
    pub rounds: usize,
    pub full: u32,
    pub empty: u32,
    pub objects: u64,
    pub contended: u64,
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
    /// Plus 1; 0: not yet.
    began_ns: u64,
}

// SAFETY: it owns its magazines.
unsafe impl Send for Depot {}

impl Depot {
    pub const INTERVAL_NS: u64 = 15_000_000_000;
    pub const MOST_ROUNDS: usize = rounds_of(SIZES - 1);
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

    /// 0: all is idle at each [`Depot::tick`]; `u64::MAX`: nothing ever is.
    pub fn set_interval_ns(&mut self, ns: u64) {
        self.interval_ns = ns;
    }

    pub fn rounds(&self) -> usize {
        rounds_of(self.size.into())
    }

    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Return an empty one by [`Depot::put_empty`].
    pub fn get_full(&mut self) -> Option<Magazine> {
        let magazine = self.full.pop()?;
        self.objects -= magazine.len() as u64;
        Some(magazine)
    }

    pub fn put_full(&mut self, magazine: Magazine) {
        debug_assert!(!magazine.is_empty());
        self.objects += magazine.len() as u64;
        self.full.push(magazine);
    }

    /// `None`: the supplier refused.
    /// # Safety
    /// `supplier` manages the same pages each time.
    pub unsafe fn get_empty(&mut self, supplier: &mut impl PageSupplier) -> Option<Magazine> {
        if let Some(magazine) = self.empty.pop() {
            return Some(magazine);
        }
        let size = usize::from(self.size);
        // SAFETY: magazines of one size have one layout.
        let at = unsafe { self.store[size].alloc(&LAYOUTS[size], supplier) }?;
        // SAFETY: it has a magazine's layout.
        unsafe { Magazine::begin(at, self.size) }
    }

    /// # Safety
    /// As [`Depot::get_empty`]; the magazine is this depot's.
    pub unsafe fn put_empty(&mut self, magazine: Magazine, supplier: &mut impl PageSupplier) {
        debug_assert!(magazine.is_empty());
        if magazine.capacity() == self.rounds() {
            self.empty.push(magazine);
        } else {
            // SAFETY: by the contract.
            unsafe { self.discard(magazine, supplier) };
        }
    }

    /// # Safety
    /// As [`Depot::put_empty`].
    unsafe fn discard(&mut self, magazine: Magazine, supplier: &mut impl PageSupplier) {
        // SAFETY: by the contract.
        unsafe {
            let size = magazine.size();
            self.store[size].free(&LAYOUTS[size], magazine.address(), supplier);
        }
    }

    /// Returns how many the supplier made room for.
    /// # Safety
    /// As [`Depot::get_empty`].
    pub unsafe fn store(&mut self, rounds: &[*mut u8], supplier: &mut impl PageSupplier) -> usize {
        let mut stored = 0;
        while stored < rounds.len() {
            // SAFETY: by the contract.
            let Some(mut magazine) = (unsafe { self.get_empty(supplier) }) else { break };
            let n = (rounds.len() - stored).min(magazine.capacity());
            magazine.fill(&rounds[stored..stored + n]);
            stored += n;
            self.put_full(magazine);
        }
        stored
    }

    /// The rounds stored last, in order; returns how many.
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
                // SAFETY: this depot's.
                unsafe { self.put_empty(magazine, supplier) };
            } else {
                self.put_full(magazine);
            }
        }
        into.copy_within(at.., 0);
        into.len() - at
    }

    pub fn count_contended(&mut self) {
        self.pressure += 1;
        self.contended += 1;
    }

    /// True at an interval's end.
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

    /// Drain it, then call [`Depot::drop_empty`].
    pub fn get_idle(&mut self) -> Option<Magazine> {
        if self.full.set.idle() == 0 { None } else { self.get_any() }
    }

    pub fn get_any(&mut self) -> Option<Magazine> {
        let magazine = self.full.pop_idle()?;
        self.objects -= magazine.len() as u64;
        Some(magazine)
    }

    /// # Safety
    /// As [`Depot::put_empty`].
    pub unsafe fn drop_empty(&mut self, magazine: Magazine, supplier: &mut impl PageSupplier) {
        debug_assert!(magazine.is_empty());
        // SAFETY: by the contract.
        unsafe { self.discard(magazine, supplier) };
    }

    /// Idle ones, or `all`; returns bytes.
    /// # Safety
    /// As [`Depot::get_empty`].
    pub unsafe fn reap_empty(&mut self, all: bool, supplier: &mut impl PageSupplier) -> usize {
        let before = self.bytes();
        while all || self.empty.set.idle() > 0 {
            let Some(magazine) = self.empty.pop_idle() else { break };
            // SAFETY: this depot's.
            unsafe { self.discard(magazine, supplier) };
        }
        before - self.bytes()
    }

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
