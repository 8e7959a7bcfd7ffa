use super::building::Building;
use super::cache::CacheSlots;
use super::{Fault, Over};
use crate::process::{Process, Watch};
use crate::slots::Slot;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Platform};
use craton_heap::hooks::Hooks;
use craton_os::process;
use craton_slab::object::Taken;

const AT_ONCE: usize = 30;

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    /// Allocates until `objects` may be live without a request for memory; 0 ends the promise.
    pub fn prefill(&self, handle: usize, objects: usize) -> Result<(), Fault> {
        let (_, slot) = self.caches.slots.find(handle)?;
        if Building::<P>::is_for(handle) {
            return Err(Fault::Recursive);
        }
        {
            let cache = self.caches.slots.lock(handle)?.2;
            let (most, memory) = (cache.limit_objects, process::physical_memory());
            // More than the machine has would first use all of it.
            let is_beyond = memory > 0 && objects.saturating_mul(cache.layout.stride()) > memory;
            if is_beyond || most > 0 && objects > most {
                return Err(Fault::NoMemory);
            }
        }
        if slot.shared.watched.load(Relaxed) {
            // Buffers are made on request.
            return Ok(());
        }
        loop {
            let (mut made, mut n) = ([null_mut(); AT_ONCE], 0);
            let failed = self.make_some(slot, handle, objects, &mut made, &mut n);
            let is_done = n < AT_ONCE;
            let is_kept = P::within(|| self.store(&mut slot.locked.lock(), &made[..n]));
            match failed {
                Some(fault) => return Err(fault),
                // Objects on slabs, for want of a magazine, would go round without end.
                None if !is_kept => return Err(Fault::NoMemory),
                None if is_done => return Ok(()),
                None => {}
            }
        }
    }

    /// Counts objects in `n`.
    fn make_some(
        &self,
        slot: &Slot<CacheSlots>,
        handle: usize,
        objects: usize,
        made: &mut [*mut u8; AT_ONCE],
        n: &mut usize,
    ) -> Option<Fault> {
        loop {
            let mut cache = match self.caches.slots.lock(handle) {
                Ok((_, _, cache)) => cache,
                Err(misuse) => return Some(misuse.into()),
            };
            let there = cache.slabs.in_use() >= objects as u64;
            if there || *n == AT_ONCE {
                cache.reserved = if there { objects } else { cache.reserved };
                return None;
            }
            let Some(taken) = P::within(|| self.alloc_from_slabs(&mut cache)) else { return Some(Fault::NoMemory) };
            if matches!(taken, Taken::Raw(_)) {
                cache.begin_building();
            }
            self.enter_page(slot, &cache, taken.object());
            drop(cache);
            let built = match taken {
                Taken::Constructed(object) => Ok(object),
                Taken::Raw(object) => self.construct(slot, handle, object, false),
            };
            match built {
                Ok(object) => {
                    self.set_mark(object, true);
                    made[*n] = object;
                    *n += 1;
                }
                Err(fault) => return Some(fault),
            }
        }
    }
}
