//! Slabs that go from one size class to another while objects live on them.
//!
//! **What.** Before a class takes a new span from the page heap, it looks for a slab of another class, on a span of the
//! same length and density, on which few objects live. Its pages are marked [`MORPHED`] until the last of those is
//! back: the fast paths know nothing of that mark, so that each free on such a slab comes here. Objects of the new
//! class then go into the thread's cache as always, those of the old class straight to the slab.
//!
//! **From.** NVAlloc §5.2.
//!
//! **Threads.** A slab morphs under the locks of both classes, the second of which is only tried, and that of the
//! table; it ceases to be a slab of two classes under the lock of its new class and that of the table. So both the page
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
use crate::heap::{Heap, Marked, mark_free};
use crate::report;
use crate::route::{Found, Misuse};
use crate::size_class::{self, CLASSES, MORPHED};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use craton_base::{Clock, Density, Floor, PAGE_SIZE, PageId, PageRange, Pages, Table};
use craton_os::mapping;
use craton_slab::{Chain, Left, Morph, Morphs, Place, Wish};

/// Slabs that can hold two classes at a time; entries take memory only once they are used.
const MOST: usize = 1 << 18;
/// A heap with fewer pages in use is left alone: 4 MiB.
const LEAST_PAGES: u32 = ((4 << 20) / PAGE_SIZE) as u32;
/// Classes that are asked in one look.
const LOOKS: u32 = 8;
/// So many requests of a class go without a look at the most after looks that found nothing.
const LONGEST_PAUSE: u8 = 32;

/// The logarithm of the longest slab of several objects, in pages.
const LONGEST_LOG: usize = 5;

/// For each class the next one whose slabs are on the same spans; itself if there is none.
static NEXT: [u8; CLASSES + 1] = {
    let mut next = [0; CLASSES + 1];
    let mut last = [[0; LONGEST_LOG + 1]; 2];
    // Twice around, so that each class knows one that comes before it.
    let mut i = 2 * CLASSES;
    while i > 0 {
        let class = (i - 1) % CLASSES + 1;
        let g = size_class::geometry(class);
        // A slab is found from within by its length, which must be a power of two for that.
        if g.is_single() || !g.pages.0.is_power_of_two() {
            next[class] = class as u8;
        } else {
            let last = &mut last[matches!(g.density(), Density::Dense) as usize][g.pages.0.trailing_zeros() as usize];
            next[class] = *last;
            *last = class as u8;
        }
        i -= 1;
    }
    next
};

/// Whether two classes have slabs of several objects on the same spans.
fn same_span(a: usize, b: usize) -> bool {
    let (a, b) = (size_class::geometry(a), size_class::geometry(b));
    (a.pages, a.density()) == (b.pages, b.density()) && !a.is_single() && !b.is_single()
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
    /// The shard that is asked besides the home of who looks.
    shard: AtomicU32,
    luck: [Luck; CLASSES + 1],
}

impl Search {
    /// At the beginning.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub(crate) const NEW: Self = Self {
        pages: AtomicU32::new(0),
        donor: AtomicU32::new(0),
        shard: AtomicU32::new(0),
        luck: [const { Luck { pause: AtomicU8::new(0), last_pause: AtomicU8::new(0) } }; CLASSES + 1],
    };

    /// Notes how many pages of the heap are in use.
    pub(crate) fn note_in_use(&self, pages: Pages) {
        self.pages.store(pages.0, Relaxed);
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

    /// Notes that a look for a class, whose lock the caller holds, ended at `donor`.
    fn note(&self, class: usize, donor: usize, found: bool) {
        let Luck { pause, last_pause } = &self.luck[class];
        let next = if found { 0 } else { (2 * last_pause.load(Relaxed) + 1).min(LONGEST_PAUSE) };
        last_pause.store(next, Relaxed);
        pause.store(next, Relaxed);
        self.donor.store(donor as u32, Relaxed);
    }
}

impl<F: Floor, C: Clock> Heap<F, C> {
    /// A slab of another class for `class` in a shard, whose lock the caller holds; none if there is none at hand.
    #[cold]
    pub(crate) fn second_hand(&self, home: usize, class: usize) -> Option<PageRange> {
        if usize::from(NEXT[class]) == class || !self.search.is_due(class) {
            return None;
        }
        let mut donor = self.search.donor.load(Relaxed) as usize;
        if donor == 0 || !same_span(donor, class) {
            donor = NEXT[class].into();
        }
        // Threads of other homes may have left what this one needs: one of those is asked besides.
        let shards = self.homes();
        let other = self.search.shard.load(Relaxed) as usize % shards;
        for _ in 0..LOOKS {
            for shard in [home, other].into_iter().take(shards) {
                if donor != class
                    && let Some(range) = self.morph((shard, donor), (home, class))
                {
                    self.search.note(class, donor, true);
                    return Some(range);
                }
            }
            donor = NEXT[donor].into();
        }
        self.search.shard.store(other as u32 + 1, Relaxed);
        self.search.note(class, donor, false);
        None
    }

