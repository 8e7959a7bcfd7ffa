//! What slabs are made of: another class's slab with few live objects, or neighbours of any classes
//! and free pages.
//!
//! **Threads.** Only tries the locks of the slabs' caches, and holds those that it gets.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::size_class::{self, CLASSES};
use crate::spans::Counted;
use craton_base::{Clock, PageId, PageRange, Pages, Platform};
use craton_slab::{Donors, Part, SlabCache};

const MOST_DONORS: usize = 4;
/// A page each of the longest slab.
const MOST_PARTS: usize = 32;

const NO_PART: Part = Part { range: PageRange::new(PageId(0), Pages(0)), donor: None, from: 0 };

/// Shard and class, and the locked cache.
type Donor<'a, F, C, H> = ((usize, usize), Counted<'a, F, C, H>);

/// A range's parts in order, and their locked caches.
pub(crate) struct Gathered<'a, F: Platform, C: Clock, H: Hooks> {
    heap: &'a Heap<F, C, H>,
    donors: [Option<Donor<'a, F, C, H>>; MOST_DONORS],
    parts: [Part; MOST_PARTS],
    len: usize,
}

impl<F: Platform, C: Clock, H: Hooks> Donors for Gathered<'_, F, C, H> {
    fn cache(&mut self, donor: u8) -> &mut SlabCache {
        match &mut self.donors[usize::from(donor)] {
            Some((_, slabs)) => slabs,
            None => unreachable!("each part's cache is locked"),
        }
    }
}

impl<'a, F: Platform, C: Clock, H: Hooks> Gathered<'a, F, C, H> {
    pub(crate) fn new(heap: &'a Heap<F, C, H>, from: (usize, usize)) -> Option<Self> {
        let mut this = Self { heap, donors: [const { None }; MOST_DONORS], parts: [NO_PART; MOST_PARTS], len: 0 };
        this.lock(from)?;
        Some(this)
    }

    pub(crate) fn front(&mut self) -> &mut SlabCache {
        self.cache(0)
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts[..self.len]
    }

    pub(crate) fn copy(&self) -> [Part; MOST_PARTS] {
        self.parts
    }

    pub(crate) fn range(&self) -> PageRange {
        let first = self.parts[0].range.first;
        PageRange::new(first, Pages(self.parts[self.len - 1].range.end().0 - first.0))
    }

    /// Classes: `from` the slab's, `to` the wanted one.
    pub(crate) fn gather(&mut self, slab: PageId, from: usize, to: usize) -> bool {
        self.len = 0;
        self.donors[1..].iter_mut().for_each(|donor| *donor = None);
        let (old, new) = (size_class::geometry(from), size_class::geometry(to));
        if old.pages >= new.pages {
            self.push(Part { range: PageRange::new(slab, old.pages), donor: Some(0), from: from as u8 });
            return old.pages.0.is_multiple_of(new.pages.0);
        }
        let range = PageRange::new(new.slab_of(slab), new.pages);
        let mut at = range.first;
        while at < range.end() {
            let Some(part) = self.part_at(at, range.end()) else { return false };
            at = part.range.end();
            self.push(part);
        }
        at == range.end()
    }

    fn push(&mut self, part: Part) {
        self.parts[self.len] = part;
        self.len += 1;
    }

    /// The slab or free pages.
    fn part_at(&mut self, first: PageId, end: PageId) -> Option<Part> {
        let heap = self.heap;
        if heap.view().pages < end.0 as usize {
            return None;
        }
        let class = heap.mark(first) as usize;
        if class == 0 {
            let free = (first.0..end.0).take_while(|page| heap.mark(PageId(*page)) == 0).count();
            return Some(Part { range: PageRange::new(first, Pages(free as u32)), donor: None, from: 0 });
        }
        let g = (1..=CLASSES).contains(&class).then(|| size_class::geometry(class)).filter(|g| !g.is_single())?;
        if g.slab_of(first) != first || first.0 + g.pages.0 > end.0 || !heap.search.gives(class) {
            return None;
        }
        let record = heap.record(first);
        let owner = record.owner();
        let donor = self.lock((owner, class))?;
        // Checks again under the lock.
        let is_theirs = usize::from(heap.mark(first)) == class && record.owner() == owner;
        let is_given = is_theirs && self.cache(donor).is_candidate(record.as_ref());
        is_given.then(|| Part { range: PageRange::new(first, g.pages), donor: Some(donor), from: class as u8 })
    }

    /// Returns its number.
    fn lock(&mut self, (shard, class): (usize, usize)) -> Option<u8> {
        let free = |donor: &Option<Donor<'a, F, C, H>>| donor.as_ref().is_none_or(|(of, _)| *of == (shard, class));
        let at = self.donors.iter().position(free)?;
        if self.donors[at].is_none() {
            let slabs = self.heap.try_slabs(shard, class).filter(|slabs| !slabs.is_unset())?;
            self.donors[at] = Some(((shard, class), Counted::new(self.heap, shard, class, slabs)));
        }
        Some(at as u8)
    }
}
