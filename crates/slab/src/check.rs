//! Walks the invariants.
//!
//! **Unsafe.** Follows the links of free objects.

use crate::cache::SlabCache;
use crate::chain;
use crate::lists::{COMPLETE, FULL, LISTS, Links};
use crate::morph::Morphs;
use crate::record::{Records, SlabId, SlabRecord};
use crate::slab::Slabs;
use craton_base::PageId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    pub invariant: &'static str,
    /// The slab's start, from the region's for a class; 0: no one slab.
    pub slab: usize,
}

impl Broken {
    pub(crate) const fn of_none(invariant: &'static str) -> Self {
        Self { invariant, slab: 0 }
    }
}

impl<S: Copy + PartialEq> Slabs<S> {
    /// S2 to S4; `full` are the unlisted slabs.
    pub(crate) fn check(
        &self,
        links: &impl Links<Slab = S>,
        full: impl Iterator<Item = S>,
        look: impl Fn(S) -> Result<(u16, u16), &'static str>,
        at: impl Fn(S) -> usize,
    ) -> Result<(), Broken> {
        let (mut slabs, mut out, mut complete) = (0, 0, 0);
        let mut walk = |slab, list| {
            let broken = |invariant| Broken { invariant, slab: at(slab) };
            let (level, used) = look(slab).map_err(broken)?;
            if self.lists.list_of(level) != list {
                return Err(broken("S2"));
            }
            (slabs, out) = (slabs + 1, out + u64::from(used));
            complete += u32::from(list == COMPLETE);
            Ok(())
        };
        for list in 0..LISTS {
            let of = self.lists.list(list);
            if self.lists.is_filled(list) != of.first().is_some() {
                return Err(Broken::of_none("S2"));
            }
            of.iter(links).try_for_each(|slab| walk(slab, list))?;
        }
        for slab in full {
            walk(slab, FULL)?;
        }
        if complete != self.kept.count() {
            return Err(Broken::of_none("S3"));
        }
        if (slabs, out) != (self.stats.slabs, self.stats.objects_out) {
            return Err(Broken::of_none("S4"));
        }
        Ok(())
    }
}

impl SlabCache {
    /// S1 to S5; `full` are the unlisted slabs.
    /// # Safety
    /// As [`SlabCache::alloc`].
    pub unsafe fn check(&self, base: *mut u8, records: &impl Records, full: &[PageId]) -> Result<(), Broken> {
        let full = full.iter().map(|page| SlabId::of(*page));
        let look = |slab: SlabId| {
            let record = records.of(slab.page());
            // SAFETY: listed slabs are this cache's.
            unsafe { self.check_slab(slab.page(), base, record) }?;
            Ok((self.level(record), record.used()))
        };
        self.slabs.check(records, full, look, |slab| slab.page().offset().0)
    }

    /// S1 and S5.
    /// # Safety
    /// As [`SlabCache::check`].
    unsafe fn check_slab(&self, slab: PageId, base: *mut u8, record: &SlabRecord) -> Result<(), &'static str> {
        let capacity = self.geometry.capacity;
        let (mut free, mut last) = (0, core::ptr::null_mut());
        let mut object = record.free() as *mut u8;
        while !object.is_null() && object != chain::end() && free <= capacity {
            (free, last) = (free + 1, object);
            // SAFETY: free objects are linked.
            object = unsafe { chain::next(object) };
        }
        if record.used() + free != record.carved() || record.carved() > capacity {
            return Err("S1");
        }
        let is_last = free == 0 || record.last_free(base.wrapping_add(slab.offset().0)) == last;
        if is_last { Ok(()) } else { Err("S5") }
    }
}

impl Morphs {
    /// S6.
    /// # Safety
    /// As [`SlabCache::alloc`].
    pub unsafe fn check(&self, base: *mut u8, records: &impl Records) -> Result<(), Broken> {
        let (mut slabs, mut old_bytes) = (0, 0);
        for first in self.firsts(records) {
            let record = records.of(first);
            let fail = |broken| if broken { Err(Broken { invariant: "S6", slab: first.offset().0 }) } else { Ok(()) };
            let slab = self.slab(first, records);
            let mut pages = (first.0..slab.range().end().0).map(|page| records.of(PageId(page)));
            fail(pages.any(|page| self.range_of(page) != Some(slab.range()) || !page.is_morph_to(slab.new)))?;
            let ((live, bytes), head) = (slab.count_live(), slab.head());
            fail(live + usize::from(head > 0) != usize::from(slab.count()))?;
            fail(head > 0 && slab.across().is_none_or(|(_, size, before)| size != before + head))?;
            fail(record.is_alone() != (slab.count() == 0))?;
            fail(slab.count() == 0 && (record.used() == 0 || slab.is_regular()))?;
            fail(slab.starts().count() != usize::from(record.carved()) || slab.has_overlap())?;
            fail(!slab.is_count_right())?;
            let start = base.wrapping_add(first.offset().0);
            let mut object = record.free() as *mut u8;
            for _ in 0..record.free_objects() {
                let bytes = (object as usize).wrapping_sub(start as usize);
                fail(u32::try_from(bytes).is_ok_and(|bytes| !slab.starts_at(bytes)))?;
                // SAFETY: free objects are linked.
                object = unsafe { chain::next(object) };
            }
            (slabs, old_bytes) = (slabs + 1, old_bytes + bytes);
        }
        if slabs != self.slabs() || old_bytes != self.old_bytes() {
            return Err(Broken::of_none("S6"));
        }
        Ok(())
    }
}
