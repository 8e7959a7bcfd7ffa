//! A cache of equal objects.
//!
//! **From.** Bonwick94 §3.2.
//!
//! **Unsafe.** Turns places on a slab into objects, by arithmetic on the heap's base address.

use crate::chain::{self, Chain};
use crate::geometry::Geometry;
use crate::record::SlabRecord;
use craton_base::{PAGE_SHIFT, PageId, PageRange, Pages, SpanSource, Table};

/// Counts of one cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlabStats {
    /// Slabs, of whatever fullness.
    pub slabs: u32,
    /// Objects that are out: with the program or in the caches in front.
    pub objects_out: u64,
    /// Chains handed out since the start.
    pub refills: u64,
    /// Objects in those chains.
    pub objects_refilled: u64,
}

/// Objects of one size.
pub struct SlabCache {
    pub(crate) geometry: Geometry,
    /// First slab of the partial list, plus 1.
    pub(crate) head: u32,
    pub(crate) stats: SlabStats,
}

impl SlabCache {
    /// A cache that is still to be made by [`SlabCache::new`]; all zeros.
    pub const UNSET: Self = Self::new(Geometry { object: 0, pages: Pages(0), capacity: 0 });

    /// Whether this is [`SlabCache::UNSET`].
    pub fn is_unset(&self) -> bool {
        self.geometry.capacity == 0
    }

    /// A cache without slabs.
    pub const fn new(geometry: Geometry) -> Self {
        let stats = SlabStats { slabs: 0, objects_out: 0, refills: 0, objects_refilled: 0 };
        Self { geometry, head: 0, stats }
    }

    /// Sizes of the slabs and their objects.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Counts.
    pub fn stats(&self) -> SlabStats {
        self.stats
    }

    /// Takes up to `want` objects. Fewer, or none, when `source` refuses a slab. `cut` is told of each object that comes off a
    /// slab for the first time, so that the front end can mark it as free like those that came back.
    ///
    /// # Safety
    /// `base` is the address of page 0 of `source`'s region; the pages that `source` gives are readable and writable, and
    /// `records` has an entry for each, used by this cache alone while it holds the span.
    pub unsafe fn alloc(
        &mut self,
        want: u32,
        base: *mut u8,
        records: &Table<SlabRecord>,
        source: &mut impl SpanSource,
        cut: impl Fn(*mut u8),
    ) -> Chain {
        let mut out = Chain::EMPTY;
        while out.len() < want {
            let slab = match self.head.checked_sub(1) {
                Some(first) => PageId(first),
                None => match self.add_slab(records, source) {
                    Some(first) => first,
                    None => break,
                },
            };
            // SAFETY: the slab is one of ours, by the lists.
            unsafe { self.take_from(slab, want, base, records, &mut out, &cut) };
        }
        self.stats.refills += 1;
        self.stats.objects_refilled += u64::from(out.len());
        self.stats.objects_out += u64::from(out.len());
        out
    }

    /// Takes objects of one slab until the chain holds `want` or the slab is used up: free ones first, then new cuts.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`]; `slab` is a partial slab of this cache.
    unsafe fn take_from(
        &mut self,
        slab: PageId,
        want: u32,
        base: *mut u8,
        records: &Table<SlabRecord>,
        out: &mut Chain,
        cut: &impl Fn(*mut u8),
    ) {
        let record = &records[slab.0 as usize];
        let (mut used, mut carved) = (record.used(), record.carved());
        let mut free = record.free() as *mut u8;
        while out.len() < want && !free.is_null() {
            let object = free;
            // SAFETY: objects on a slab's free list are ours and linked; each leaves the list before it joins the chain.
            unsafe {
                free = chain::next(object);
                out.push(object);
            }
            used += 1;
        }
        while out.len() < want && carved < self.geometry.capacity {
            let offset = slab.offset().0 + carved as usize * self.geometry.object as usize;
            // SAFETY: the place lies in our slab, and nobody has had it yet.
            unsafe {
                let object = base.add(offset);
                cut(object);
                out.push(object);
            }
            carved += 1;
            used += 1;
        }
        record.set_free(free as usize);
        record.set_used(used);
        record.set_carved(carved);
        if used == self.geometry.capacity {
            self.unlink(slab, records);
        }
    }

    /// Takes objects back; slabs that become complete go back to `source`. A place of a slab that was never an object is
    /// the error: the chain is then taken back up to there.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`], with the same arguments; each object of `chain` came from this cache and is given back once.
    pub unsafe fn free(
        &mut self,
        mut chain: Chain,
        base: *mut u8,
        records: &Table<SlabRecord>,
        source: &mut impl SpanSource,
    ) -> Result<(), *mut u8> {
        while let Some(object) = chain.pop() {
            let offset = object as usize - base as usize;
            let slab = self.slab_of(offset);
            let record = &records[slab.0 as usize];
            let used = record.used();
            if used == 0 || offset - slab.offset().0 >= usize::from(record.carved()) * self.geometry.object as usize {
                return Err(object);
            }
            self.stats.objects_out -= 1;
            // SAFETY: the object is ours again; the slab's free list is of our objects.
            unsafe { chain::link(object, record.free() as *mut u8) };
            record.set_free(object as usize);
            record.set_used(used - 1);
            if used == self.geometry.capacity {
                self.push_front(slab, records);
            }
            if used == 1 {
                self.retire(slab, records, source);
            }
        }
        Ok(())
    }

    /// The slab that holds the object at `offset` bytes from the region's start.
    fn slab_of(&self, offset: usize) -> PageId {
        let page = (offset >> PAGE_SHIFT) as u32;
        PageId(page & !(self.geometry.align().0 - 1))
    }

    #[cold]
    fn add_slab(&mut self, records: &Table<SlabRecord>, source: &mut impl SpanSource) -> Option<PageId> {
        let pages = self.geometry.pages;
        let span = source.alloc(pages, self.geometry.align(), self.geometry.density()).ok()?;
        let first = span.range.first;
        records[first.0 as usize].begin(pages);
        self.push_front(first, records);
        self.stats.slabs += 1;
        Some(first)
    }

    /// A slab's last object came back.
    fn retire(&mut self, slab: PageId, records: &Table<SlabRecord>, source: &mut impl SpanSource) {
        self.unlink(slab, records);
        records[slab.0 as usize].set_pages(Pages(0));
        self.stats.slabs -= 1;
        let freed = source.free(PageRange::new(slab, self.geometry.pages), self.geometry.density());
        debug_assert_eq!(freed, Ok(()), "a slab is a whole span");
    }

    fn push_front(&mut self, slab: PageId, records: &Table<SlabRecord>) {
        let record = &records[slab.0 as usize];
        record.set_prev(0);
        record.set_next(self.head);
        if let Some(head) = self.head.checked_sub(1) {
            records[head as usize].set_prev(slab.0 + 1);
        }
        self.head = slab.0 + 1;
    }

    fn unlink(&mut self, slab: PageId, records: &Table<SlabRecord>) {
        let record = &records[slab.0 as usize];
        let (next, prev) = (record.next(), record.prev());
        match prev.checked_sub(1) {
            Some(prev) => records[prev as usize].set_next(next),
            None => self.head = next,
        }
        if let Some(next) = next.checked_sub(1) {
            records[next as usize].set_prev(prev);
        }
    }
}
