//! A cache of equal objects.
//!
//! **From.** Bonwick94 §3.2.
//!
//! **Cost.** An object that comes back next to others of its slab in the chain: 8 instructions. A run of objects of one
//! slab: one update of its record, about 40. A slab's free objects go out together without being touched.
//!
//! **Unsafe.** Turns places on a slab into objects, by arithmetic on the heap's base address.

use crate::chain::{self, Chain};
use crate::geometry::Geometry;
use crate::keep::Keep;
use crate::lists::PartialLists;
use crate::record::SlabRecord;
use core::mem::offset_of;
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
    /// Slabs taken over from caches of other sizes since the start, with objects that live on them.
    pub morphed: u32,
    /// Those of them that became ordinary slabs of this size.
    pub settled: u32,
}

impl SlabStats {
    /// The counts of two caches together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            slabs: self.slabs + other.slabs,
            objects_out: self.objects_out + other.objects_out,
            refills: self.refills + other.refills,
            objects_refilled: self.objects_refilled + other.objects_refilled,
            morphed: self.morphed + other.morphed,
            settled: self.settled + other.settled,
        }
    }
}

/// What is left of a list of which the first objects were given back.
#[derive(Debug)]
pub struct Freed {
    /// The list behind them.
    pub rest: *mut u8,
    /// Those that were not taken: their slabs are another owner's.
    pub strays: Chain,
    /// Those that were not taken since their slabs hold two sizes, or did: for [`SlabCache::free_mixed`] of the caches
    /// that have them.
    pub moved: Chain,
}

/// Objects of one size.
pub struct SlabCache {
    pub(crate) geometry: Geometry,
    pub(crate) partial: PartialLists,
    pub(crate) stats: SlabStats,
    pub(crate) keep: Keep,
}

