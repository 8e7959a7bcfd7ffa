//! Slabs that go from one size class to another while objects live on them.
//!
//! **What.** Before a class takes a new span from the page heap, it looks for a slab of another class, on a span of the
//! same length, on which few objects live, and then for two neighbours of half the length, of whatever classes. The pages
//! are marked [`MORPHED`] until the slab is like others of its class: the fast paths know nothing of that mark, so that
//! each free on such a slab comes here. Objects of the new class then go into the thread's cache as always, those of the
//! old classes straight to the slab. The hugepage stays one of dense or sparse spans, whatever the new objects are.
//!
//! **From.** NVAlloc §5.2.
//!
//! **Threads.** A slab morphs under the locks of its old and new classes, of which all but that of the new one are only
//! tried, and that of the table; it settles as an ordinary one under the lock of its new class and that of the table. So both the page
//! map and a slab's record can be trusted under the table's lock alone. Objects of the old class that lie in some
//! thread's cache count as live; when they come from there to their class's slabs they are sent on.
//!
//! **Cost.** A look, when a new span would be taken: a few locks that are tried, and less and less often while none is
//! found. A free on such a slab takes the table's lock.
//!
//! **Failure.** Without memory for the table no slab morphs.
//!
//! **Unsafe.** Hands slabs the address of the region, and gives table entries memory of their own.

use crate::cpu_cache::thread::mark;
use crate::heap::{Heap, Layout, Marked, mark_free};
use crate::hooks::Hooks;
use crate::report;
use crate::route::{Found, Misuse};
use crate::size_class::{self, CLASSES, MORPHED};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use craton_base::{Clock, Floor, PAGE_SIZE, PageId, PageRange, Pages, Table};
use craton_os::Guard;
use craton_os::mapping;
use craton_slab::{Chain, Left, Morph, Morphs, NO_OFFER, Offer, Place, SlabCache, Wish};

/// Slabs that can hold two classes at a time; entries take memory only once they are used.
const MOST: usize = if cfg!(loom) { 8 } else { 1 << 18 };
/// A heap with fewer pages in use is left alone: 4 MiB.
const LEAST_PAGES: u32 = if cfg!(loom) { 1 } else { ((4 << 20) / PAGE_SIZE) as u32 };
/// Classes that are asked in one look.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 8 };
/// So many requests of a class go without a look at the most after looks that found nothing.
const LONGEST_PAUSE: u8 = 16;

/// A class that took none of the last slabs, one for each so many pages in use, has what it needs; one that takes some would
/// refill the gaps of its own. A program whose sizes all come and go together gains nothing by morphing, and each free on
/// such a slab is dear.
const REST_PART: u32 = 32;

/// Slabs that are tried in one look.
const TRIES: usize = 10;

/// The logarithm of the longest slab of several objects, in pages.
const LONGEST_LOG: usize = 5;

/// For each class the next one whose slabs are on the same spans; itself if there is none.
static NEXT: [u8; CLASSES + 1] = {
    let mut next = [0; CLASSES + 1];
    let mut last = [0; LONGEST_LOG + 1];
    // Twice around, so that each class knows one that comes before it.
    let mut i = 2 * CLASSES;
    while i > 0 {
        let class = (i - 1) % CLASSES + 1;
        let g = size_class::geometry(class);
        // A slab is found from within by its length, which must be a power of two for that.
        if g.is_single() || !g.pages.0.is_power_of_two() {
            next[class] = class as u8;
        } else {
            let last = &mut last[g.pages.0.trailing_zeros() as usize];
            next[class] = *last;
            *last = class as u8;
        }
        i -= 1;
    }
    next
};

/// A class with slabs of several objects on spans of so many pages; 0 if there is none.
static FIRST: [u8; LONGEST_LOG + 1] = {
    let mut first = [0; LONGEST_LOG + 1];
    let mut class = CLASSES;
    while class > 0 {
        let g = size_class::geometry(class);
        if !g.is_single() && g.pages.0.is_power_of_two() {
            first[g.pages.0.trailing_zeros() as usize] = class as u8;
        }
        class -= 1;
    }
    first
};

