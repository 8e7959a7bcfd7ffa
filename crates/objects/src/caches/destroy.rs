//! **Unsafe.** Frees the depot's magazines.

use super::building::Building;
use super::{Fault, Over};
use crate::process::{Process, Watch};
use craton_base::{Clock, Platform};
use craton_heap::hooks::Hooks;

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    /// Does nothing with live objects; the inner error is their number.
    pub fn destroy(&self, handle: usize) -> Result<Result<(), u64>, Fault> {
        let slots = &self.caches.slots;
        let (id, slot) = slots.find(handle)?;
        if Building::<P>::is_for(handle) {
            return Err(Fault::Recursive);
        }
        {
            let mut cache = slots.lock(handle)?.2;
            self.flush(&mut cache, true);
            let live = cache.live();
            if live > 0 {
                drop(cache);
                self.report_live(slot, id);
                return Ok(Err(live));
            }
            cache.reserved = 0;
            // Under the cache's lock: from here on no call finds it.
            slots.retire(id);
        }
        self.free_slabs(slot, handle, |_| true);
        let mut free = slots.lock_free();
        let mut cache = slot.locked.lock();
        let (depot, slabs, mut supply) = self.parts(&mut cache);
        // SAFETY: `parts` returns the cache's one supply; no object is live, all slabs are gone.
        unsafe {
            depot.reap_empty(true, &mut supply);
            let gone = slabs.destroy(&mut supply, |_| ());
            debug_assert!(gone.is_ok(), "no object is live");
        }
        cache.clear();
        slots.free(&mut free, id);
        Ok(Ok(()))
    }
}
