//! Several caches whose slabs may morph into each other's, over real bytes, held against a list of
//! what is out.

use craton_base::{Density, HugePages, PageId, PageRange, Pages, Span, SpanError, SpanSource, Table};
use craton_sim::{BumpSpans, Checked, FaultPlan, Faulty, RealMemory};
use craton_slab::{Chain, Geometry, Left, Morph, Morphs, NO_OFFER, Offer, Place, SlabCache, SlabRecord, Wish, donate};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// An object that is out: where it is, of which cache, and what all its bytes hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    pub at: usize,
    pub class: usize,
    pub stamp: u8,
}

/// The caches, their memory, and what is out.
pub struct Caches {
    pub caches: Vec<RefCell<SlabCache>>,
    pub morphs: RefCell<Morphs>,
    pub faults: FaultPlan,
    memory: RealMemory,
    records: Table<SlabRecord>,
    source: RefCell<Checked<Faulty<BumpSpans>>>,
    /// The slabs and whose they are.
    slabs: RefCell<BTreeMap<PageId, usize>>,
    /// Those that were two once, which the source does not know.
    joined: RefCell<BTreeSet<PageId>>,
    /// What the source was told of its spans.
    densities: RefCell<BTreeMap<PageId, Density>>,
    pub out: Vec<Object>,
    stamp: Cell<u8>,
}

/// The source of one cache: slabs of the others, then new spans.
struct Source<'a>(&'a Caches, usize);

impl SpanSource for Source<'_> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let Self(world, to) = *self;
        let geometry = Geometry::of(world.sizes()[to]);
        for (from, cache) in world.caches.iter().enumerate().filter(|(from, _)| *from != to) {
            // A cache that is at work is passed over, as one whose lock is held.
            let Ok(mut cache) = cache.try_borrow_mut() else { continue };
            let wish = Wish { geometry, to: to as u8 };
            let (base, mut morphs) = (world.memory.base(), world.morphs.borrow_mut());
            let is_as_long = cache.geometry().pages == geometry.pages;
            let slab = cache.candidates(geometry, &world.records).next().filter(|_| is_as_long);
            let morphed = slab.and_then(|slab| {
                let offers = [Offer { cache: Some(&mut cache), slab, from: from as u8 }, NO_OFFER];
                // SAFETY: base, records and table belong together.
                unsafe { donate(wish, offers, base, &world.records, &mut morphs, |_| ()) }
            });
            if let Some(range) = morphed {
                assert_eq!(world.slabs.borrow_mut().insert(range.first, to), Some(from));
                return Ok(Span { range, zeroed: false });
            }
            if 2 * cache.geometry().pages.0 == geometry.pages.0
                && let Some(range) = world.join(wish, from, &mut cache, &mut morphs)
            {
                return Ok(Span { range, zeroed: false });
            }
        }
        let span = world.source.borrow_mut().alloc(pages, align, density)?;
        assert_eq!(world.slabs.borrow_mut().insert(span.range.first, to), None);
        world.densities.borrow_mut().insert(span.range.first, density);
        Ok(span)
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        assert_eq!(self.0.slabs.borrow_mut().remove(&span.first), Some(self.1));
        // The source wants its spans back as it gave them, whatever has become of them.
        let _ = density;
        let parts = if self.0.joined.borrow_mut().remove(&span.first) { 2 } else { 1 };
        let len = Pages(span.len.0 / parts);
        (0..parts).try_for_each(|part| {
            let range = PageRange::new(PageId(span.first.0 + part * len.0), len);
            let density = self.0.densities.borrow_mut().remove(&range.first).expect("the source gave it");
            self.0.source.borrow_mut().free(range, density)
        })
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        unreachable!("slabs keep their length")
    }
}

