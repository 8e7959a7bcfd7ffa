//! Moves slabs from caches to another one while objects live on them (NVAlloc §5.2).
//!
//! [`donate`] makes slabs of another size; [`SlabCache::free_mixed`] then frees objects one by one
//! until the slab is ordinary (S6).
//! **Unsafe.** Turns places on a slab into objects, and follows links of free ones.

use crate::cache::SlabCache;
use crate::chain::{self, Chain, Marks};
use crate::geometry::Geometry;
use crate::lists::LISTS;
use crate::morph::{Mixed, Morphs, Old};
use crate::record::{Records, SlabId, SlabRecord};
use craton_base::{PAGE_SHIFT, PageId, PageRange, Pages, SpanSource};

const MOST_LIVE: u32 = 90;
/// Adjacent objects that must be free together.
const PROMISED: u32 = 12;
const POINT: u32 = 16;
/// Percent of the new places that must open at once.
const LEAST_SHARE: usize = 40;

#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub geometry: Geometry,
    pub to: u8,
}

#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub range: PageRange,
    pub donor: Option<u8>,
    pub from: u8,
}

pub trait Donors {
    fn cache(&mut self, donor: u8) -> &mut SlabCache;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    Morphed,
    Ordinary(PageRange),
    Gone,
}

impl SlabCache {
    /// Names the next of the emptiest slabs that were in full use once; `None` at the end, or when
    /// `looks` are spent.
    pub fn candidate(&mut self, wish: Wish, looks: &mut usize, records: &impl Records) -> Option<PageId> {
        let fullest = self.slabs.lists.list_of(self.most_live().min(self.geometry.capacity - 1)).min(LISTS - 1);
        for list in 1..=fullest {
            let last = self.slabs.lists.list(list).last(records);
            while *looks > 0 {
                *looks -= 1;
                let Some(slab) = self.slabs.lists.pass(list, records) else { break };
                let record = records.of(slab.page());
                let is_willing = record.used() > 0 && !record.refuses(wish.to);
                if is_willing && self.is_candidate(record) && self.promises(record, wish) {
                    return Some(slab.page());
                }
                if Some(slab) == last {
                    break;
                }
            }
        }
        None
    }

    pub fn refuse(&self, slab: PageId, wish: Wish, records: &impl Records) {
        records.of(slab).refuse(wish.to);
    }

    fn most_live(&self) -> u16 {
        (u32::from(self.geometry.capacity) * MOST_LIVE).div_ceil(100) as u16
    }

    /// Whether to expect a gap for the new size. For longer objects the neighbours decide.
    fn promises(&self, record: &SlabRecord, Wish { geometry: new, .. }: Wish) -> bool {
        if new.object as usize > self.geometry.pages.bytes().0 {
            return true;
        }
        let (all, free) = (u64::from(self.geometry.capacity), u64::from(record.free_objects()));
        let together = new.object.div_ceil(self.geometry.object);
        let gaps = (0..together.min(PROMISED)).fold(all << POINT, |gaps, _| gaps * free / all);
        gaps >> (POINT - 1) > 0
    }

    /// Complete, or in full use once and not nearly so now.
    pub fn is_candidate(&self, record: &SlabRecord) -> bool {
        let is_cut = record.carved() == self.geometry.capacity && record.used() < self.most_live();
        record.morph_entry() == 0 && (is_cut || record.used() == 0)
    }

    /// Frees an old object, or, once none lives, a new one. `each` gets the result for each slab
    /// below it. Error: no such live object, or an overwritten link.
    /// # Safety
    /// As [`SlabCache::alloc`]; `morphs` serve all caches, and `object` lies in the region.
    #[allow(clippy::too_many_arguments)] // As all calls of a cache.
    pub unsafe fn free_mixed(
        &mut self,
        object: *mut u8,
        base: *mut u8,
        records: &impl Records,
        morphs: &mut Morphs,
        source: &mut impl SpanSource,
        marks: impl Marks,
        mut each: impl FnMut(Left),
    ) -> Result<(), *mut u8> {
        let (offset, pages) = (object as usize - base as usize, self.geometry.pages);
        let mut first = self.slab_of(offset);
        let (record, bytes) = (records.of(first), (offset - first.offset().0) as u32);
        if !record.is_morph_to(self.geometry.object) {
            return Err(object);
        }
        let slab = morphs.slab(first, records);
        let (length, before) = (slab.bytes, self.level(record));
        let Some(end) = slab.clear(bytes) else {
            if slab.count() > 0 || !slab.starts_at(bytes) || record.used() == 0 {
                return Err(object);
            }
            record.set_used(record.used() - 1);
            record.set_carved(record.carved() - 1);
            self.slabs.stats.objects_out -= 1;
            slab.close(bytes);
            marks.wipe(object);
            let open = opener(record, base.wrapping_add(first.offset().0), &marks);
            slab.cut_grid(bytes, bytes + slab.new, open);
            each(self.leave(first, before, base, morphs, records, source, &marks)?);
            return Ok(());
        };
        morphs.old_bytes -= u64::from(end - bytes);
        marks.wipe(object);
        let (mut from, mut to) = (bytes, end);
        loop {
            let (slab, record) = (morphs.slab(first, records), records.of(first));
            let (start, before) = (base.wrapping_add(first.offset().0), self.level(record));
            slab.cut_around(from, to, opener(record, start, &marks));
            if slab.count() == 0 {
                // SAFETY: the cache owns its free objects.
                unsafe { regrid(&slab, record, start, &marks) }?;
            }
            each(self.leave(first, before, base, morphs, records, source, &marks)?);
            if to <= length {
                return Ok(());
            }
            // The next slab counted it, so is still one of two sizes.
            (first, from, to) = (PageId(first.0 + pages.0), 0, to - length);
            morphs.slab(first, records).set_head(0);
        }
    }