impl SlabCache {
    /// Where its counts lie, in bytes, for those who read the memory of another process.
    pub const SHAPE: [(&'static str, usize); 3] = [
        ("cache.slabs", offset_of!(Self, stats) + offset_of!(SlabStats, slabs)),
        ("cache.objects_out", offset_of!(Self, stats) + offset_of!(SlabStats, objects_out)),
        ("cache.refills", offset_of!(Self, stats) + offset_of!(SlabStats, refills)),
    ];

    /// A cache that is still to be made by [`SlabCache::new`]; all zeros.
    pub const UNSET: Self = Self::new(Geometry { object: 0, pages: Pages(0), capacity: 0 });

    /// Whether this is [`SlabCache::UNSET`].
    pub fn is_unset(&self) -> bool {
        self.geometry.capacity == 0
    }

    /// A cache without slabs.
    pub const fn new(geometry: Geometry) -> Self {
        Self::keeping(geometry, 0)
    }

    /// A cache without slabs that may keep up to `most` complete ones: see [`SlabCache::complete`].
    pub const fn keeping(geometry: Geometry, most: u16) -> Self {
        let stats = SlabStats { slabs: 0, objects_out: 0, refills: 0, objects_refilled: 0, morphed: 0, settled: 0 };
        Self { geometry, partial: PartialLists::new(geometry.capacity), stats, keep: Keep::up_to(most) }
    }

    /// Sizes of the slabs and their objects.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Counts.
    pub fn stats(&self) -> SlabStats {
        self.stats
    }

    /// Slabs without an object in use that are kept since the cache has missed what it gave back. [`SlabCache::give_complete`] and
    /// [`SlabCache::give_idle`] give them back.
    pub fn complete(&self) -> u32 {
        self.keep.count()
    }

    /// Slabs with room of which some object is in use; a step for each.
    pub fn partial(&self, records: &Table<SlabRecord>) -> u32 {
        self.partial.partial(records)
    }

    /// Lets complete slabs be kept from now on, or not.
    pub fn let_keep(&mut self, more: bool) {
        self.keep.set_closed(!more);
    }

    /// Takes up to `want` objects. Fewer, or none, when `source` refuses a slab. `cut` is told of each object that
    /// comes off a slab for the first time, so that the front end can mark it as free like those that came back.
    ///
    /// # Safety
    /// `base` is the address of page 0 of `source`'s region; the pages that `source` gives are readable and writable,
    /// and `records` has an entry for each, used by this cache alone while it holds the span.
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
            let slab = match self.partial.fullest() {
                Some(slab) => {
                    if is_complete(&records[slab.0 as usize]) {
                        self.keep.used();
                    }
                    slab
                }
                None => match self.add_slab(records, source) {
                    Some(slab) => slab,
                    None => break,
                },
            };
            // SAFETY: the slab is one of ours, by the lists.
            unsafe { self.take_from(slab, want, base, records, &mut out, &cut) };
        }
        self.stats.refills += u64::from(!out.is_empty());
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
        let before = self.level(record);
        let start = base.wrapping_add(slab.offset().0);
        // SAFETY: the record's list is of free objects of this slab, and the chain takes what leaves it.
        let mut used = record.used() + unsafe { record.take_free(start, want - out.len(), out) };
        let carved = record.carved();
        // Of a slab of two sizes all usable places have been cut.
        let uncut = if record.morph_entry() == 0 { self.geometry.capacity - carved } else { 0 };
        let fresh = (want - out.len()).min(u32::from(uncut)) as u16;
        if fresh > 0 {
            let object = self.geometry.object as usize;
            // SAFETY: these places lie in our slab behind all that were cut, and nobody has had them yet.
            unsafe { out.push_row(start.add(usize::from(carved) * object), object, fresh, cut) };
            record.set_carved(carved + fresh);
            used += fresh;
        }
        record.set_used(used);
        self.relist(slab, before, self.level(record), records);
    }

    /// Takes objects back; slabs that become complete go back to `source`. A place of a slab that was never an object
    /// is the error: the chain is then taken back up to there.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`], with the same arguments; each object of `chain` came from this cache and is given back
    /// once.
    pub unsafe fn free(
        &mut self,
        chain: Chain,
        base: *mut u8,
        records: &Table<SlabRecord>,
        source: &mut impl SpanSource,
    ) -> Result<(), *mut u8> {
        let (first, n) = chain.into_raw();
        if n == 0 {
            return Ok(());
        }
        let owner = records[self.slab_of(first as usize - base as usize).0 as usize].owner();
        // SAFETY: by the contract.
        let freed = unsafe { self.free_first(first, n, owner, base, records, source) }?;
        debug_assert!(freed.strays.is_empty() && freed.moved.is_empty(), "all slabs have this cache as their owner");
        let _ = (freed.strays.into_raw(), freed.moved.into_raw());
        Ok(())
    }

    /// As [`SlabCache::free`], for the first `n` objects of a list. Those on slabs of another owner than `owner` are
    /// strays, for the caller to give to the cache that has them; those on slabs that have gone to other sizes are
    /// apart.
    ///
    /// # Safety
    /// As [`SlabCache::free`], for the objects that are no strays; `first` begins a list, of which the caller gives up the
    /// first `n` objects. It may have fewer, if a null link ends it.
    pub unsafe fn free_first(
        &mut self,
        mut first: *mut u8,
        n: u32,
        owner: usize,
        base: *mut u8,
        records: &Table<SlabRecord>,
        source: &mut impl SpanSource,
    ) -> Result<Freed, *mut u8> {
        let (mut strays, mut gone) = (Chain::EMPTY, Chain::EMPTY);
        let slab_bytes = self.geometry.pages.bytes().0;
        let mut left = n;
        while left > 0 && !first.is_null() {
            let slab = self.slab_of(first as usize - base as usize);
            let (record, start) = (&records[slab.0 as usize], base.wrapping_add(slab.offset().0));
            // Who sees that the slab has moved to a cache of another size sees that it is one of two sizes: see
            // `owner`.
            let owned = record.owner() == owner;
            let (morphed, moved) = record.sizes(self.geometry.object);
            // Of a slab without old objects places that come back are looked at one by one: see `free_mixed`.
            let alone = morphed && owned && !moved && record.is_alone();
            let is_on_grid = || ((first as usize - start as usize) as u32).is_multiple_of(self.geometry.object);
            let apart = moved || alone && !is_on_grid();
            let ours = owned && !apart;
            let used = record.used();
            let (mut bytes, mut blocked) = (slab_bytes, 0);
            if morphed {
                // The front end has looked at each place of such a slab itself.
                blocked = if ours { self.geometry.capacity - record.carved() } else { 0 };
            } else if ours {
                bytes = usize::from(record.carved()) * self.geometry.object as usize;
            }
            let (mut at, mut last, mut run) = (first, first, 0);
            let most = if alone { 1 } else { left };
            // Objects that lie on one slab stay linked as they are. One test sees the end of the run and places never
            // cut.
            while run < most && (at as usize).wrapping_sub(start as usize) < bytes {
                last = at;
                // SAFETY: the list links `left` objects from `first` on.
                at = unsafe { chain::next(at) };
                run += 1;
            }
            if !ours {
                // SAFETY: the run is given up; its end is the chain's until more is put there.
                unsafe {
                    chain::link(last, core::ptr::null_mut());
                    if apart { &mut gone } else { &mut strays }.append(first, last, run);
                }
                (first, left) = (at, left - run);
                continue;
            }
            // Without a run the first object is no place that was cut; one that is too long has an object twice.
            if run == 0 || run > u32::from(used) {
                return Err(first);
            }
            // SAFETY: the run is ours again, and lies on the slab.
            unsafe { record.put_free(start, first, last) };
            self.stats.objects_out -= u64::from(run);
            left -= run;
            first = at;
            let now = used - run as u16;
            record.set_used(now);
            if now == 0 && !morphed {
                if self.keep.wants() {
                    // Cut anew, its objects come in the order of their places, and nobody has to follow links to them.
                    record.begin(self.geometry.pages);
                    self.relist(slab, used, now, records);
                } else {
                    self.retire(slab, used, records, source);
                }
            } else {
                self.relist(slab, used + blocked, now + blocked, records);
            }
        }
        Ok(Freed { rest: first, strays, moved: gone })
    }

    /// Gives up to `most` complete slabs back to `source`.
    pub fn give_complete(&mut self, most: u32, records: &Table<SlabRecord>, source: &mut impl SpanSource) {
        let mut at = self.partial.first(0);
        let mut left = most.min(self.complete());
        while let Some(slab) = at.filter(|_| left > 0) {
            let record = &records[slab.0 as usize];
            at = record.next().checked_sub(1).map(PageId);
            if is_complete(record) {
                self.keep.gave_back();
                self.retire(slab, 0, records, source);
                left -= 1;
            }
        }
    }

    /// Gives those complete slabs back that nobody needed since the last call.
    pub fn give_idle(&mut self, records: &Table<SlabRecord>, source: &mut impl SpanSource) {
        let idle = self.keep.idle();
        self.give_complete(idle, records, source);
    }

    /// How full a slab is: its objects in use, and the places of a slab of two sizes that live old objects block.
    #[inline]
    pub(crate) fn level(&self, record: &SlabRecord) -> u16 {
        let blocked = if record.morph_entry() == 0 { 0 } else { self.geometry.capacity - record.carved() };
        record.used() + blocked
    }

    /// The slab that holds the object at `offset` bytes from the region's start.
    #[inline]
    pub(crate) fn slab_of(&self, offset: usize) -> PageId {
        self.geometry.slab_of(PageId((offset >> PAGE_SHIFT) as u32))
    }

    #[cold]
    fn add_slab(&mut self, records: &Table<SlabRecord>, source: &mut impl SpanSource) -> Option<PageId> {
        let pages = self.geometry.pages;
        self.keep.missed();
        let span = source.alloc(pages, self.geometry.align(), self.geometry.density()).ok()?;
        let first = span.range.first;
        let record = &records[first.0 as usize];
        if record.is_morph_to(self.geometry.object) {
            // Another cache has made the slab one of ours; see `donate`.
            self.stats.morphed += 1;
        } else {
            record.begin(pages);
        }
        self.partial.push(first, self.level(record), records);
        self.stats.slabs += 1;
        Some(first)
    }

    /// A slab's last object came back; it is on the list of `used`.
    pub(crate) fn retire(
        &mut self,
        slab: PageId,
        used: u16,
        records: &Table<SlabRecord>,
        source: &mut impl SpanSource,
    ) {
        if used < self.geometry.capacity {
            self.partial.unlink(slab, used, records);
        }
        records[slab.0 as usize].set_pages(Pages(0));
        self.stats.slabs -= 1;
        let freed = source.free(PageRange::new(slab, self.geometry.pages), self.geometry.density());
        debug_assert_eq!(freed, Ok(()), "a slab is a whole span");
    }

    /// Moves a slab to the list where it belongs, if any, after a change of how full it is.
    #[inline]
    pub(crate) fn relist(&mut self, slab: PageId, before: u16, now: u16, records: &Table<SlabRecord>) {
        let capacity = self.geometry.capacity;
        let (was, is) = (before < capacity, now < capacity);
        if was && is && self.partial.list_of(before) == self.partial.list_of(now) {
            return;
        }
        if was {
            self.partial.unlink(slab, before, records);
        }
        if is {
            self.partial.push(slab, now, records);
        }
    }
}

/// Whether a slab has no object in use, of any size.
pub(crate) fn is_complete(record: &SlabRecord) -> bool {
    record.used() == 0 && record.morph_entry() == 0
}