impl Caches {
    /// Makes one slab of two neighbours, of which one is of cache `from`, at hand as `cache`.
    fn join(&self, wish: Wish, from: usize, cache: &mut SlabCache, morphs: &mut Morphs) -> Option<PageRange> {
        let (half, slabs) = (cache.geometry().pages, &self.slabs);
        let all: Vec<PageId> = cache.candidates(wish.geometry, &self.records).collect();
        all.into_iter().find_map(|slab| {
            let beside = PageId(slab.0 ^ half.0);
            let other = *slabs.borrow().get(&beside)?;
            let mut theirs = if other == from { None } else { Some(self.caches[other].try_borrow_mut().ok()?) };
            let theirs_or_ours = theirs.as_deref().unwrap_or(cache);
            let is_candidate = theirs_or_ours.is_candidate(&self.records[beside.0 as usize]);
            if theirs_or_ours.geometry().pages != half || !is_candidate {
                return None;
            }
            let second = Offer { cache: theirs.as_deref_mut(), slab: beside, from: other as u8 };
            let offers = [Offer { cache: Some(cache), slab, from: from as u8 }, second];
            // SAFETY: base, records and table belong together.
            let range = unsafe { donate(wish, offers, self.memory.base(), &self.records, morphs, |_| ()) }?;
            let mut slabs = slabs.borrow_mut();
            assert!(slabs.remove(&slab).is_some() && slabs.remove(&beside).is_some());
            slabs.insert(range.first, wish.to.into());
            self.joined.borrow_mut().insert(range.first);
            Some(range)
        })
    }
}