    /// Relists the slab, or makes it ordinary. Error: see [`SlabCache::all_home`].
    #[allow(clippy::too_many_arguments)] // As all calls of a cache.
    fn leave(
        &mut self,
        first: PageId,
        before: u16,
        base: *mut u8,
        morphs: &mut Morphs,
        records: &impl Records,
        source: &mut impl SpanSource,
        marks: &impl Marks,
    ) -> Result<Left, *mut u8> {
        let record = records.of(first);
        let slab = morphs.slab(first, records);
        let (range, others, is_regular) = (slab.range(), slab.count(), slab.is_regular());
        let now = self.level(record);
        self.slabs.relist(SlabId::of(first), before, now, records);
        if others > 0 || !is_regular && record.used() > 0 {
            record.set_alone(others == 0);
            return Ok(Left::Morphed);
        }
        if record.used() == 0 {
            let place = |bytes: u32| base.wrapping_add(first.offset().0 + bytes as usize);
            if let Some(out) = slab.starts().map(place).find(|place| !marks.leave(*place)) {
                return Err(out);
            }
        }
        morphs.remove(range, records);
        if record.used() == 0 {
            self.retire(first, now, records, source);
            return Ok(Left::Gone);
        }
        debug_assert_eq!(record.carved(), self.geometry.capacity, "without old objects all places are possible");
        self.slabs.stats.settled += 1;
        Ok(Left::Ordinary(range))
    }

    fn drop_slab(&mut self, slab: PageId, records: &impl Records) {
        let record = records.of(slab);
        self.slabs.end(SlabId::of(slab), record.used(), records);
        self.slabs.stats.objects_out -= u64::from(record.used());
    }

    pub fn adopt(&mut self, first: PageId, records: &impl Records) {
        self.begin_slab(first, records);
    }
}

/// `false`: nothing has changed. Else the source passes the slabs to a cache of the new size.
/// # Safety
/// As [`SlabCache::alloc`], for all caches. `parts` are the range, in order; free pages are the
/// caller's; `morphs` serve all caches of the region.
pub unsafe fn donate(
    wish: Wish,
    parts: &[Part],
    donors: &mut impl Donors,
    base: *mut u8,
    records: &impl Records,
    morphs: &mut Morphs,
    marks: impl Marks,
) -> bool {
    let (Wish { geometry: new, to }, Some(front), Some(last)) = (wish, parts.first(), parts.last()) else {
        return false;
    };
    let (first, end) = (front.range.first, last.range.end());
    let pages = Pages(end.0 - first.0);
    if !pages.0.is_multiple_of(new.pages.0) || !SlabRecord::can_morph_to(new.object) || !morphs.has_room(pages) {
        return false;
    }
    let slabs = || (first.0..end.0).step_by(new.pages.0 as usize).map(PageId);
    for part in parts {
        let PageRange { first: origin, len } = part.range;
        let old = part.donor.map_or(Old::NONE, |donor| {
            let Geometry { object, capacity, .. } = donors.cache(donor).geometry();
            Old { object, places: capacity, origin, from: part.from }
        });
        for page in origin.0..origin.0 + len.0 {
            let slab = PageId(first.0 + (page - first.0) / new.pages.0 * new.pages.0);
            morphs.add_page(PageId(page), PageRange::new(slab, new.pages), (new.object, to), old, records);
        }
    }
    let mut places = 0;
    // SAFETY: by the contract.
    let is_noted = parts
        .iter()
        .filter(|part| part.donor.is_some())
        .all(|part| unsafe { record_live(part.range, new.pages, first, base, records, morphs) });
    if is_noted {
        places = slabs().map(|slab| morphs.slab(slab, records).cut_gaps()).sum();
    }
    let all = slabs().count() * usize::from(new.capacity);
    if places == 0 || places * LEAST_SHARE < all {
        slabs().for_each(|slab| morphs.remove(PageRange::new(slab, new.pages), records));
        return false;
    }
    for part in parts {
        if let Some(donor) = part.donor {
            donors.cache(donor).drop_slab(part.range.first, records);
        }
    }
    for first in slabs() {
        let (record, start) = (records.of(first), base.wrapping_add(first.offset().0));
        let slab = morphs.slab(first, records);
        if slab.count() == 0 {
            morphs.remove(slab.range(), records);
            continue;
        }
        morphs.old_bytes += slab.count_live().1;
        let slab = morphs.slab(first, records);
        let mut places = Chain::EMPTY;
        for place in slab.starts() {
            let object = start.wrapping_add(place as usize);
            // SAFETY: no live object is there.
            unsafe { places.push(object) };
            marks.set_on_slab(object);
        }
        record.begin_morph(start, places);
    }
    true
}