/// Whether a class has slabs of several objects on spans of so many pages.
fn has_span(class: usize, pages: Pages) -> bool {
    let g = size_class::geometry(class);
    g.pages == pages && !g.is_single()
}

/// How a class's looks went.
struct Luck {
    /// Requests that go without a look.
    pause: AtomicU8,
    /// How long the last pause was.
    last_pause: AtomicU8,
}

/// Where a heap looks for slabs that could morph. All zeros at first.
pub(crate) struct Search {
    /// Pages of the heap that were in use when last seen.
    pages: AtomicU32,
    /// The class that gave a slab last, or was asked last; 0 at first.
    donor: AtomicU32,
    /// The class that gave half of a slab last, or was asked for one last; 0 at first.
    half_donor: AtomicU32,
    /// The shard that is asked besides the home of who looks.
    shard: AtomicU32,
    /// Slabs that all classes took.
    taken: AtomicU32,
    /// How many that were when each class took its last one.
    taken_at: [AtomicU32; CLASSES + 1],
    luck: [Luck; CLASSES + 1],
}

impl Search {
    /// At the beginning.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub(crate) const NEW: Self = Self {
        pages: AtomicU32::new(0),
        donor: AtomicU32::new(0),
        half_donor: AtomicU32::new(0),
        shard: AtomicU32::new(0),
        taken: AtomicU32::new(0),
        taken_at: [const { AtomicU32::new(0) }; CLASSES + 1],
        luck: [const { Luck { pause: AtomicU8::new(0), last_pause: AtomicU8::new(0) } }; CLASSES + 1],
    };

    /// The next look is at the slabs of one class and shard.
    #[cfg(loom)]
    pub(crate) fn look_at(&self, shard: usize, class: usize) {
        self.donor.store(class as u32, Relaxed);
        self.half_donor.store(class as u32, Relaxed);
        self.shard.store(shard as u32, Relaxed);
    }

    /// Notes how many pages of the heap are in use.
    pub(crate) fn note_in_use(&self, pages: Pages) {
        self.pages.store(pages.0, Relaxed);
    }

    /// Notes that a class takes a slab.
    fn note_taken(&self, class: usize) {
        let taken = self.taken.fetch_add(1, Relaxed) + 1;
        self.taken_at[class].store(taken, Relaxed);
    }

    /// Whether a class does without new slabs while others take some.
    fn is_at_rest(&self, class: usize) -> bool {
        self.taken.load(Relaxed).wrapping_sub(self.taken_at[class].load(Relaxed))
            >= self.pages.load(Relaxed) / REST_PART
    }

    /// Whether this request of a class, whose lock the caller holds, may look.
    fn is_due(&self, class: usize) -> bool {
        if self.pages.load(Relaxed) < LEAST_PAGES {
            return false;
        }
        let pause = &self.luck[class].pause;
        let left = pause.load(Relaxed);
        pause.store(left.saturating_sub(1), Relaxed);
        left == 0
    }

    /// Notes how a look for a class, whose lock the caller holds, ended.
    fn note(&self, class: usize, found: bool) {
        let Luck { pause, last_pause } = &self.luck[class];
        let next = if found { 0 } else { (2 * last_pause.load(Relaxed) + 1).min(LONGEST_PAUSE) };
        last_pause.store(next, Relaxed);
        pause.store(next, Relaxed);
    }
}

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// A slab of another class for `class` in a shard, whose lock the caller holds; none if there is none at hand.
    #[cold]
    pub(crate) fn second_hand(&self, home: usize, class: usize) -> Option<PageRange> {
        self.search.note_taken(class);
        if usize::from(NEXT[class]) == class || !self.search.is_due(class) {
            return None;
        }
        let pages = size_class::geometry(class).pages;
        let range = self.ask(&self.search.donor, pages, (home, class)).or_else(|| {
            if pages.0 > 1 { self.ask(&self.search.half_donor, Pages(pages.0 / 2), (home, class)) } else { None }
        });
        if range.is_none() {
            self.search.shard.fetch_add(1, Relaxed);
        }
        self.search.note(class, range.is_some());
        range
    }

    /// Asks some of the classes that have slabs of so many pages, from the one on that was asked last.
    fn ask(&self, last: &AtomicU32, pages: Pages, (home, class): (usize, usize)) -> Option<PageRange> {
        let mut donor = last.load(Relaxed) as usize;
        if donor == 0 || !has_span(donor, pages) {
            donor = FIRST[pages.0.trailing_zeros() as usize].into();
            if donor == 0 {
                return None;
            }
        }
        // Threads of other homes may have left what this one needs: one of those is asked besides.
        let shards = self.homes();
        let other = self.search.shard.load(Relaxed) as usize % shards;
        let mut tries = TRIES;
        for _ in 0..LOOKS {
            for shard in [home, other].into_iter().take(shards) {
                if donor != class
                    && self.search.is_at_rest(donor)
                    && let Some(range) = self.morph((shard, donor), (home, class), &mut tries)
                {
                    last.store(donor as u32, Relaxed);
                    return Some(range);
                }
            }
            donor = NEXT[donor].into();
        }
        last.store(donor as u32, Relaxed);
        None
    }

    /// Makes a slab of a shard and class one of another, whose lock the caller holds, or half of one.
    fn morph(&self, (shard, from): (usize, usize), to: (usize, usize), tries: &mut usize) -> Option<PageRange> {
        let mut slabs = self.try_slabs(shard, from)?;
        if slabs.is_unset() {
            return None;
        }
        let records = &self.layout().records;
        let mut tried = [None; TRIES];
        let candidates = slabs.candidates(size_class::geometry(to.1), records);
        tried[..*tries].iter_mut().zip(candidates).for_each(|(slot, slab)| *slot = Some(slab));
        let is_half = !has_span(from, size_class::geometry(to.1).pages);
        tried.into_iter().flatten().find_map(|slab| {
            *tries -= 1;
            if !is_half {
                return self.morph_into(to, [Offer { cache: Some(&mut slabs), slab, from: from as u8 }, NO_OFFER]);
            }
            let (beside, class, mut other) = self.neighbour((shard, from), slab, &slabs)?;
            let second = Offer { cache: other.as_deref_mut(), slab: beside, from: class as u8 };
            self.morph_into(to, [Offer { cache: Some(&mut slabs), slab, from: from as u8 }, second])
        })
    }

    /// The slab with which one of a shard and class, whose lock the caller holds, could become one of twice the length, its
    /// class, and the lock of its cache, if that is another one.
    fn neighbour(
        &self,
        (shard, class): (usize, usize),
        slab: PageId,
        slabs: &SlabCache,
    ) -> Option<(PageId, usize, Option<Guard<'_, SlabCache>>)> {
        let records = &self.layout().records;
        let pages = size_class::geometry(class).pages;
        let beside = PageId(slab.0 ^ pages.0);
        let (other, record) = (self.mark(beside) as usize, &records[beside.0 as usize]);
        if !(1..=CLASSES).contains(&other) || !has_span(other, pages) {
            return None;
        }
        let owner = record.owner();
        if (owner, other) == (shard, class) {
            return slabs.is_candidate(record).then_some((beside, other, None));
        }
        let guard = self.try_slabs(owner, other)?;
        // With the lock what was seen before it holds.
        let is_theirs = usize::from(self.mark(beside)) == other && record.owner() == owner;
        (is_theirs && guard.is_candidate(record)).then_some((beside, other, Some(guard)))
    }

    /// Makes slabs whose caches are locked one slab of a class of which the caller holds the lock.
    fn morph_into(&self, (home, to): (usize, usize), offers: [Offer<'_>; 2]) -> Option<PageRange> {
        let pages = size_class::geometry(to).pages;
        let is_pair = offers[0].cache.as_ref().is_some_and(|cache| cache.geometry().pages != pages);
        let mut morphs = self.morphs.lock();
        if morphs.is_unset() {
            // Address space may be short: there are no more slabs than pages.
            let most = MOST.min(self.layout().records.len());
            let table = mapping::map((most * size_of::<Morph>()).next_multiple_of(PAGE_SIZE), PAGE_SIZE)?;
            // SAFETY: the mapping is new, reads as zeros, is aligned and stays.
            *morphs = Morphs::new(unsafe { Table::new(table as *mut Morph, most) });
        }
        let Layout { base, key, records, .. } = self.layout();
        let wish = Wish { geometry: size_class::geometry(to), to: to as u8 };
        // SAFETY: base, records and table are this heap's; the locks of all caches and of the table are held.
        let range = unsafe {
            craton_slab::donate(wish, offers, *base as *mut u8, records, &mut morphs, |o| mark_free(*key, o))?
        };
        if is_pair {
            let half = Pages(range.len.0 / 2);
            let (first, second) =
                (PageRange::new(range.first, half), PageRange::new(PageId(range.first.0 + half.0), half));
            self.join(first, second);
        }
        (0..range.len.0).for_each(|i| records[(range.first.0 + i) as usize].set_owner(home));
        self.set_marks(range, MORPHED, true);
        Some(range)
    }

    /// Whether [`Heap::find`] needs no lock for a pointer, or one that nobody holds.
    pub(crate) fn is_found_at_once(&self, pointer: *mut u8) -> bool {
        self.page_of(pointer as usize)
            .is_some_and(|page| self.mark(page) != MORPHED || self.morphs.try_lock().is_some())
    }

    /// What a pointer to a page marked [`MORPHED`] is.
    pub(crate) fn find_morphed(&self, pointer: *mut u8, page: PageId) -> Found {
        let morphs = self.morphs.lock();
        let Some(place) = self.look(&morphs, pointer, page) else {
            // It has become an ordinary slab in the meantime.
            drop(morphs);
            return self.find(pointer);
        };
        let found = match place {
            Place::Old { class, offset: 0 } => Found::Old { class: class.into() },
            Place::New { class, offset: 0, .. } => Found::Small { class: class.into() },
            Place::New { was_old: Some(old), class, offset } => {
                let start = pointer.wrapping_sub(offset);
                return Found::Bad(if self.is_marked(start) {
                    Misuse::Freed { size: size_class::size_of_class(old.into()) }
                } else {
                    Misuse::Inside { offset, size: size_class::size_of_class(class.into()) }
                });
            }
            Place::Old { class, offset } | Place::New { class, offset, was_old: None } => {
                return Found::Bad(Misuse::Inside { offset, size: size_class::size_of_class(class.into()) });
            }
            Place::Nothing { was_old: Some(old) } => {
                return Found::Bad(Misuse::Freed { size: size_class::size_of_class(old.into()) });
            }
            Place::Nothing { was_old: None } => return Found::Bad(Misuse::Unallocated),
        };
        match found.usable() {
            Ok(size) if self.is_marked(pointer) => Found::Bad(Misuse::Freed { size }),
            _ => found,
        }
    }

    /// The class of an object that is out, if its slab has morphed to that class: nearly all that are freed on such slabs.
    #[inline]
    pub(crate) fn recognise_morphed(&self, pointer: *mut u8) -> Option<usize> {
        let page = self.page_of(pointer as usize).filter(|page| self.mark(*page) == MORPHED)?;
        let morphs = self.morphs.lock();
        let Layout { base, records, .. } = self.layout();
        let class = morphs.new_at(&records[page.0 as usize], pointer as usize - base)?;
        (!self.is_marked(pointer)).then_some(class.into())
    }

    /// The slab around a page marked [`MORPHED`], if it still is.
    fn mixed_slab(&self, morphs: &Morphs, page: PageId) -> Option<PageId> {
        if self.mark(page) != MORPHED {
            return None;
        }
        morphs.range_of(&self.layout().records[page.0 as usize]).map(|slab| slab.first)
    }

    /// What lies where a pointer to a page marked [`MORPHED`] points; none if the mark is no more that.
    fn look(&self, morphs: &Morphs, pointer: *mut u8, page: PageId) -> Option<Place> {
        let slab = self.mixed_slab(morphs, page)?;
        morphs.look(&self.layout().records[slab.0 as usize], pointer as usize - self.address(slab) as usize)
    }

    /// What a pointer is that looked bad while its slab may have been about to change its class.
    #[cold]
    pub(crate) fn find_again(&self, pointer: *mut u8, page: PageId, class: u8) -> Found {
        let morphs = self.morphs.lock();
        if self.mark(page) == class {
            return self.find_small(pointer as usize, page, class.into());
        }
        drop(morphs);
        self.find(pointer)
    }

    /// Whether an object is marked as free.
    fn is_marked(&self, object: *mut u8) -> bool {
        // SAFETY: the object is one of a slab, whose objects have at least 16 readable bytes.
        unsafe { object.cast::<usize>().add(1).read() == mark(self.layout().key, object) }
    }

    /// Takes back an object of class `class`, which its slab had before it morphed.
    ///
    /// # Safety
    /// The caller gives the object up.
    pub(crate) unsafe fn give_old(&self, class: usize, object: *mut u8) -> Result<(), Misuse> {
        let freed = Misuse::Freed { size: size_class::size_of_class(class) };
        let page = self.page_of(object as usize).ok_or(Misuse::Foreign)?;
        // SAFETY: by the contract. While the object is out its slab stays as it is. If it is not, two frees of it are on
        // their way.
        let known = unsafe { self.give_mixed(object, page) };
        known.filter(|given| *given).map(|_| ()).ok_or(freed)
    }

    /// Takes back an object of a slab of two classes, and says whether it was out; none if the slab is no such any more.
    ///
    /// # Safety
    /// The caller gives the object up.
    unsafe fn give_mixed(&self, object: *mut u8, page: PageId) -> Option<bool> {
        let owner = |morphs: &Morphs| {
            let record = &self.layout().records[self.mixed_slab(morphs, page)?.0 as usize];
            Some((record.owner(), morphs.class_of(record)?))
        };
        let mut known = owner(&self.morphs.lock())?;
        let ((home, to), mut slabs, mut morphs) = loop {
            let slabs = self.slabs(known.0, known.1.into());
            let morphs = self.morphs.lock();
            // Before we had the lock, it may have settled, and even gone to another class.
            match owner(&morphs)? {
                now if now == known => break (known, slabs, morphs),
                now => known = now,
            }
        };
        let mut source = Marked { heap: self, home, class: to.into() };
        let Layout { base, key, records, .. } = self.layout();
        // SAFETY: base, records, table and source are this heap's; the locks of the cache and of the table are held.
        let left = unsafe {
            let base = *base as *mut u8;
            slabs.free_mixed(object, base, records, &mut morphs, &mut source, |o| mark_free(*key, o))
        };
        if let Ok(Left::Ordinary(range)) = left {
            self.set_marks(range, to, true);
        }
        Some(left.is_ok())
    }

    /// Gives objects of a class back whose slabs hold, or held, two classes.
    ///
    /// # Safety
    /// The caller gives the objects up.
    pub(crate) unsafe fn give_moved(&self, class: usize, mut moved: Chain) {
        while let Some(object) = moved.pop() {
            let page = self.page_of(object as usize);
            // SAFETY: by the contract.
            match page.and_then(|page| unsafe { self.give_mixed(object, page) }) {
                Some(true) => (),
                Some(false) => report::misuse("free", object, Misuse::Unallocated),
                // SAFETY: as above. The slab settled in the meantime.
                None => unsafe { self.give_marked(class, object) },
            }
        }
    }
}