impl Caches {
    /// Caches of these sizes, with room for so many slabs of two sizes, less one.
    pub fn new(sizes: &[usize], entries: usize) -> Self {
        let hugepages = HugePages(2);
        let pages = hugepages.pages();
        let records: Vec<SlabRecord> = (0..pages.0).map(|_| SlabRecord::default()).collect();
        // SAFETY: zeros are valid entries.
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
            joined: RefCell::default(),
            densities: RefCell::default(),
            out: Vec::new(),
            stamp: Cell::new(0),
        }
    }

    fn sizes(&self) -> Vec<usize> {
        // A cache at work cannot be asked; all have their sizes from `Geometry::of`.
        // SAFETY: nobody else is in the caches while one is at work, and sizes never change.
        self.caches.iter().map(|c| unsafe { (*c.as_ptr()).geometry().object as usize }).collect()
    }

    /// Takes up to `want` objects and fills them. Says how many there were.
    pub fn take(&mut self, class: usize, want: u32) -> usize {
        let mut source = Source(self, class);
        let mut cache = self.caches[class].borrow_mut();
        let size = cache.geometry().object as usize;
        // SAFETY: base, records and source belong together.
        let mut chain = unsafe { cache.alloc(want, self.memory.base(), &self.records, &mut source, |_| ()) };
        drop(cache);
        let mut got = 0;
        while let Some(object) = chain.pop() {
            let stamp = self.stamp.get().wrapping_add(1);
            self.stamp.set(stamp);
            // SAFETY: the object is out, and has so many bytes.
            unsafe { object.write_bytes(stamp, size) };
            self.out.push(Object { at: object as usize, class, stamp });
            got += 1;
        }
        self.check();
        got
    }

    /// What lies at an address of a slab of two sizes.
    pub fn look(&self, at: usize) -> Option<Place> {
        let (slab, _) = self.slab_around(at);
        let bytes = at - self.memory.base() as usize - slab.offset().0;
        let mixed = self.morphs.borrow().range_of(&self.records[slab.0 as usize]);
        assert!(mixed.is_none_or(|range| range.first == slab), "an entry of another slab");
        self.morphs.borrow().look(&self.records[slab.0 as usize], bytes)
    }

    fn slab_around(&self, at: usize) -> (PageId, usize) {
        let page = PageId(((at - self.memory.base() as usize) >> 13) as u32);
        let slabs = self.slabs.borrow();
        let (slab, owner) = slabs.range(..=page).next_back().expect("the object lies on a slab");
        (*slab, *owner)
    }

    /// Gives the object at this place of the list of what is out back: like one that comes from the
    /// program, or, if `late`, like one that was in a cache in front when its slab morphed.
    pub fn give(&mut self, i: usize, late: bool) -> Option<Left> {
        let object = self.out.swap_remove(i);
        let size = self.sizes()[object.class];
        // SAFETY: the object was out until now.
        let bytes = unsafe { std::slice::from_raw_parts(object.at as *const u8, size) };
        assert!(bytes.iter().all(|b| *b == object.stamp), "{object:?} was written to");
        let place = self.look(object.at);
        let is_old = matches!(place, Some(Place::Old { class, offset: 0 }) if usize::from(class) == object.class);
        let is_new = matches!(place, Some(Place::New { class, offset: 0, .. }) if usize::from(class) == object.class);
        assert!(is_old || is_new || place.is_none(), "{object:?} is {place:?}");
        let left = if is_old && !late { Some(self.give_mixed(object.at).unwrap()) } else { self.give_chain(object) };
        self.check();
        left
    }

    fn give_chain(&mut self, object: Object) -> Option<Left> {
        let mut chain = Chain::EMPTY;
        let mut freed = {
            let mut cache = self.caches[object.class].borrow_mut();
            // SAFETY: the object was out and is given up; base, records and source belong together.
            unsafe {
                chain.push(object.at as *mut u8);
                let ((first, n), mut source) = (chain.into_raw(), Source(self, object.class));
                cache.free_first(first, n, |_| true, self.memory.base(), &self.records, &mut source).unwrap()
            }
        };
        assert!(freed.strays.is_empty(), "all slabs have one owner");
        freed.moved.pop().map(|moved| self.give_mixed(moved as usize).unwrap())
    }

    /// Gives back an object of a slab of two sizes.
    pub fn give_mixed(&self, at: usize) -> Result<Left, *mut u8> {
        let (slab, owner) = self.slab_around(at);
        assert!(self.morphs.borrow().class_of(&self.records[slab.0 as usize]).is_none_or(|c| usize::from(c) == owner));
        let (base, mut source) = (self.memory.base(), Source(self, owner));
        let mut cache = self.caches[owner].borrow_mut();
        // SAFETY: base, records, table and source belong together.
        unsafe {
            cache.free_mixed(at as *mut u8, base, &self.records, &mut self.morphs.borrow_mut(), &mut source, |_| ())
        }
    }

    /// S1 to S6, and that the caches know what is out.
    pub fn check(&self) {
        let (base, sizes) = (self.memory.base(), self.sizes());
        let mut sorted = self.out.clone();
        sorted.sort_unstable_by_key(|o| o.at);
        assert!(sorted.windows(2).all(|w| w[1].at - w[0].at >= sizes[w[0].class]), "two objects overlap");
        // SAFETY: as in `take`.
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
            // SAFETY: as in `take`.
            unsafe { cache.check(base, &self.records, &full) }.unwrap();
            assert_eq!(cache.stats().objects_out, out as u64);
        }
        assert_eq!(self.morphs.borrow().old_bytes(), old_bytes as u64);
    }

    /// Of a slab of cache `class`: how many of its objects are out, how many bytes of others, and
    /// how many places it has.
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

    /// Slabs of a cache that were others' once, and those of them that are its own alone by now,
    /// since the start.
    pub fn morphed(&self, class: usize) -> (u32, u32) {
        let stats = self.caches[class].borrow().stats();
        (stats.morphed, stats.settled)
    }

    /// Pages that the source has out.
    pub fn pages(&self) -> Pages {
        self.source.borrow().live()
    }

    /// Gives everything back: all slabs go.
    pub fn drain(&mut self) {
        while !self.out.is_empty() {
            self.give(self.out.len() - 1, false);
        }
        assert_eq!((self.pages(), self.morphs.borrow().slabs()), (Pages(0), 0));
    }
}
