//! Moves a slab from one cache to another while objects live on it (NVAlloc §5.2).
//!
//! [`donate`] turns a slab with few live objects into one of another size, or two neighbours into
//! one of twice the length; the span source passes it to the cache of that size.
//! [`SlabCache::free_mixed`] then frees old objects one by one, behind all thread caches, and new
//! ones, until the slab is ordinary. **Invariants.** S6 in `lib.rs`.
//! **Unsafe.** Turns places on a slab into objects, and follows the links of free ones.

use crate::cache::SlabCache;
use crate::chain::{self, Chain};
use crate::geometry::Geometry;
use crate::lists::LISTS;
use crate::morph::{Morph, Morphs};
use crate::record::{Records, SlabId, SlabRecord};
use craton_base::{PAGE_SIZE, PageId, PageRange, SpanSource};

/// A slab morphs when less than 90 % of its objects live.
const MOST_LIVE: u32 = 90;
/// Slabs of a cache examined in one search.
const LOOKS: usize = 8;
/// Cap on the number of adjacent objects that must be free together.
const PROMISED: u32 = 12;
const POINT: u32 = 16;
/// The new size must get 1/40 of its places at once.
const LEAST_SHARE: usize = 40;

/// What a slab is to become.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// The layout of the new size, on a span of the same length or twice that.
    pub geometry: Geometry,
    /// The front end's name for the new size.
    pub to: u8,
}

/// A slab that its cache would give up.
pub struct Offer<'a> {
    /// The cache; none where it is that of the other slab too.
    pub cache: Option<&'a mut SlabCache>,
    /// The slab's first page.
    pub slab: PageId,
    /// The front end's name for its size.
    pub from: u8,
}

/// What became of a slab when an object came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It still is no ordinary slab.
    Morphed,
    /// It is a slab of its new size alone.
    Ordinary(PageRange),
    /// It was the last object of any size: the span went back.
    Gone,
}

impl SlabCache {
    /// Slabs that were in full use once and have few live objects now; some of the emptiest ones.
    pub fn candidates(&self, new: Geometry, records: &impl Records) -> impl Iterator<Item = PageId> {
        let capacity = self.geometry.capacity;
        // Complete slabs, the first list, are not donated here.
        let lists = &self.slabs.lists;
        let emptiest = 1..=lists.list_of(self.most_live().min(capacity - 1)).min(LISTS - 1);
        let slabs = emptiest.flat_map(|list| lists.list(list).iter(records)).map(SlabId::page);
        slabs.take(LOOKS).filter(move |slab| {
            let record = records.of(*slab);
            self.is_candidate(record) && self.promises(record, new)
        })
    }

    /// Fewer objects than this live on a slab that may morph.
    fn most_live(&self) -> u16 {
        (u32::from(self.geometry.capacity) * MOST_LIVE).div_ceil(100) as u16
    }

    /// Whether the slab probably has a gap for the new size, by its number of live objects.
    fn promises(&self, record: &SlabRecord, new: Geometry) -> bool {
        let (all, free) = (u64::from(self.geometry.capacity), u64::from(record.free_objects()));
        let together = new.object.div_ceil(self.geometry.object);
        let gaps = (0..together.min(PROMISED)).fold(all << POINT, |gaps, _| gaps * free / all);
        gaps >> (POINT - 1) > 0
    }

    /// Whether a slab of this cache may morph.
    pub fn is_candidate(&self, record: &SlabRecord) -> bool {
        // A slab still being cut serves next, and a complete one is kept.
        record.morph_entry() == 0
            && record.carved() == self.geometry.capacity
            && (1..self.most_live()).contains(&record.used())
    }

    /// Frees an object of a slab of two sizes: an old one, or, once none lives, a new one. `cut`
    /// gets the places that open up. Error: no such object is out.
    /// # Safety
    /// As [`SlabCache::alloc`]; `morphs` serve all caches, and `object` lies in the region.
    pub unsafe fn free_mixed(
        &mut self,
        object: *mut u8,
        base: *mut u8,
        records: &impl Records,
        morphs: &mut Morphs,
        source: &mut impl SpanSource,
        cut: impl Fn(*mut u8),
    ) -> Result<Left, *mut u8> {
        let offset = object as usize - base as usize;
        let slab = self.slab_of(offset);
        let (record, start) = (records.of(slab), base.wrapping_add(slab.offset().0));
        let bytes = offset - slab.offset().0;
        if !record.is_morph_to(self.geometry.object) {
            return Err(object);
        }
        let before = self.level(record);
        let open = |bytes: usize| {
            let fresh = start.wrapping_add(bytes);
            // SAFETY: nothing alive lies there: the caller gives up the last object that did.
            unsafe { record.put_free(start, fresh, fresh) };
            cut(fresh);
            record.set_carved(record.carved() + 1);
        };
        let entry = match morphs.take_old(record, bytes) {
            Some((entry, len)) => {
                entry.cut_around(bytes, len, open);
                if entry.count == 0 {
                    // SAFETY: the slab's free objects are ours.
                    unsafe { regrid(entry, record, start, open) };
                }
                entry
            }
            None => {
                let entry = morphs.of_mut(record).filter(|e| e.count == 0 && e.starts_at(bytes)).ok_or(object)?;
                if record.used() == 0 {
                    return Err(object);
                }
                record.set_used(record.used() - 1);
                record.set_carved(record.carved() - 1);
                self.slabs.stats.objects_out -= 1;
                entry.close(bytes);
                entry.cut_grid(bytes, bytes + entry.new as usize, open);
                entry
            }
        };
        let (others, is_regular) = (entry.count, entry.is_regular());
        let now = self.level(record);
        self.slabs.relist(SlabId::of(slab), before, now, records);
        if others > 0 || !is_regular && record.used() > 0 {
            record.set_alone(others == 0);
            return Ok(Left::Morphed);
        }
        morphs.remove(record, records);
        if record.used() == 0 {
            self.retire(slab, now, records, source);
            return Ok(Left::Gone);
        }
        debug_assert_eq!(record.carved(), self.geometry.capacity, "without old objects all places are possible");
        self.slabs.stats.settled += 1;
        Ok(Left::Ordinary(PageRange::new(slab, self.geometry.pages)))
    }
}

