//! Walks every invariant of a cache.
//!
//! **Unsafe.** Follows the links of free objects.

use crate::cache::{SlabCache, is_complete};
use crate::chain;
use crate::lists::LISTS;
use crate::morph::Morphs;
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
    /// Walks S1 to S5 over the partial lists and `full`, the cache's slabs that are on none of them. `base` is the
    /// address of page 0.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`].
    pub unsafe fn check(&self, base: *mut u8, records: &Table<SlabRecord>, full: &[PageId]) -> Result<(), Broken> {
        let capacity = self.geometry.capacity;
        let (mut slabs, mut out, mut complete) = (0, 0, 0);
        for list in 0..LISTS {
            let mut at = self.partial.first(list);
            if self.partial.is_filled(list) != at.is_some() {
                return Err(Broken { invariant: "S2", slab: at.unwrap_or(PageId(0)) });
            }
            while let Some(slab) = at {
                let record = &records[slab.0 as usize];
                // SAFETY: by the contract; the slab is on a list of ours.
                let free = unsafe { self.check_slab(slab, base, record, list) };
                free.map_err(|invariant| Broken { invariant, slab })?;
                (slabs, out) = (slabs + 1, out + u64::from(record.used()));
                complete += u32::from(is_complete(record));
                at = record.next().checked_sub(1).map(PageId);
            }
        }
        for slab in full {
            let record = &records[slab.0 as usize];
            if self.level(record) != capacity {
                return Err(Broken { invariant: "S2", slab: *slab });
            }
            (slabs, out) = (slabs + 1, out + u64::from(record.used()));
        }
        if complete != self.complete() {
            return Err(Broken { invariant: "S3", slab: PageId(0) });
        }
        if slabs != self.stats.slabs || out != self.stats.objects_out {
            return Err(Broken { invariant: "S4", slab: PageId(0) });
        }
        Ok(())
    }

    /// One slab of list `list`.
    ///
    /// # Safety
    /// As [`SlabCache::check`].
    unsafe fn check_slab(
        &self,
        slab: PageId,
        base: *mut u8,
        record: &SlabRecord,
        list: usize,
    ) -> Result<(), &'static str> {
        let capacity = self.geometry.capacity;
        let (mut free, mut last) = (0, core::ptr::null_mut());
        let mut object = record.free() as *mut u8;
        while !object.is_null() && free <= capacity {
            (free, last) = (free + 1, object);
            // SAFETY: objects on a slab's free list are the cache's own, and linked.
            object = unsafe { chain::next(object) };
        }
        let broken = [
            ("S1", record.used() + free != record.carved() || record.carved() > capacity),
            ("S2", self.level(record) == capacity || self.partial.list_of(self.level(record)) != list),
            ("S5", free > 0 && record.last_free(base.wrapping_add(slab.offset().0)) != last),
        ];
        broken.iter().find(|(_, broken)| *broken).map_or(Ok(()), |(invariant, _)| Err(*invariant))
    }
}

impl Morphs {
    /// Walks S6 over all slabs of two sizes. `base` is the address of page 0.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`].
    pub unsafe fn check(&self, base: *mut u8, records: &Table<SlabRecord>) -> Result<(), Broken> {
        let (mut slabs, mut old_bytes) = (0, 0);
        for (at, entry) in self.live_entries() {
            let slab = entry.range().first;
            let record = &records[slab.0 as usize];
            let fail = |broken| if broken { Err(Broken { invariant: "S6", slab }) } else { Ok(()) };
            let mut pages = entry.pages().map(|page| &records[page.0 as usize]);
            fail(pages.any(|page| page.morph_entry() != at || !page.is_morph_to(entry.new)))?;
            let (live, bytes) = entry.count_live();
            fail(live != usize::from(entry.count) || record.is_alone() != (live == 0))?;
            fail(live == 0 && (record.used() == 0 || entry.is_regular()))?;
            fail(entry.starts().count() != usize::from(record.carved()) || entry.has_overlap())?;
            fail(!entry.is_count_right())?;
            let start = base.wrapping_add(slab.offset().0);
            let mut object = record.free() as *mut u8;
            for _ in 0..record.free_objects() {
                let bytes = (object as usize).wrapping_sub(start as usize);
                fail(!entry.starts_at(bytes))?;
                // SAFETY: objects on a slab's free list are linked.
                object = unsafe { chain::next(object) };
            }
            (slabs, old_bytes) = (slabs + 1, old_bytes + bytes);
        }
        if slabs != self.slabs() || old_bytes != self.old_bytes() {
            return Err(Broken { invariant: "S6", slab: PageId(0) });
        }
        Ok(())
    }
}
