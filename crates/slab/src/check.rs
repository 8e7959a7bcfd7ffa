//! Walks every invariant of a cache.
//!
//! **Unsafe.** Follows the links of free objects.

use crate::cache::SlabCache;
use crate::chain;
use crate::record::SlabRecord;
use craton_base::{PageId, Table};

/// An invariant that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Its id, as the crate's theory names it.
    pub invariant: &'static str,
    /// First page of the slab where that was seen.
    pub slab: PageId,
}

impl SlabCache {
    /// Walks S1 to S4 over the partial list and `full`, the cache's slabs that are not on it.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`].
    pub unsafe fn check(&self, records: &Table<SlabRecord>, full: &[PageId]) -> Result<(), Broken> {
        let capacity = self.geometry.capacity;
        let (mut slabs, mut out) = (0, 0);
        let mut at = self.head;
        while let Some(first) = at.checked_sub(1) {
            let (slab, record) = (PageId(first), &records[first as usize]);
            let fail = |invariant| Err(Broken { invariant, slab });
            let mut free = 0;
            let mut object = record.free() as *mut u8;
            while !object.is_null() && free <= capacity {
                free += 1;
                // SAFETY: objects on a slab's free list are the cache's own, and linked.
                object = unsafe { chain::next(object) };
            }
            if record.used() + free != record.carved() || record.carved() > capacity {
                return fail("S1");
            }
            if record.used() == capacity {
                return fail("S2");
            }
            if record.used() == 0 {
                return fail("S3");
            }
            (slabs, out) = (slabs + 1, out + u64::from(record.used()));
            at = record.next();
        }
        for slab in full {
            if records[slab.0 as usize].used() != capacity {
                return Err(Broken { invariant: "S2", slab: *slab });
            }
            (slabs, out) = (slabs + 1, out + u64::from(capacity));
        }
        if slabs != self.stats.slabs || out != self.stats.objects_out {
            return Err(Broken { invariant: "S4", slab: PageId(0) });
        }
        Ok(())
    }
}
