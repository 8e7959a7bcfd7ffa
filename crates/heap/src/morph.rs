//! Slab morphing: slabs change their size class while objects live on them (NVAlloc §5.2).
//!
//! Before a class takes a new span, it looks for another class's slab with few live objects: as
//! long as its own, longer (it becomes several), or shorter (neighbours and free pages become one:
//! `gather.rs`). Its pages are marked [`MORPHED`] until it has one class again: each free there
//! leaves the fast path.
//!
//! **Threads.** A slab morphs under the locks of its old and new classes and of the table, and
//! settles under the new class's and the table's. So the table's lock alone makes the page map and
//! a slab's record reliable. Cached objects of the old class count as live; a flush forwards them
//! here.
//!
//! **Unsafe.** Hands slabs the region's address, and gives the table its memory.

use crate::gather::Gathered;
use crate::heap::{Heap, Layout};
use crate::hooks::Hooks;
use crate::size_class::{self, CLASSES, MORPHED};
use crate::spans::{Kept, Marked};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{
    Clock, Density, Mappings, PAGE_SIZE, PageId, PageRange, Pages, Platform, Span, SpanError, SpanSource, Table,
};
use craton_slab::{Left, Morph, Morphs, Part, Place, SlabCache, Wish};

/// Pages; entries take memory only once used.
const MOST: usize = if cfg!(loom) { 32 } else { Morphs::MOST };
/// Bounds of one search: classes asked.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 8 };
/// Slabs looked at.
const SLABS: usize = 128;
/// Slabs tried.
const TRIES: usize = 10;

struct Patience {
    slabs: usize,
    tries: usize,
}

pub(crate) struct Recut<'a, F: Platform, C: Clock, H: Hooks> {
    below: Marked<'a, F, C, H>,
    /// Not yet handed out.
    spare: PageRange,
}

impl<'a, F: Platform, C: Clock, H: Hooks> Recut<'a, F, C, H> {
    pub(crate) fn new(below: Marked<'a, F, C, H>) -> Self {
        Self { below, spare: PageRange::new(PageId(0), Pages(0)) }
    }

    fn next(&mut self) -> Option<PageRange> {
        let PageRange { first, len } = self.spare;
        let pages = size_class::geometry(self.below.class).pages;
        let rest = Pages(len.0.checked_sub(pages.0)?);
        self.spare = PageRange::new(PageId(first.0 + pages.0), rest);
        Some(PageRange::new(first, pages))
    }

    pub(crate) fn pass_rest(&mut self, slabs: &mut SlabCache) {
        while let Some(range) = self.next() {
            slabs.adopt(range.first, &self.below.heap.layout().records);
        }
    }
}

