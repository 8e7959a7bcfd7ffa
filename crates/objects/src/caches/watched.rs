//! Caches whose objects are buffers of the debugging kit ([`Watch`]), constructed at alloc and
//! destroyed at free (Bonwick94 §6.3).
//!
//! **Unsafe.** Frees buffers, and calls the program's destructor.

use super::Over;
use super::building::Building;
use super::cache::{Cache, CacheSlots};
use crate::process::{Process, Watch};
use crate::slots::Slot;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Platform};
use craton_heap::hooks::Hooks;

impl Cache {
    pub(super) fn is_watched(&self) -> bool {
        self.checks != 0
    }

    pub(super) fn live(&self) -> u64 {
        self.slabs.in_use() + self.buffers
    }

    /// Null: no memory, or a limit.
    pub(super) fn alloc_buffer<W: Watch>(&mut self) -> *mut u8 {
        let more = self.buffers + 1;
        let bytes = (more as usize).saturating_mul(self.layout.stride());
        let is_full = self.limit_objects > 0 && more > self.limit_objects as u64
            || self.limit_pages.0 > 0 && bytes > self.limit_pages.bytes().0;
        if is_full {
            return null_mut();
        }
        let buffer = W::alloc(self.id, self.size, self.align, self.checks);
        self.buffers += u64::from(!buffer.is_null());
        buffer
    }

    pub(super) fn free_buffer<W: Watch>(&mut self, buffer: *mut u8) {
        // SAFETY: this cache's buffer, which no caller has.
        unsafe { W::free(self.id, buffer) };
        self.buffers -= 1;
    }
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    /// No lock is held: its destructor runs.
    #[cold]
    pub(super) fn free_watched(&self, slot: &Slot<CacheSlots>, handle: usize, object: *mut u8) {
        let (destructor, argument) = {
            let mut cache = slot.locked.lock();
            cache.destroyed += u64::from(cache.constructor.is_some());
            (cache.destructor, cache.argument)
        };
        if let Some(destructor) = destructor {
            // SAFETY: constructed, and given up.
            Building::<P>::run(handle, || unsafe { destructor(object.cast(), argument) });
        }
        P::within(|| {
            let mut cache = slot.locked.lock();
            self.free_locked(&mut cache, object, false);
            let wait = cache.waiters > 0;
            drop(cache);
            slot.announce(wait);
        });
    }

    pub(super) fn report_live(&self, slot: &Slot<CacheSlots>, id: u16) {
        if slot.shared.watched.load(Relaxed) {
            P::report_live(id);
        }
    }
}
