//! Caches whose slabs may morph into each other's.

use craton_base::{Density, HugePages, PageId, PageRange, Pages, Span, SpanError, SpanSource, Table};
use craton_sim::{BumpSpans, Checked, FaultPlan, Faulty, RealMemory};
use craton_slab::{Chain, Donors, Geometry, Left, Morph, Morphs, Part, Place, SlabCache, SlabRecord, Wish, donate};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    pub at: usize,
    pub class: usize,
    pub stamp: u8,
}

pub struct Caches {
    pub caches: Vec<RefCell<SlabCache>>,
    pub morphs: RefCell<Morphs>,
    pub faults: FaultPlan,
    memory: RealMemory,
    records: Table<SlabRecord>,
    source: RefCell<Checked<Faulty<BumpSpans>>>,
    slabs: RefCell<BTreeMap<PageId, usize>>,
    /// By first page, with pages in use.
    spans: RefCell<BTreeMap<PageId, (PageRange, Density, u32)>>,
    pub out: Vec<Object>,
    stamp: Cell<u8>,
}

/// Slabs of the other caches, then new spans. Holds slabs made and not yet taken.
struct Source<'a>(&'a Caches, usize, Vec<PageId>);

struct Asked<'a>(BTreeMap<u8, RefMut<'a, SlabCache>>);

impl Donors for Asked<'_> {
    fn cache(&mut self, donor: u8) -> &mut SlabCache {
        self.0.get_mut(&donor).expect("it was asked")
    }
}

impl SpanSource for Source<'_> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let Self(world, to, ref mut spare) = *self;
        if spare.is_empty() {
            *spare = world.recut(to);
        }
        if let Some(first) = spare.pop() {
            return Ok(Span { range: PageRange::new(first, pages), zeroed: false });
        }
        let span = world.source.borrow_mut().alloc(pages, align, density)?;
        assert_eq!(world.slabs.borrow_mut().insert(span.range.first, to), None);
        world.spans.borrow_mut().insert(span.range.first, (span.range, density, pages.0));
        Ok(span)
    }

    fn free(&mut self, span: PageRange, _: Density) -> Result<(), SpanError> {
        assert_eq!(self.0.slabs.borrow_mut().remove(&span.first), Some(self.1));
        for page in span.first.0..span.end().0 {
            let mut spans = self.0.spans.borrow_mut();
            let (first, of) = spans.range_mut(..=PageId(page)).next_back().expect("the source gave it");
            of.2 -= 1;
            let (first, (range, density, left)) = (*first, *of);
            if left == 0 {
                spans.remove(&first);
                self.0.source.borrow_mut().free(range, density)?;
            }
        }
        Ok(())
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        unreachable!("slabs keep their length")
    }
}

impl Caches {
    fn recut(&self, to: usize) -> Vec<PageId> {
        let wish = Wish { geometry: Geometry::of(self.sizes()[to]), to: to as u8 };
        for from in (0..self.caches.len()).filter(|from| *from != to) {
            let mut looks = 64;
            while let Some(slab) =
                self.caches[from].try_borrow_mut().ok().and_then(|mut c| c.candidate(wish, &mut looks, &self.records))
            {
                if let Some((parts, mut asked)) = self.parts(slab, from, wish.geometry)
                    && let Some(slabs) = self.divide(wish, &parts, &mut asked)
                {
                    return slabs;
                }
                self.caches[from].borrow().refuse(slab, wish, &self.records);
            }
        }
        Vec::new()
    }

    fn parts(&self, slab: PageId, from: usize, new: Geometry) -> Option<(Vec<Part>, Asked<'_>)> {
        let old = Geometry::of(self.sizes()[from]);
        let (mut parts, mut asked) = (Vec::new(), BTreeMap::new());
        let range = if old.pages >= new.pages { (slab, old.pages) } else { (new.slab_of(slab), new.pages) };
        let (mut at, end) = (range.0, PageId(range.0.0 + range.1.0));
        while at < end {
            let class = *self.slabs.borrow().get(&at)?;
            let pages = Geometry::of(self.sizes()[class]).pages;
            if let std::collections::btree_map::Entry::Vacant(entry) = asked.entry(class as u8) {
                entry.insert(self.caches[class].try_borrow_mut().ok()?);
            }
            if at.0 + pages.0 > end.0 || !asked[&(class as u8)].is_candidate(&self.records[at.0 as usize]) {
                return None;
            }
            parts.push(Part { range: PageRange::new(at, pages), donor: Some(class as u8), from: class as u8 });
            at = PageId(at.0 + pages.0);
        }
        Some((parts, Asked(asked)))
    }

