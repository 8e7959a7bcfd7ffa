//! Where the debugging kit looks at object caches.
//!
//! **What.** The objects of a cache to which debugging applies when it is made are buffers of the kit ([`crate::debug`]): each is constructed when it
//! is taken and destroyed when it comes back (Bonwick94 §6.3), and neither arrays nor depot nor slabs have any.
//!
//! **Unsafe.** Takes buffers back.

use super::slot::{Cache, Slot};
use super::{Caches, building};
use crate::debug::{self, Target};
use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::nested;
use crate::route::Misuse;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Floor};

/// What is checked of the objects of a cache of such a name; 0 for nothing.
pub(super) fn checks_of(name: &[u8]) -> u8 {
    debug::checks_of_cache(name)
}

/// As whom the kit knows a cache.
fn target(id: u16) -> Target {
    Target(u32::from(id) + 1)
}

/// The name of the cache that the kit knows so.
pub(crate) fn name_of(target: Target) -> Option<[u8; super::NAME_MAX + 1]> {
    let id = u16::try_from(target.0.checked_sub(1)?).ok()?;
    Some(crate::front::HEAP.caches.name(id))
}

impl Cache {
    /// Whether the kit looks at the cache's objects.
    pub(super) fn is_debugged(&self) -> bool {
        self.checks != 0
    }

    /// Objects that are out of slabs and of the kit.
    pub(super) fn out(&self) -> u64 {
        self.slabs.in_use() + self.buffers
    }

    /// A raw object for a cache under the kit; null without memory, or at a limit.
    pub(super) fn take_buffer(&mut self) -> *mut u8 {
        let more = self.buffers + 1;
        let bytes = (more as usize).saturating_mul(self.layout.stride());
        let is_full = self.limit_objects > 0 && more > self.limit_objects as u64
            || self.limit_pages.0 > 0 && bytes > self.limit_pages.bytes().0;
        if is_full {
            return core::ptr::null_mut();
        }
        let buffer = debug::alloc_target(self.size, self.align, target(self.id), self.checks);
        self.buffers += u64::from(!buffer.is_null());
        buffer
    }

    /// Takes a raw object of the kit back.
    pub(super) fn give_buffer(&mut self, object: *mut u8) {
        // SAFETY: it is the cache's, and nobody has it any more.
        let freed = unsafe { debug::free_target(object, target(self.id)) };
        debug_assert!(freed, "it came from the kit");
        self.buffers -= 1;
    }
}

impl Caches {
    /// Takes an object back that is a buffer of the kit; `None` if it is none. Ends the process with a report if it is another one's.
    ///
    /// # Safety
    /// As [`super::api::free`]. No lock is held, since the program's destructor runs.
    pub(super) unsafe fn free_buffer<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
        object: *mut u8,
    ) -> Option<Result<(), Misuse>> {
        let (id, slot) = self.resolve(handle).ok()?;
        if !debug::is_buffer_of(object, target(id)) {
            return None;
        }
        self.end_object(slot, handle, object);
        nested::within(|| {
            let mut cache = slot.cache.lock();
            self.give(under, &mut cache, object, false);
            let waits = cache.waiters > 0;
            drop(cache);
            if waits {
                slot.freed.announce();
            }
        });
        Some(Ok(()))
    }

    fn end_object(&self, slot: &Slot, handle: usize, object: *mut u8) {
        let (destructor, argument) = {
            let mut cache = slot.cache.lock();
            cache.destroyed += u64::from(cache.constructor.is_some());
            (cache.destructor, cache.argument)
        };
        if let Some(destructor) = destructor {
            // SAFETY: the object is constructed, and the program has given it up.
            building::Building::of(handle).run(|| unsafe { destructor(object.cast(), argument) });
        }
    }

    /// Tells where the objects of a cache came from that are still out, as far as the kit has noted it.
    pub(super) fn tell_who_has(&self, slot: &Slot, id: u16) {
        if slot.debugged.load(Relaxed) {
            debug::tell_live(target(id), "craton_cache_destroy");
        }
    }
}