fn opener(record: &SlabRecord, start: *mut u8, marks: &impl Marks) -> impl FnMut(u32) {
    move |bytes| {
        let fresh = start.wrapping_add(bytes as usize);
        // SAFETY: no live object is there.
        unsafe { record.put_free(start, fresh, fresh) };
        marks.set_on_slab(fresh);
        record.set_carved(record.carved() + 1);
    }
}

/// Keeps the free places on the grid. Error: a link to no free place.
/// # Safety
/// No old object lives on the slab at `start`, whose free objects are the caller's.
unsafe fn regrid(
    slab: &Mixed<'_, impl Records>,
    record: &SlabRecord,
    start: *mut u8,
    marks: &impl Marks,
) -> Result<(), *mut u8> {
    let mut at = if record.free() == 0 { chain::end() } else { record.free() as *mut u8 };
    for _ in 0..record.free_objects() {
        let bytes = (at as usize).wrapping_sub(start as usize);
        if bytes >= slab.bytes as usize || !slab.starts_at(bytes as u32) {
            return Err(at);
        }
        slab.close(bytes as u32);
        marks.wipe(at);
        // SAFETY: free objects are linked.
        at = unsafe { chain::next(at) };
    }
    record.set_free(0);
    record.set_carved(record.used());
    slab.cut_grid(0, slab.grid_bytes(), opener(record, start, marks));
    Ok(())
}

/// Enters an ordinary slab's live objects. `false`: damaged free list.
/// # Safety
/// The slab and its free objects are the caller's.
unsafe fn record_live(
    old: PageRange,
    step: Pages,
    first: PageId,
    base: *mut u8,
    records: &impl Records,
    morphs: &Morphs,
) -> bool {
    let record = records.of(old.first);
    let start = base.wrapping_add(old.first.offset().0);
    let slab_of = |bytes: u32| {
        let page = old.first.0 + (bytes >> PAGE_SHIFT) - first.0;
        let slab = PageId(first.0 + page / step.0 * step.0);
        let at = old.first.offset().0 + bytes as usize - slab.offset().0;
        (morphs.slab(slab, records), at as u32)
    };
    let (front, at) = slab_of(0);
    let size = front.old_end(at) - at;
    for place in 0..u32::from(record.carved()) {
        let (slab, at) = slab_of(place * size);
        slab.flip_live(at, 1);
    }
    let mut at = if record.free() == 0 { chain::end() } else { record.free() as *mut u8 };
    let mut free = 0;
    while at != chain::end() {
        let bytes = (at as usize).wrapping_sub(start as usize);
        if bytes >= old.len.bytes().0 {
            return false;
        }
        let (slab, at_slab) = slab_of(bytes as u32);
        if slab.clear(at_slab).is_none() {
            return false;
        }
        free += 1;
        // SAFETY: free objects are linked.
        at = unsafe { chain::next(at) };
    }
    // The live ones may lie across a border.
    for page in (1..old.len.0).filter(|page| (old.first.0 + page - first.0).is_multiple_of(step.0)) {
        let border = page << PAGE_SHIFT;
        let last = (border - 1) / size * size;
        let (slab, at) = slab_of(last);
        if last + size > border && slab.is_live(at) {
            slab_of(border).0.set_head(last + size - border);
        }
    }
    free == record.free_objects()
}
