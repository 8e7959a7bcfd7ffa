//! How a slab goes from one cache to another while objects live on it.
//!
//! **What.** [`SlabCache::donate`] makes a slab with few live objects one of another size, and leaves it to the cache
//! of that size, which takes it as the answer of its span source. [`SlabCache::free_old`] takes the old objects back,
//! one by one, around all caches in front; with the last one the slab is an ordinary one of its new size.
//!
//! **From.** NVAlloc §5.2.
//!
//! **Invariants.** S6 in `lib.rs`.
//!
//! **Unsafe.** Turns places on a slab into objects, and follows the links of free ones.

use crate::cache::SlabCache;
use crate::chain::{self, Chain};
use crate::geometry::Geometry;
use crate::lists::LISTS;
use crate::morph::{MAX_PLACES, Morph, Morphs};
use crate::record::SlabRecord;
use craton_base::{PageId, PageRange, SpanSource, Table};

/// A slab morphs when less than so many hundredths of its objects live.
const MOST_LIVE: u32 = 60;
/// Slabs of a cache that are looked at in one search.
const LOOKS: u32 = 4;
/// The new size must get one in so many of its places at once.
const LEAST_SHARE: usize = 16;

/// What a slab is to become.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// The layout of the new size, on a span of the same length and density.
    pub geometry: Geometry,
    /// The front end's name for the old size.
    pub from: u8,
    /// The front end's name for the new size.
    pub to: u8,
}

/// What became of a slab when an old object came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Others live.
    Morphed,
    /// It is a slab of its new size alone.
    Ordinary(PageRange),
    /// It was the last object of any size: the span went back.
    Gone,
}

impl SlabCache {
    /// Gives up a slab with few live objects, if there is one, as a slab of the size that is wished for: its record is
    /// then that of a slab of the new size with all usable places free, and `cut` has been told of each of them. The
    /// span is no more this cache's; a cache of the new size takes it when its source gives it that span.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`]; `morphs` are those of all caches of the region.
    pub unsafe fn donate(
        &mut self,
        wish: Wish,
        base: *mut u8,
        records: &Table<SlabRecord>,
        morphs: &mut Morphs,
        cut: impl Fn(*mut u8),
    ) -> Option<PageRange> {
        let (old, new) = (self.geometry, wish.geometry);
        let fits =
            |g: Geometry| !g.is_single() && usize::from(g.capacity) <= MAX_PLACES && SlabRecord::can_morph_to(g.object);
        if (old.pages, old.density()) != (new.pages, new.density())
            || old.object == new.object
            || !fits(old)
            || !fits(new)
            || !morphs.has_room()
        {
            return None;
        }
        let slab = self.candidate(records)?;
        let (record, start) = (&records[slab.0 as usize], base.wrapping_add(slab.offset().0));
        let mut entry = Morph::new(slab, old, new, wish.from, wish.to);
        // SAFETY: the slab is ours.
        unsafe { note_live(&mut entry, record, start)? };
        if entry.note_usable() * LEAST_SHARE < usize::from(new.capacity) {
            return None;
        }
        self.partial.unlink(slab, record.used(), records);
        self.stats.slabs -= 1;
        self.stats.objects_out -= u64::from(entry.count);
        let mut places = Chain::EMPTY;
        for place in entry.usable_places() {
            let object = start.wrapping_add(place * new.object as usize);
            // SAFETY: nothing alive lies there, and the slab is ours.
            unsafe { places.push(object) };
            cut(object);
        }
        record.morph(morphs.insert(entry), new.object, start, places);
        Some(PageRange::new(slab, old.pages))
    }

    /// A slab that was in full use once and has few live objects now; of the emptiest ones.
    fn candidate(&self, records: &Table<SlabRecord>) -> Option<PageId> {
        let capacity = self.geometry.capacity;
        let most = (u32::from(capacity) * MOST_LIVE).div_ceil(100) as u16;
        let mut looks = LOOKS;
        for list in 1..=self.partial.list_of(most.min(capacity - 1)).min(LISTS - 1) {
            let mut at = self.partial.first(list);
            while let Some(slab) = at {
                let record = &records[slab.0 as usize];
                // One that is still being cut is what this cache allocates from next.
                if record.morph_entry() == 0 && record.carved() == capacity && record.used() < most {
                    return Some(slab);
                }
                looks = looks.checked_sub(1)?;
                at = record.next().checked_sub(1).map(PageId);
            }
        }
        None
    }

    /// Takes back an object of the size that a slab of this cache had before; it has not been in any cache of this
    /// size. Places of the new size that this makes usable are free objects then, and `cut` is told of them. An address
    /// at which no old object is out is the error.
    ///
    /// # Safety
    /// As [`SlabCache::alloc`]; `morphs` are those of all caches of the region, and `object` lies in the region.
    pub unsafe fn free_old(
        &mut self,
        object: *mut u8,
        base: *mut u8,
        records: &Table<SlabRecord>,
        morphs: &mut Morphs,
        source: &mut impl SpanSource,
        cut: impl Fn(*mut u8),
    ) -> Result<Left, *mut u8> {
        let offset = object as usize - base as usize;
        let slab = self.slab_of(offset);
        let (record, start) = (&records[slab.0 as usize], base.wrapping_add(slab.offset().0));
        let bytes = offset - slab.offset().0;
        let old = match morphs.of(record) {
            Some(entry) if record.is_morph_to(self.geometry.object) => entry.old as usize,
            _ => return Err(object),
        };
        if !bytes.is_multiple_of(old) {
            return Err(object);
        }
        let entry = morphs.take_old(record, bytes / old).ok_or(object)?;
        let before = self.level(record);
        for place in entry.covered_by(bytes / old) {
            if !entry.is_clear(place) {
                continue;
            }
            entry.open(place);
            let fresh = start.wrapping_add(place * entry.new as usize);
            // SAFETY: the last live object that lay there is the caller's, who gives it up.
            unsafe { record.put_free(start, fresh, fresh) };
            cut(fresh);
            record.set_carved(record.carved() + 1);
        }
        let others = entry.count;
        self.relist(slab, before, self.level(record), records);
        if others > 0 {
            return Ok(Left::Morphed);
        }
        morphs.remove(record.morph_entry());
        record.settle();
        debug_assert_eq!(record.carved(), self.geometry.capacity, "without old objects all places are usable");
        if record.used() == 0 {
            self.retire(slab, 0, records, source);
            return Ok(Left::Gone);
        }
        self.stats.settled += 1;
        Ok(Left::Ordinary(PageRange::new(slab, self.geometry.pages)))
    }
}

/// Notes which objects of an ordinary slab are out: those that were cut and are not on its free list. `None` if that
/// list is not what we wrote.
///
/// # Safety
/// The slab that begins at `start` and its free objects are the caller's.
unsafe fn note_live(entry: &mut Morph, record: &SlabRecord, start: *mut u8) -> Option<()> {
    let carved = usize::from(record.carved());
    (0..carved).for_each(|place| {
        entry.set(place);
    });
    let mut at = record.free() as *mut u8;
    while !at.is_null() {
        let bytes = (at as usize).wrapping_sub(start as usize);
        if !bytes.is_multiple_of(entry.old as usize) || !entry.clear(bytes / entry.old as usize) {
            return None;
        }
        // SAFETY: free objects of the slab are linked.
        at = unsafe { chain::next(at) };
    }
    (entry.count == record.used()).then_some(())
}