    /// Makes a slab of a shard and class one of another, whose lock the caller holds.
    fn morph(&self, (shard, from): (usize, usize), (home, to): (usize, usize)) -> Option<PageRange> {
        let mut slabs = self.try_slabs(shard, from)?;
        if slabs.is_unset() {
            return None;
        }
        let mut morphs = self.morphs.lock();
        if morphs.is_unset() {
            let table = mapping::map(MOST * size_of::<Morph>(), PAGE_SIZE)?;
            // SAFETY: the mapping is new, reads as zeros, is aligned and stays.
            *morphs = Morphs::new(unsafe { Table::new(table as *mut Morph, MOST) });
        }
        let (base, key) = (self.layout().base as *mut u8, self.layout().key);
        let wish = Wish { geometry: size_class::geometry(to), from: from as u8, to: to as u8 };
        // SAFETY: base, records and table are this heap's; the locks of both caches and of the table are held.
        let range = unsafe { slabs.donate(wish, base, &self.layout().records, &mut morphs, |o| mark_free(key, o))? };
        self.layout().records[range.first.0 as usize].set_owner(home);
        self.set_marks(range, MORPHED, true);
        Some(range)
    }

    /// What a pointer to a page marked [`MORPHED`] is.
    pub(crate) fn find_morphed(&self, pointer: *mut u8, page: PageId) -> Found {
        let morphs = self.morphs.lock();
        let Some((_, place)) = self.look(&morphs, pointer, page) else {
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

    /// The slab around a page marked [`MORPHED`], and what lies there where the pointer points; none if the mark is no
    /// more that.
    fn look(&self, morphs: &Morphs, pointer: *mut u8, page: PageId) -> Option<(PageId, Place)> {
        if self.mark(page) != MORPHED {
            return None;
        }
        // A slab is aligned to its length, which only the record at its first page says.
        (0..=LONGEST_LOG).find_map(|log| {
            let slab = PageId(page.0 >> log << log);
            let record = &self.layout().records[slab.0 as usize];
            let bytes = pointer as usize - self.address(slab) as usize;
            let place = morphs.look(record, bytes)?;
            record.pages().bytes().0.gt(&bytes).then_some((slab, place))
        })
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
        // While the object is out its slab stays as it is. If it is not, two frees of it are on their way.
        let (home, to) = {
            let morphs = self.morphs.lock();
            let (slab, _) = self.look(&morphs, object, page).ok_or(freed)?;
            let record = &self.layout().records[slab.0 as usize];
            (record.owner(), morphs.class_of(record).ok_or(freed)?)
        };
        let mut slabs = self.slabs(home, to.into());
        let mut morphs = self.morphs.lock();
        let mut source = Marked { heap: self, home, class: to.into() };
        let (base, key) = (self.layout().base as *mut u8, self.layout().key);
        // SAFETY: base, records, table and source are this heap's; the locks of the cache and of the table are held.
        let left = unsafe {
            let records = &self.layout().records;
            slabs.free_old(object, base, records, &mut morphs, &mut source, |o| mark_free(key, o))
        };
        if let Left::Ordinary(range) = left.map_err(|_| freed)? {
            self.set_marks(range, to, true);
        }
        Ok(())
    }

    /// Gives objects back that came to the slabs of a class after theirs had gone to another one.
    ///
    /// # Safety
    /// The caller gives the objects up.
    pub(crate) unsafe fn give_moved(&self, mut moved: Chain) {
        while let Some(object) = moved.pop() {
            let class = match self.page_of(object as usize) {
                Some(page) => self.old_class(object, page),
                None => None,
            };
            // SAFETY: by the contract.
            let given = class.map(|class| unsafe { self.give_old(class, object) });
            if !matches!(given, Some(Ok(()))) {
                report::misuse("free", object, Misuse::Unallocated);
            }
        }
    }

    /// The class of an object of a class that its slab had before.
    fn old_class(&self, object: *mut u8, page: PageId) -> Option<usize> {
        match self.look(&self.morphs.lock(), object, page)? {
            (_, Place::Old { class, offset: 0 }) => Some(class.into()),
            _ => None,
        }
    }
}