/// No second slab.
pub const NO_OFFER: Offer<'static> = Offer { cache: None, slab: PageId(0), from: 0 };

/// Makes a slab of the wanted size from one of the same length, or from two neighbours of half the
/// length, in either order. All places that fit between live objects are free; `cut` receives each.
/// The source then passes the span to a cache of the new size. The first offer names its cache.
/// # Safety
/// As [`SlabCache::alloc`], for both caches; `morphs` are those of all caches of the region.
pub unsafe fn donate(
    wish: Wish,
    offers: [Offer<'_>; 2],
    base: *mut u8,
    records: &impl Records,
    morphs: &mut Morphs,
    cut: impl Fn(*mut u8),
) -> Option<PageRange> {
    let [first, second] = offers;
    let (new, a) = (wish.geometry, first.cache?);
    let is_pair = a.geometry.pages != new.pages;
    let other = second.cache.as_ref().map_or(a.geometry, |b| b.geometry);
    let fits = Morph::fits(a.geometry, new) && (!is_pair || Morph::fits(other, new));
    if !fits || a.geometry.object == new.object || !morphs.has_room() {
        return None;
    }
    let mut old = [((a.geometry, first.from), first.slab), ((other, second.from), second.slab)];
    if is_pair && second.slab < first.slab {
        old.swap(0, 1);
    }
    let slab = old[0].1;
    let (record, start) = (records.of(slab), base.wrapping_add(slab.offset().0));
    let mut entry = Morph::new(slab, old.map(|(size, _)| size), (new, wish.to));
    for ((geometry, _), part) in old.into_iter().take(1 + usize::from(is_pair)) {
        // SAFETY: the slabs are the caches'.
        unsafe { note_live(&mut entry, geometry, part, records.of(part), base)? };
    }
    if entry.cut_gaps() * LEAST_SHARE < usize::from(new.capacity) {
        return None;
    }
    a.give_up(first.slab, records);
    if is_pair {
        second.cache.unwrap_or(a).give_up(second.slab, records);
    }
    let mut places = Chain::EMPTY;
    for place in entry.starts() {
        let object = start.wrapping_add(place);
        // SAFETY: nothing alive lies there, and the slab is ours.
        unsafe { places.push(object) };
        cut(object);
    }
    let (range, pages) = (entry.range(), entry.pages());
    let at = morphs.insert(entry);
    pages.for_each(|page| records.of(page).set_morph(at, new.object));
    record.begin_morph(start, places);
    Some(range)
}

impl SlabCache {
    /// Drops a slab that moves to another cache.
    fn give_up(&mut self, slab: PageId, records: &impl Records) {
        let record = records.of(slab);
        self.slabs.end(SlabId::of(slab), record.used(), records);
        self.slabs.stats.objects_out -= u64::from(record.used());
    }
}

/// Keeps only the free places on the grid, once no old object lives, and passes them to `open`.
/// # Safety
/// The slab that begins at `start` and its free objects are the caller's.
unsafe fn regrid(entry: &mut Morph, record: &SlabRecord, start: *mut u8, open: impl FnMut(usize)) {
    let mut at = record.free() as *mut u8;
    while !at.is_null() {
        entry.close(at as usize - start as usize);
        // SAFETY: free objects of the slab are linked.
        at = unsafe { chain::next(at) };
    }
    record.set_free(0);
    record.set_carved(record.used());
    entry.cut_grid(0, entry.grid_bytes(), open);
}

/// Records an ordinary slab's live objects: cut and not free. `None` if its free list is damaged.
/// # Safety
/// The slab and its free objects are the caller's.
unsafe fn note_live(
    entry: &mut Morph,
    geometry: Geometry,
    slab: PageId,
    record: &SlabRecord,
    base: *mut u8,
) -> Option<()> {
    let from = (slab.0 - entry.range().first.0) as usize * PAGE_SIZE;
    let start = base.wrapping_add(slab.offset().0);
    let (old, before) = (geometry.object as usize, entry.count);
    for place in 0..usize::from(record.carved()) {
        entry.set(from + place * old);
    }
    let mut at = record.free() as *mut u8;
    while !at.is_null() {
        let bytes = (at as usize).wrapping_sub(start as usize);
        if bytes >= geometry.pages.bytes().0 {
            return None;
        }
        entry.clear(from + bytes)?;
        // SAFETY: free objects of the slab are linked.
        at = unsafe { chain::next(at) };
    }
    (entry.count - before == record.used()).then_some(())
}
