//! The heap: its state, its locks, and where things lie in it.
//!
//! **State.** Shards: each has a slab cache for each size class, under a lock on cache lines of its own, and batches on their
//! way between threads. A thread refills from one shard, its home, so that threads on different processors neither wait for
//! each other nor share lines of objects; a program with one thread has one shard. An object returns to the shard that its
//! slab's record names. The page heap has one lock, the table of huge objects another.
//!
//! **Threads.** Lock order: class → morphs → pages; `huge` is a leaf. Whoever holds a class's lock only tries another class's.
//!
//! **Unsafe.** Shares what is written once, by `install`, before any other thread knows of the heap.

use crate::gate::Gate;
use crate::hooks::{Damage, Hooks};
use crate::huge::HugeTable;
use crate::misuse::Misuse;
use crate::page_heap::{Frames, PageHeap};
use crate::page_map::PageMap;
use crate::record::PageRecord;
use crate::search::Search;
use crate::shard::{SHARDS, Shard, fresh};
use crate::thread_cache::HeapView;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use craton_base::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use craton_base::{Clock, HugePages, PAGE_SHIFT, PageId, PageRange, Pages, Platform, SpanError, Table};
use craton_os::{Guard, Mutex, Rank};
use craton_pages::{HugeBacking, LargeCache, SpanCache, Tracker};
use craton_slab::{Morphs, SlabCache, SlabStats};

/// What is set once, before the heap is used, on cache lines that no thread writes afterwards.
#[repr(align(128))]
pub struct Layout {
    /// Address of page 0.
    pub base: usize,
    /// Which class, or what else, each page belongs to.
    pub map: PageMap,
    /// A record for each page.
    pub records: Table<PageRecord>,
    metadata_at_start: usize,
    metadata_per_hugepage: usize,
    /// What marks free objects.
    pub key: usize,
    /// Shards in use besides the first. Never falls. (The static heap is all zeros, so that it takes no room in the file.)
    pub(crate) more_shards: AtomicUsize,
}

/// Metadata that a heap is made over.
pub struct Parts {
    /// Address of page 0, a multiple of 2 MiB.
    pub base: usize,
    /// The page map.
    pub map: PageMap,
    /// A record for each page.
    pub records: Table<PageRecord>,
    /// A tracker for each hugepage.
    pub trackers: Table<Tracker>,
    /// How many hugepages the floor can grant.
    pub capacity: HugePages,
    /// Bytes of metadata that there are from the start.
    pub metadata_at_start: usize,
    /// Bytes of metadata that become usable with each hugepage.
    pub metadata_per_hugepage: usize,
    /// Who says where short spans go, if not the page heap itself.
    pub frames: Option<Frames>,
    /// What marks free objects: odd, and nothing that a program would write by chance.
    pub key: usize,
}

/// A heap over a floor.
pub struct Heap<F: Platform, C: Clock, H: Hooks> {
    /// Pages granted; 0 until the heap is installed. Never falls.
    pub(crate) granted_pages: AtomicUsize,
    /// Pages of hugepages with memory that no span has, when the page heap was last used.
    pub(crate) free_pages: AtomicU32,
    pub(crate) layout: UnsafeCell<Layout>,
    pub(crate) shards: [Shard; SHARDS],
    pub(crate) pages: Mutex<PageHeap<F, C>>,
    /// Spans that slabs returned, in front of the page heap.
    pub(crate) spans: SpanCache,
    /// Spans of large objects that were freed, likewise.
    pub(crate) large: LargeCache,
    /// Pages in spans, those in the caches in front too.
    pub(crate) in_use_pages: AtomicU32,
    pub(crate) huge: Mutex<HugeTable>,
    /// Bytes of huge objects that are out.
    pub(crate) huge_bytes: AtomicU64,
    /// The limits.
    pub gate: Gate,
    /// Slabs that hold objects of two classes.
    pub(crate) morphs: Mutex<Morphs>,
    /// Where to look for slabs that could become such.
    pub(crate) search: Search,
    /// The hugepage that is being collapsed, plus 1; changed under the page heap's lock.
    pub(crate) collapsing: AtomicU32,
    /// How often threads were asked to flush their caches; see [`crate::thread_cache`].
    pub flush_requests: AtomicU32,
    pub(crate) system: F::System,
    pub(crate) clock: C,
    hooks: PhantomData<fn() -> H>,
}

