//! Freed buffers that wait before reuse: a ring of addresses, oldest first.
//!
//! **Unsafe.** Keeps the ring in a mapping.

use crate::Finding;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use craton_os::{Mutex, Rank, mapping};

/// Buffers prefetched ahead, as long as memory takes.
const AHEAD: usize = 2;
const MOST: usize = 1 << 18;
const BYTES: usize = 16 << 20;

struct Ring {
    at: *mut (usize, usize),
    first: usize,
    len: usize,
    bytes: usize,
    /// The first of the ring, which waited when the process was forked.
    inherited: usize,
}

// SAFETY: it owns the ring.
unsafe impl Send for Ring {}

impl Ring {
    fn get(&self, i: usize) -> (usize, usize) {
        debug_assert!(i < self.len);
        // SAFETY: `len` places from `first` on, modulo the ring's length, are written.
        unsafe { self.at.add((self.first + i) % MOST).read() }
    }
}

pub(crate) struct Quarantine {
    ring: Mutex<Ring>,
    /// Exclusive-or the default.
    bytes: AtomicUsize,
}

pub(crate) const SHAPE: [(&str, usize); 2] = [
    ("kit.ring.at", Mutex::<Ring>::SHAPE[1] + offset_of!(Ring, at)),
    ("kit.ring.bytes", MOST * size_of::<(usize, usize)>()),
];
pub(crate) const RING_AT: usize = offset_of!(Quarantine, ring);

impl Quarantine {
    pub(crate) const fn new() -> Self {
        Self {
            ring: Mutex::ranked(
                Rank::KitQuarantine,
                Ring { at: core::ptr::null_mut(), first: 0, len: 0, bytes: 0, inherited: 0 },
            ),
            bytes: AtomicUsize::new(0),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.bytes.load(Relaxed) ^ BYTES
    }

    pub(crate) fn set_limit(&self, bytes: usize) {
        self.bytes.store(bytes ^ BYTES, Relaxed);
    }

    /// `leave` gets each that has waited enough, `soon` one that will leave soon, both outside the
    /// lock.
    pub(crate) fn wait(
        &self,
        address: usize,
        bytes: usize,
        soon: impl Fn(usize),
        mut leave: impl FnMut(usize) -> Result<(), Finding>,
    ) -> Result<(), Finding> {
        let limit = self.limit();
        if bytes > limit {
            return leave(address);
        }
        let mut ring = self.ring.lock();
        if ring.at.is_null() {
            let Some(at) = mapping::map(MOST * size_of::<(usize, usize)>(), 1) else {
                drop(ring);
                return leave(address);
            };
            ring.at = at as *mut _;
        }
        let end = (ring.first + ring.len) % MOST;
        // SAFETY: a free place: the ring is never full here.
        unsafe { ring.at.add(end).write((address, bytes)) };
        (ring.len, ring.bytes) = (ring.len + 1, ring.bytes + bytes);
        while ring.len == MOST || ring.len > 0 && ring.bytes > limit {
            let (address, bytes) = ring.get(0);
            let next = (ring.len > AHEAD).then(|| ring.get(AHEAD).0);
            (ring.first, ring.len, ring.bytes) = ((ring.first + 1) % MOST, ring.len - 1, ring.bytes - bytes);
            ring.inherited = ring.inherited.saturating_sub(1);
            drop(ring);
            if let Some(next) = next {
                soon(next);
            }
            leave(address)?;
            ring = self.ring.lock();
        }
        Ok(())
    }

    /// `visit` takes no locks but records'.
    pub(crate) fn each_own(&self, mut visit: impl FnMut(usize)) {
        let ring = self.ring.lock();
        (ring.inherited..ring.len).for_each(|i| visit(ring.get(i).0));
    }

    /// In a forked child: waiting buffers are its parent's.
    /// # Safety
    /// The lock is held for a fork.
    pub(crate) unsafe fn forked(&self) {
        // SAFETY: by the contract.
        let ring = unsafe { self.ring.held_for_fork() };
        ring.inherited = ring.len;
    }

    /// The ring's address and bytes, in the copy of a process.
    pub(crate) fn range(&self) -> (usize, usize) {
        // SAFETY: the copy's one thread holds the lock through no guard.
        (unsafe { self.ring.held_for_fork() }.at as usize, MOST * size_of::<(usize, usize)>())
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.ring.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.ring.release_after_fork() };
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