impl<F: Platform, C: Clock, H: Hooks> SpanSource for Recut<'_, F, C, H> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let Marked { heap, home, class } = self.below;
        if let Some(range) = self.next() {
            return Ok(Span { range, zeroed: false });
        }
        if let Some(span) = self.below.alloc_short(pages, align, density) {
            return Ok(span);
        }
        if let Some(range) = heap.second_hand(home, class) {
            self.spare = range;
            return self.next().map(|range| Span { range, zeroed: false }).ok_or(SpanError::NoMemory);
        }
        let span = Kept { heap }.alloc(pages, align, density)?;
        self.below.adopt(span.range);
        Ok(span)
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.below.free(span, density)
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// The caller holds the class's lock.
    #[cold]
    fn second_hand(&self, home: usize, class: usize) -> Option<PageRange> {
        self.search.note_taken(class);
        if size_class::geometry(class).is_single() || !self.search.is_growth(class) || !self.search.is_due(class) {
            return None;
        }
        let range = self.ask((home, class));
        if range.is_none() {
            self.search.shard.fetch_add(1, Relaxed);
        }
        self.search.note(class, range.is_some());
        range
    }

    /// Starts from the last donor.
    fn ask(&self, to: (usize, usize)) -> Option<PageRange> {
        let last = self.search.donor.load(Relaxed) as usize;
        // Threads of another home may have left a slab.
        let shards = self.homes();
        let other = self.search.shard.load(Relaxed) as usize % shards;
        let (mut looks, mut patience) = (LOOKS, Patience { slabs: SLABS, tries: TRIES });
        for n in 0..CLASSES {
            let donor = (last.max(1) - 1 + n) % CLASSES + 1;
            if looks == 0 || patience.tries == 0 {
                self.search.donor.store(donor as u32, Relaxed);
                break;
            }
            if donor == to.1 || !self.search.gives(donor) {
                continue;
            }
            looks -= 1;
            for shard in [to.0, other].into_iter().take(shards) {
                if let Some(range) = self.take_of((shard, donor), to, &mut patience) {
                    self.search.donor.store(donor as u32, Relaxed);
                    return Some(range);
                }
            }
        }
        None
    }

    /// The caller holds the lock of `to`.
    fn take_of(&self, from: (usize, usize), to: (usize, usize), patience: &mut Patience) -> Option<PageRange> {
        let mut gathered = Gathered::new(self, from)?;
        let records = &self.layout().records;
        let wish = Wish { geometry: size_class::geometry(to.1), to: to.1 as u8 };
        let mut first = None;
        while patience.tries > 0 {
            let slab = gathered.front().candidate(wish, &mut patience.slabs, records)?;
            if first == Some(slab) {
                // Each has had its turn.
                return None;
            }
            first = first.or(Some(slab));
            if gathered.gather(slab, from.1, to.1) {
                patience.tries -= 1;
                if let Some(range) = self.divide(&mut gathered, to.0, wish) {
                    return Some(range);
                }
                gathered.front().refuse(slab, wish, records);
            }
        }
        None
    }

    /// The caller holds the class's lock.
    fn divide(&self, gathered: &mut Gathered<'_, F, C, H>, home: usize, wish: Wish) -> Option<PageRange> {
        let mut morphs = self.morphs.lock();
        if morphs.is_unset() {
            *morphs = self.table()?;
            self.starts.store(morphs.starts().0.cast_mut(), Relaxed);
        }
        if !self.take_free(gathered.parts()) {
            return None;
        }
        let Layout { base, records, .. } = self.layout();
        let marks = self.marks(wish.to.into());
        let (parts, range) = (gathered.copy(), gathered.range());
        let parts = &parts[..gathered.parts().len()];
        // SAFETY: base, records and table are this heap's; all caches and the table are locked.
        let done = unsafe { craton_slab::donate(wish, parts, gathered, *base as *mut u8, records, &mut morphs, marks) };
        if !done {
            parts.iter().filter(|part| part.donor.is_none()).for_each(|part| self.give_free(part.range));
            return None;
        }
        let (pages, to) = (wish.geometry.pages, wish.to);
        if parts.len() > 1 || range.len != pages {
            let cut = self.lock_pages().recut(range, pages, parts.iter().map(|part| part.range));
            self.expect_given(range, cut);
        }
        parts.iter().filter(|part| part.donor.is_some()).for_each(|part| self.search.shrank(part.from.into()));
        for page in range.first.0..range.end().0 {
            let (page, record) = (PageId(page), &records[page as usize]);
            record.set_owner(home);
            let begins = (page.0 - range.first.0).is_multiple_of(pages.0);
            self.length(page).set_pages(if begins { pages } else { Pages(0) });
            if begins {
                self.search.grew(to.into());
            }
            let is_mixed = morphs.class_of(record.as_ref()).is_some();
            self.set_marks(PageRange::new(page, Pages(1)), if is_mixed { MORPHED } else { to }, false);
        }
        Some(range)
    }

    fn table(&self) -> Option<Morphs> {
        // Address space may be short.
        let most = MOST.min(self.layout().records.len());
        let table = self.system.map((most * size_of::<Morph>()).next_multiple_of(PAGE_SIZE), PAGE_SIZE)?;
        // SAFETY: the mapping is new, zeroed, aligned and permanent.
        Some(Morphs::new(unsafe { Table::new(table as *mut Morph, most) }))
    }

    /// All or none.
    fn take_free(&self, parts: &[Part]) -> bool {
        let free = || parts.iter().filter(|part| part.donor.is_none()).map(|part| part.range);
        if free().next().is_none() {
            return true;
        }
        let mut pages = self.lock_pages();
        let taken = free().take_while(|range| pages.alloc_at(*range)).count();
        drop(pages);
        let all = taken == free().count();
        if !all {
            free().take(taken).for_each(|range| self.give_free(range));
        }
        all
    }

    fn give_free(&self, range: PageRange) {
        let freed = self.lock_pages().free(range, Density::Sparse);
        self.expect_given(range, freed);
    }

    /// `None` if the page's mark has changed.
    pub(crate) fn look(&self, morphs: &Morphs, pointer: *mut u8, page: PageId) -> Option<Place> {
        let Layout { base, records, .. } = self.layout();
        if self.mark(page) == MORPHED { morphs.look(pointer as usize - base, records) } else { None }
    }

    /// Returns whether the object was live; `None` if the slab has settled.
    ///
    /// # Safety
    /// The caller gives the object up.
    pub(crate) unsafe fn give_mixed(&self, object: *mut u8, page: PageId) -> Option<bool> {
        let owner = |morphs: &Morphs| {
            let record = self.record(page);
            let is_mixed = self.mark(page) == MORPHED;
            is_mixed.then(|| Some((record.owner(), morphs.class_of(record.as_ref())?)))?
        };
        let mut known = owner(&self.morphs.lock())?;
        let ((home, to), mut slabs, mut morphs) = loop {
            let slabs = self.slabs(known.0, known.1.into());
            let morphs = self.morphs.lock();
            // The slab may have settled or changed its class.
            match owner(&morphs)? {
                now if now == known => break (known, slabs, morphs),
                now => known = now,
            }
        };
        let mut source = Marked { heap: self, home, class: to.into() };
        let Layout { base, records, .. } = self.layout();
        let settled = |left| {
            if let Left::Ordinary(range) = left {
                self.set_marks_of_cut(range, to);
            }
        };
        // SAFETY: base, records, table and source are this heap's; cache and table are locked.
        let freed = unsafe {
            let base = *base as *mut u8;
            slabs.free_mixed(object, base, records, &mut morphs, &mut source, self.marks(to.into()), settled)
        };
        Some(freed.is_ok())
    }
}
