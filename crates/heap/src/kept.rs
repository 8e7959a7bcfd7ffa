//! Returns mappings of freed huge objects.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::huge::Entry;
use craton_base::{Clock, Mappings, Platform};

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Returns the bytes.
    pub fn drop_kept(&self) -> usize {
        let mut table = self.huge.lock();
        let mut bytes = 0;
        while let Some(old) = table.kept.take_oldest() {
            self.unmap_kept(old);
            bytes += old.bytes;
        }
        bytes
    }

    /// Unmaps expired ones; returns whether any was kept.
    pub fn age_kept(&self) -> bool {
        let mut any = false;
        loop {
            let mut table = self.huge.lock();
            any |= table.kept.bytes() > 0;
            let Some(old) = table.kept.take_expired(self.clock.now_ns()) else { return any };
            // Releases the lock between two.
            self.unmap_kept(old);
        }
    }

    pub(crate) fn unmap_kept(&self, old: Entry) {
        self.system.unmap(old.at, old.bytes);
        self.gate.remove_huge(old.bytes as u64);
    }
}