// SAFETY: `layout` is written once, by `install`, before any other thread knows of the heap; the rest is under locks, atomic, or
// never written.
unsafe impl<F: Platform<System: Sync> + Send, C: Clock + Send + Sync, H: Hooks> Sync for Heap<F, C, H> {}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Gives the heap its floor and metadata.
    ///
    /// # Safety
    /// Called once, before the heap is used otherwise, with no other thread in it. `parts` describe `floor`'s region: entries of
    /// the page map, the records and the trackers become usable, zero, with the pages that the floor grants.
    pub unsafe fn install(&self, floor: F, parts: Parts) {
        let Parts { base, map, records, trackers, capacity, metadata_at_start, metadata_per_hugepage, frames, key } =
            parts;
        // SAFETY: no other thread is in the heap yet, by the contract.
        unsafe {
            *self.layout.get() = Layout {
                base,
                map,
                records,
                metadata_at_start,
                metadata_per_hugepage,
                key,
                more_shards: AtomicUsize::new(0),
            };
        }
        let mut pages = self.pages.lock();
        pages.install(floor, trackers, capacity, HugeBacking::AUTO);
        if let Some(frames) = frames {
            pages.set_frames(frames);
        }
    }

    /// A heap without memory, over an empty floor. The page heap and the huge objects each own a clock.
    pub const fn new(floor: F, system: F::System, clock: C, huge_clock: C) -> Self {
        Self {
            granted_pages: AtomicUsize::new(0),
            free_pages: AtomicU32::new(0),
            layout: UnsafeCell::new(Layout {
                base: 0,
                map: PageMap::EMPTY,
                records: Table::EMPTY,
                metadata_at_start: 0,
                metadata_per_hugepage: 0,
                key: 0,
                more_shards: AtomicUsize::new(0),
            }),
            shards: [const { Shard::EMPTY }; SHARDS],
            pages: Mutex::ranked(Rank::Pages, PageHeap::empty(floor, clock)),
            spans: SpanCache::EMPTY,
            large: LargeCache::EMPTY,
            in_use_pages: AtomicU32::new(0),
            huge: Mutex::ranked(Rank::Huge, HugeTable::EMPTY),
            huge_bytes: AtomicU64::new(0),
            gate: Gate::open(),
            morphs: Mutex::ranked(Rank::Morphs, Morphs::EMPTY),
            search: Search::NEW,
            collapsing: AtomicU32::new(0),
            flush_requests: AtomicU32::new(0),
            system,
            clock: huge_clock,
            hooks: PhantomData,
        }
    }

    /// The record of a granted page.
    pub fn record(&self, page: PageId) -> &PageRecord {
        &self.layout().records[page.0 as usize]
    }

    /// Bytes of metadata made usable, beside a page heap of so many hugepages.
    pub(crate) fn metadata(&self, granted: HugePages) -> u64 {
        let layout = self.layout();
        (layout.metadata_at_start + granted.0 as usize * layout.metadata_per_hugepage) as u64
    }

    /// What never changes.
    pub fn layout(&self) -> &Layout {
        // SAFETY: not written any more once the heap is used.
        unsafe { &*self.layout.get() }
    }

    /// The page heap, for a question or a setting: its usage is not published.
    pub fn pages(&self) -> Guard<'_, PageHeap<F, C>> {
        self.pages.lock()
    }

    /// Shards in use.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards[..=self.layout().more_shards.load(Ordering::Relaxed)]
    }

    /// How many shards are in use.
    pub fn homes(&self) -> usize {
        self.shards().len()
    }

    /// Lets threads have different homes, as many as there are processors for them; to be said before the second thread takes
    /// anything, and while no fork is on its way.
    pub fn use_shards(&self, processors: usize) {
        self.layout().more_shards.fetch_max(processors.clamp(1, SHARDS) - 1, Ordering::Relaxed);
    }

    /// The home of the `n`-th thread or processor.
    pub fn home(&self, n: usize) -> usize {
        n % self.shards().len()
    }

    /// A class's slabs in a shard, locked.
    pub fn slabs(&self, home: usize, class: usize) -> Guard<'_, SlabCache> {
        let mut slabs = self.shards[home].class(class).lock();
        // The static heap is all zeros, so that classes which a program does not use take no memory.
        if slabs.is_unset() {
            *slabs = fresh(class);
        }
        slabs
    }

    /// A class's slabs in a shard, locked, if nobody else has the lock.
    pub fn try_slabs(&self, home: usize, class: usize) -> Option<Guard<'_, SlabCache>> {
        self.shards[home].class(class).try_lock()
    }

    /// What a cache must know.
    pub fn view(&self) -> HeapView {
        let Layout { base, map, key, .. } = *self.layout();
        // A thread frees only what it was given, and that came to it after the page was granted: relaxed will do.
        HeapView { base, pages: self.granted_pages.load(Ordering::Relaxed), map, key }
    }

    /// The address of a page.
    pub fn address(&self, page: PageId) -> *mut u8 {
        (self.layout().base + page.offset().0) as *mut u8
    }

    /// The page that holds an address, if it was granted.
    pub fn page_of(&self, address: usize) -> Option<PageId> {
        let page = address.wrapping_sub(self.layout().base) >> PAGE_SHIFT;
        (page < self.view().pages).then_some(PageId(page as u32))
    }

    /// The mark of a granted page.
    pub fn mark(&self, page: PageId) -> u8 {
        // SAFETY: `PageId`s here come from `page_of`.
        unsafe { self.layout().map.get(page.0 as usize) }
    }

    /// The start of the object that covers a granted page of a span with several pages, by the page map.
    pub fn span_around(&self, page: PageId) -> Option<(PageRange, u8)> {
        // SAFETY: as in `mark`.
        let (first, mark) = unsafe { self.layout().map.marked_before(page)? };
        let span = PageRange::new(first, self.layout().records[first.0 as usize].pages());
        span.contains(page).then_some((span, mark))
    }

    /// How many objects of the slab that begins at a page have ever been handed out. Read without the lock: whoever asks about an object
    /// of his got it after it was counted.
    pub fn cut_objects(&self, slab: PageId) -> usize {
        self.layout().records[slab.0 as usize].as_ref().cut_objects().into()
    }

    /// Pages in spans, as of the last change.
    pub fn in_use(&self) -> Pages {
        Pages(self.in_use_pages.load(Ordering::Relaxed))
    }

    /// Ends the process where the page heap does not know a span that our records name: they are no longer what we wrote.
    pub(crate) fn expect_given(&self, span: PageRange, given: Result<(), SpanError>) {
        if given.is_err() {
            H::corrupt(Damage::Object { object: self.address(span.first), misuse: Misuse::Unallocated });
        }
    }

    /// Marks the first page of a span in the page map, and the others too if `all`.
    pub fn set_marks(&self, range: PageRange, mark: u8, all: bool) {
        // SAFETY: the span belongs to the caller, and spans lie in granted pages.
        unsafe { self.layout().map.set(range, mark, all) };
    }

    /// Reads what threads may reach without an order between them, as a model does before its threads begin.
    #[cfg(loom)]
    pub fn touch(&self) {
        let _ = (self.spans.pages(), self.gate.is_outside(0), self.view());
        let _ = (self.flush_requests.load(Ordering::Relaxed), self.huge_bytes.load(Ordering::Relaxed));
        let _ = self.collapsing.load(Ordering::Relaxed);
        drop(self.lock_pages());
        drop((self.morphs.lock(), self.huge.lock()));
    }

    /// How many slabs each shard has.
    #[cfg(test)]
    pub fn slabs_in_shards(&self) -> std::vec::Vec<u32> {
        let slabs = |home| (1..=crate::size_class::CLASSES).map(|class| self.slabs(home, class).stats().slabs).sum();
        (0..self.shards().len()).map(slabs).collect()
    }

    /// Counts of one class, over all shards.
    pub fn class_stats(&self, class: usize) -> SlabStats {
        (0..self.shards().len()).map(|home| self.slabs(home, class).stats()).fold(SlabStats::default(), SlabStats::plus)
    }
}