    fn divide(&self, wish: Wish, parts: &[Part], asked: &mut Asked<'_>) -> Option<Vec<PageId>> {
        let (base, mut morphs) = (self.memory.base(), self.morphs.borrow_mut());
        // SAFETY: base, records and table belong together.
        let done = unsafe { donate(wish, parts, asked, base, &self.records, &mut morphs, |_| ()) };
        if !done {
            return None;
        }
        let mut slabs = self.slabs.borrow_mut();
        parts.iter().for_each(|part| assert!(slabs.remove(&part.range.first).is_some()));
        let (first, end) = (parts[0].range.first, parts[parts.len() - 1].range.end());
        let all: Vec<PageId> = (first.0..end.0).step_by(wish.geometry.pages.0 as usize).map(PageId).collect();
        all.iter().for_each(|slab| assert_eq!(slabs.insert(*slab, wish.to.into()), None));
        Some(all.into_iter().rev().collect())
    }
}

impl Caches {
    pub fn new(sizes: &[usize], entries: usize) -> Self {
        let hugepages = HugePages(2);
        let pages = hugepages.pages();
        let records: Vec<SlabRecord> = (0..pages.0).map(|_| SlabRecord::default()).collect();
        // SAFETY: zeros are valid.
        let entries: Vec<Morph> = (0..entries).map(|_| unsafe { std::mem::zeroed() }).collect();
        let faults = FaultPlan::default();
        Self {
            caches: sizes.iter().map(|s| RefCell::new(SlabCache::new(Geometry::of(*s)))).collect(),
            morphs: RefCell::new(Morphs::new(Table::from_slice(entries.leak()))),
            memory: RealMemory::new(hugepages),
            records: Table::from_slice(records.leak()),
            source: RefCell::new(Checked::new(Faulty::new(BumpSpans::new(pages), faults.clone()))),
            faults,
            slabs: RefCell::default(),
            spans: RefCell::default(),
            out: Vec::new(),
            stamp: Cell::new(0),
        }
    }

    fn sizes(&self) -> Vec<usize> {
        // SAFETY: a cache at work cannot be borrowed, but sizes never change.
        self.caches.iter().map(|c| unsafe { (*c.as_ptr()).geometry().object as usize }).collect()
    }

    pub fn alloc(&mut self, class: usize, want: u32) -> usize {
        let mut source = Source(self, class, Vec::new());
        let mut cache = self.caches[class].borrow_mut();
        let size = cache.geometry().object as usize;
        // SAFETY: base, records and source belong together.
        let mut chain = unsafe { cache.alloc(want, self.memory.base(), &self.records, &mut source, |_| ()) }.unwrap();
        source.2.into_iter().for_each(|slab| cache.adopt(slab, &self.records));
        drop(cache);
        let mut got = 0;
        while let Some(object) = chain.pop() {
            let stamp = self.stamp.get().wrapping_add(1);
            self.stamp.set(stamp);
            // SAFETY: live, of this size.
            unsafe { object.write_bytes(stamp, size) };
            self.out.push(Object { at: object as usize, class, stamp });
            got += 1;
        }
        self.check();
        got
    }

    pub fn place_of(&self, at: usize) -> Option<Place> {
        let (slab, _) = self.slab_around(at);
        let offset = at - self.memory.base() as usize;
        let mixed = self.morphs.borrow().range_of(&self.records[offset >> 13]);
        assert!(mixed.is_none_or(|range| range.first == slab), "an entry of another slab");
        self.morphs.borrow().look(offset, &self.records)
    }

    fn slab_around(&self, at: usize) -> (PageId, usize) {
        let page = PageId(((at - self.memory.base() as usize) >> 13) as u32);
        let slabs = self.slabs.borrow();
        let (slab, owner) = slabs.range(..=page).next_back().expect("the object lies on a slab");
        (*slab, *owner)
    }

    /// `late`: out of a cache in front, after the slab morphed.
    pub fn free(&mut self, i: usize, late: bool) -> Option<Left> {
        let object = self.out.swap_remove(i);
        let size = self.sizes()[object.class];
        // SAFETY: out until now.
        let bytes = unsafe { std::slice::from_raw_parts(object.at as *const u8, size) };
        assert!(bytes.iter().all(|b| *b == object.stamp), "{object:?} was written to");
        let place = self.place_of(object.at);
        let is_old = matches!(place, Some(Place::Old { class, offset: 0 }) if usize::from(class) == object.class);
        let is_new = matches!(place, Some(Place::New { class, offset: 0, .. }) if usize::from(class) == object.class);
        assert!(is_old || is_new || place.is_none(), "{object:?} is {place:?}");
        let left = if is_old && !late { Some(self.free_mixed(object.at).unwrap()) } else { self.free_chain(object) };
        self.check();
        left
    }

