//! A cache of equal objects (Bonwick94 §3.2).
//!
//! Freeing costs 8 instructions behind others of the slab, about 40 alone.
//! **Unsafe.** Turns places on a slab into objects, by arithmetic on the heap's base address.

use crate::chain::{self, Chain, Marks};
use crate::geometry::Geometry;
use crate::record::{Records, SlabId, SlabRecord};
use crate::slab::{SlabStats, Slabs};
use core::mem::offset_of;
use craton_base::{PAGE_SHIFT, PageId, PageRange, Pages, SpanSource};

#[derive(Debug)]
pub struct Freed {
    pub rest: *mut u8,
    pub strays: Chain,
    /// On slabs that hold or held two sizes: free them by [`SlabCache::free_mixed`].
    pub moved: Chain,
}

pub struct SlabCache {
    pub(crate) geometry: Geometry,
    pub(crate) slabs: Slabs<SlabId>,
}

impl SlabCache {
    /// For readers of another process.
    pub const SHAPE: [(&'static str, usize); 3] = [
        ("cache.slabs", Self::STATS + offset_of!(SlabStats, slabs)),
        ("cache.objects_out", Self::STATS + offset_of!(SlabStats, objects_out)),
        ("cache.refills", Self::STATS + offset_of!(SlabStats, refills)),
    ];
    const STATS: usize = offset_of!(Self, slabs) + offset_of!(Slabs<SlabId>, stats);

    pub const UNSET: Self = Self::new(Geometry { object: 0, pages: Pages(0), capacity: 0 });

    pub fn is_unset(&self) -> bool {
        self.geometry.capacity == 0
    }

    pub const fn new(geometry: Geometry) -> Self {
        Self::keeping(geometry, 0)
    }

    pub const fn keeping(geometry: Geometry, most: u16) -> Self {
        Self { geometry, slabs: Slabs::new(geometry.capacity, most) }
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub fn stats(&self) -> SlabStats {
        self.slabs.stats
    }

    pub fn complete(&self) -> u32 {
        self.slabs.kept.count()
    }

    /// Walks the slabs with room.
    pub fn partial(&self, records: &impl Records) -> u32 {
        self.slabs.partial(records)
    }

    pub fn let_keep(&mut self, more: bool) {
        self.slabs.kept.set_closed(!more);
    }

    /// Returns fewer than `want` objects when `source` refuses a slab. Marks new ones as free.
    /// Error: an object whose link was overwritten.
    /// # Safety
    /// `base` is the address of page 0 of `source`'s region, whose pages are readable and writable;
    /// `records` has an entry for each, used by this cache alone while it holds the span.
    pub unsafe fn alloc(
        &mut self,
        want: u32,
        base: *mut u8,
        records: &impl Records,
        source: &mut impl SpanSource,
        marks: impl Marks,
    ) -> Result<Chain, *mut u8> {
        let mut out = Chain::EMPTY;
        while out.len() < want {
            let slab = match self.slabs.lists.fullest() {
                Some(slab) => slab.page(),
                None => {
                    let Geometry { pages, .. } = self.geometry;
                    self.slabs.kept.missed();
                    let Ok(span) = source.alloc(pages, self.geometry.align(), self.geometry.density()) else { break };
                    self.begin_slab(span.range.first, records)
                }
            };
            // SAFETY: the lists have this cache's slabs.
            unsafe { self.take_from(slab, want, base, records, &mut out, &marks) }?;
        }
        let stats = &mut self.slabs.stats;
        stats.refills += u64::from(!out.is_empty());
        stats.objects_refilled += u64::from(out.len());
        stats.objects_out += u64::from(out.len());
        Ok(out)
    }

    /// # Safety
    /// As [`SlabCache::alloc`]; `slab` is this cache's, with room.
    unsafe fn take_from(
        &mut self,
        slab: PageId,
        want: u32,
        base: *mut u8,
        records: &impl Records,
        out: &mut Chain,
        marks: &impl Marks,
    ) -> Result<(), *mut u8> {
        let record = records.of(slab);
        let before = self.level(record);
        let start = base.wrapping_add(slab.offset().0);
        let (object, carved) = (self.geometry.object as usize, record.carved());
        let cut = if record.morph_entry() == 0 { usize::from(carved) * object } else { self.geometry.pages.bytes().0 };
        // SAFETY: the record lists free objects of this slab.
        let mut used = record.used() + unsafe { record.pop_free_run(start, cut, want - out.len(), out, marks) }?;
        let uncut = if record.morph_entry() == 0 { self.geometry.capacity - carved } else { 0 };
        let fresh = (want - out.len()).min(u32::from(uncut)) as u16;
        if fresh > 0 {
            // SAFETY: places behind those that were cut.
            unsafe {
                let first = start.add(usize::from(carved) * object);
                out.push_row(first, object, fresh, marks);
                marks.set_cut(first, first.add(usize::from(fresh - 1) * object), carved + fresh);
            }
            record.set_carved(carved + fresh);
            used += fresh;
        }
        record.set_used(used);
        self.slabs.rise(SlabId::of(slab), before, self.level(record), records);
        Ok(())
    }

    /// Error: a place that was never an object or bears no mark.
    /// # Safety
    /// As [`SlabCache::alloc`]; the objects came from this cache and are given up.
    pub unsafe fn free(
        &mut self,
        chain: Chain,
        base: *mut u8,
        records: &impl Records,
        source: &mut impl SpanSource,
        marks: impl Marks,
    ) -> Result<(), *mut u8> {
        let (first, n) = chain.into_raw();
        if n == 0 {
            return Ok(());
        }
        // SAFETY: by the contract.
        let freed = unsafe { self.free_first(first, n, |_| true, base, records, source, marks) }?;
        debug_assert!(freed.strays.is_empty() && freed.moved.is_empty(), "all slabs are this cache's");
        let _ = (freed.strays.into_raw(), freed.moved.into_raw());
        Ok(())
    }

    /// Objects whose slabs `is_ours` rejects become strays.
    /// # Safety
    /// As [`SlabCache::free`], except for strays; `first` begins a list, which may end before `n`,
    /// at [`crate::end`].
    #[allow(clippy::too_many_arguments)] // What all calls of a cache take.
    pub unsafe fn free_first(
        &mut self,
        mut first: *mut u8,
        n: u32,
        is_ours: impl Fn(PageId) -> bool,
        base: *mut u8,
        records: &impl Records,
        source: &mut impl SpanSource,
        marks: impl Marks,
    ) -> Result<Freed, *mut u8> {
        let (mut strays, mut gone) = (Chain::EMPTY, Chain::EMPTY);
        let slab_bytes = self.geometry.pages.bytes().0;
        let mut left = n;
        while left > 0 && first != chain::end() {
            // A program may have overwritten links.
            if !marks.is_here(first) {
                return Err(first);
            }
            let offset = first as usize - base as usize;
            let slab = self.slab_of(offset);
            let (record, start) = (records.of(slab), base.wrapping_add(slab.offset().0));
            // Asked first: a slab seen to have left is then seen as one of two sizes.
            let owned = is_ours(slab);
            // A split slab's first page may be ordinary by now.
            let page = PageId((offset >> PAGE_SHIFT) as u32);
            let (morphed, moved) = records.of(page).sizes(self.geometry.object);
            // See `free_mixed`.
            let alone = morphed && owned && !moved && record.is_alone();
            let is_on_grid = || ((first as usize - start as usize) as u32).is_multiple_of(self.geometry.object);
            let apart = moved || alone && !is_on_grid();
            let ours = owned && !apart;
            let used = record.used();
            // The front end validated places of two sizes.
            let all_cut = morphed || !ours;
            let bytes = if all_cut { slab_bytes } else { usize::from(record.carved()) * self.geometry.object as usize };
            let (mut at, mut last, mut run) = (first, first, 0);
            let most = if alone { 1 } else { left };
            // One test detects the run's end and places never cut.
            while run < most && (at as usize).wrapping_sub(start as usize) < bytes {
                if !(if ours { marks.put(at) } else { marks.is_set(at) }) {
                    return Err(at);
                }
                last = at;
                // SAFETY: the list links `left` objects from `first` on.
                at = unsafe { chain::next(at) };
                run += 1;
            }
            if !ours {
                if run == 0 {
                    return Err(first);
                }
                // SAFETY: the run ends at `last`.
                unsafe {
                    chain::link(last, chain::end());
                    if apart { &mut gone } else { &mut strays }.append(first, last, run);
                }
                (first, left) = (at, left - run);
                continue;
            }
            // The first place was never cut, or an object appears twice.
            if run == 0 || run > u32::from(used) {
                return Err(first);
            }
            // SAFETY: the run lies on the slab.
            unsafe { record.put_free(start, first, last) };
            self.slabs.stats.objects_out -= u64::from(run);
            left -= run;
            first = at;
            let now = used - run as u16;
            record.set_used(now);
            if now == 0 && !morphed {
                self.all_home(record, start, &marks)?;
                if !self.slabs.kept.wants() {
                    self.retire(slab, used, records, source);
                    continue;
                }
                // Cut anew, objects come in order.
                record.begin();
                marks.set_cut(start, start.wrapping_add(slab_bytes - 1), 0);
            }
            if !morphed {
                record.refuse(0);
            }
            let (before, after) =
                if morphed { (self.mixed(used, record), self.mixed(now, record)) } else { (used, now) };
            self.slabs.relist(SlabId::of(slab), before, after, records);
        }
        Ok(Freed { rest: first, strays, moved: gone })
    }

    /// Error: a live object. A double free of one with an overwritten mark counted for it. Wipes
    /// the marks, which later uses of the memory cannot read.
    #[inline(never)]
    fn all_home(&self, record: &SlabRecord, start: *mut u8, marks: &impl Marks) -> Result<(), *mut u8> {
        let places = (0..usize::from(record.carved())).map(|i| start.wrapping_add(i * self.geometry.object as usize));
        { places }.find(|place| !marks.leave(*place)).map_or(Ok(()), Err)
    }

    pub fn free_complete(&mut self, most: u32, records: &impl Records, source: &mut impl SpanSource) {
        for _ in 0..most {
            let Some(slab) = self.slabs.complete() else { break };
            self.retire(slab.page(), 0, records, source);
        }
    }

    /// Frees complete slabs unused since the last call.
    pub fn free_idle(&mut self, records: &impl Records, source: &mut impl SpanSource) {
        self.slabs.kept.turn();
        self.free_complete(self.slabs.kept.idle(), records, source);
    }

    #[inline]
    pub(crate) fn level(&self, record: &SlabRecord) -> u16 {
        if record.morph_entry() == 0 { record.used() } else { self.mixed(record.used(), record) }
    }

    /// A slab of two sizes, never complete: used objects and blocked places.
    #[inline]
    fn mixed(&self, used: u16, record: &SlabRecord) -> u16 {
        (used + self.geometry.capacity - record.carved()).max(1)
    }

    #[inline]
    pub(crate) fn slab_of(&self, offset: usize) -> PageId {
        self.geometry.slab_of(PageId((offset >> PAGE_SHIFT) as u32))
    }

    #[cold]
    pub(crate) fn begin_slab(&mut self, first: PageId, records: &impl Records) -> PageId {
        let record = records.of(first);
        if record.is_morph_to(self.geometry.object) {
            self.slabs.stats.morphed += 1;
        } else {
            record.begin();
        }
        self.slabs.begin(SlabId::of(first), self.level(record), records);
        first
    }

    pub(crate) fn retire(&mut self, slab: PageId, level: u16, records: &impl Records, source: &mut impl SpanSource) {
        self.slabs.end(SlabId::of(slab), level, records);
        let freed = source.free(PageRange::new(slab, self.geometry.pages), self.geometry.density());
        debug_assert_eq!(freed, Ok(()), "a slab is a whole span");
    }
}