    fn free_chain(&mut self, object: Object) -> Option<Left> {
        let mut chain = Chain::EMPTY;
        let mut freed = {
            let mut cache = self.caches[object.class].borrow_mut();
            // SAFETY: given up; base, records and source belong together.
            unsafe {
                chain.push(object.at as *mut u8);
                let ((first, n), mut source) = (chain.into_raw(), Source(self, object.class, Vec::new()));
                cache.free_first(first, n, |_| true, self.memory.base(), &self.records, &mut source, |_| ()).unwrap()
            }
        };
        assert!(freed.strays.is_empty(), "all slabs have one owner");
        freed.moved.pop().map(|moved| self.free_mixed(moved as usize).unwrap())
    }

    pub fn free_mixed(&self, at: usize) -> Result<Left, *mut u8> {
        let (slab, owner) = self.slab_around(at);
        assert!(self.morphs.borrow().class_of(&self.records[slab.0 as usize]).is_none_or(|c| usize::from(c) == owner));
        let (base, mut source) = (self.memory.base(), Source(self, owner, Vec::new()));
        let (mut cache, mut morphs) = (self.caches[owner].borrow_mut(), self.morphs.borrow_mut());
        let mut left = Vec::new();
        // SAFETY: base, records, table and source belong together.
        unsafe {
            let each = |of| left.push(of);
            cache.free_mixed(at as *mut u8, base, &self.records, &mut morphs, &mut source, |_| (), each)
        }?;
        Ok(left[0])
    }

    pub fn check(&self) {
        let (base, sizes) = (self.memory.base(), self.sizes());
        let mut sorted = self.out.clone();
        sorted.sort_unstable_by_key(|o| o.at);
        assert!(sorted.windows(2).all(|w| w[1].at - w[0].at >= sizes[w[0].class]), "two objects overlap");
        // SAFETY: as in `alloc`.
        unsafe { self.morphs.borrow().check(base, &self.records) }.unwrap();
        let slabs = self.slabs.borrow();
        let mut old_bytes = 0;
        for (class, cache) in self.caches.iter().enumerate() {
            let (mut full, mut out) = (Vec::new(), 0);
            for slab in slabs.iter().filter(|(_, owner)| **owner == class).map(|(slab, _)| *slab) {
                let (news, olds, usable) = self.on_slab(slab, class, &sorted);
                out += news;
                old_bytes += olds;
                if news == usable {
                    full.push(slab);
                }
            }
            let cache = cache.borrow();
            // SAFETY: as in `alloc`.
            unsafe { cache.check(base, &self.records, &full) }.unwrap();
            assert_eq!(cache.stats().objects_out, out as u64);
        }
        assert_eq!(self.morphs.borrow().old_bytes(), old_bytes as u64);
    }

    /// Returns live objects, others' bytes, and places.
    fn on_slab(&self, slab: PageId, class: usize, sorted: &[Object]) -> (usize, usize, usize) {
        let (sizes, g) = (self.sizes(), Geometry::of(self.sizes()[class]));
        let start = self.memory.base() as usize + slab.offset().0;
        let from = sorted.partition_point(|o| o.at < start);
        let here = sorted[from..].iter().take_while(|o| o.at < start + g.pages.bytes().0);
        let olds: Vec<_> = here.clone().filter(|o| o.class != class).collect();
        let record = &self.records[slab.0 as usize];
        let is_mixed = self.morphs.borrow().range_of(record).is_some();
        let places = if is_mixed { record.cut_objects() } else { g.capacity };
        (here.count() - olds.len(), olds.iter().map(|o| sizes[o.class]).sum(), places.into())
    }

    /// Slabs that were others' once, and those that settled.
    pub fn morphed(&self, class: usize) -> (u32, u32) {
        let stats = self.caches[class].borrow().stats();
        (stats.morphed, stats.settled)
    }

    pub fn pages(&self) -> Pages {
        self.source.borrow().live()
    }

    pub fn drain(&mut self) {
        while !self.out.is_empty() {
            self.free(self.out.len() - 1, false);
        }
        for (class, cache) in self.caches.iter().enumerate() {
            cache.borrow_mut().free_complete(u32::MAX, &self.records, &mut Source(self, class, Vec::new()));
        }
        assert_eq!((self.pages(), self.morphs.borrow().slabs()), (Pages(0), 0));
    }
}
