//! The heap's state, its locks, and the addresses of its parts.
//!
//! A thread refills from one shard, its home, so that threads share neither locks nor objects'
//! lines.
//!
//! **Threads.** The holder of a class's lock only tries another's; `huge` is a leaf.
//!
//! **Unsafe.** Shares what `install` writes once, before any other thread knows the heap.

use crate::gate::Gate;
use crate::hooks::{Damage, Hooks};
use crate::huge::HugeTable;
use crate::length::SpanLength;
use crate::mark::{ClassMarks, Key, Seal};
use crate::misuse::Misuse;
use crate::page_heap::{Frames, PageHeap};
use crate::page_map::PageMap;
use crate::record::PageRecord;
use crate::search::Search;
use crate::shard::{SHARDS, Shard, fresh};
use crate::size_class;
use crate::thread_cache::HeapView;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
// Not loom's: a reader got an object of a slab that morphed after it was set.
use core::sync::atomic::AtomicPtr as SetOnce;
use craton_base::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use craton_base::{Clock, HugePages, PAGE_SHIFT, PageId, PageRange, Pages, Platform, SpanError, Table};
use craton_os::{Guard, Mutex, Rank};
use craton_pages::{HugeBacking, LargeCache, SpanCache, Tracker};
use craton_slab::{Morph, Morphs, SlabCache, SlabStats};

/// On cache lines that no thread writes later.
#[repr(align(128))]
pub struct Layout {
    pub base: usize,
    pub map: PageMap,
    pub records: Table<PageRecord>,
    pub lengths: Table<SpanLength>,
    metadata_at_start: usize,
    metadata_per_hugepage: usize,
    /// Never falls. From 0: the static heap is all zeros.
    pub(crate) more_shards: AtomicUsize,
    pub key: Key,
    /// Freed objects wait, are cleared and shuffled.
    pub hardened: bool,
}

pub struct Parts {
    /// A multiple of 2 MiB.
    pub base: usize,
    pub map: PageMap,
    pub records: Table<PageRecord>,
    pub lengths: Table<SpanLength>,
    pub trackers: Table<Tracker>,
    pub capacity: HugePages,
    /// Bytes.
    pub metadata_at_start: usize,
    /// Bytes.
    pub metadata_per_hugepage: usize,
    /// Places short spans, if not the page heap.
    pub frames: Option<Frames>,
    pub key: Key,
    pub hardened: bool,
}

pub struct Heap<F: Platform, C: Clock, H: Hooks> {
    /// 0 until `install`. Never falls.
    pub(crate) granted_pages: AtomicUsize,
    /// In backed hugepages.
    pub(crate) free_pages: AtomicU32,
    pub(crate) layout: UnsafeCell<Layout>,
    pub(crate) shards: [Shard; SHARDS],
    pub(crate) pages: Mutex<PageHeap<F, C>>,
    /// Freed slabs' spans.
    pub(crate) spans: SpanCache,
    /// Freed large objects' spans.
    pub(crate) large: LargeCache,
    /// Includes the caches in front.
    pub(crate) in_use_pages: AtomicU32,
    pub(crate) huge: Mutex<HugeTable>,
    pub(crate) huge_bytes: AtomicU64,
    pub gate: Gate,
    pub(crate) morphs: Mutex<Morphs>,
    /// The morphs' entries, for readers without the lock.
    pub(crate) starts: SetOnce<Morph>,
    pub(crate) search: Search,
    /// The hugepage's number plus 1; changed under the page heap's lock.
    pub(crate) collapsing: AtomicU32,
    /// The period's number; its guard pages in the low byte.
    pub(crate) guards: AtomicU64,
    pub flush_requests: AtomicU32,
    pub(crate) system: F::System,
    pub(crate) clock: C,
    hooks: PhantomData<fn() -> H>,
}

// SAFETY: `install` writes `layout` before other threads come; the rest is locked or atomic.
unsafe impl<F: Platform<System: Sync> + Send, C: Clock + Send + Sync, H: Hooks> Sync for Heap<F, C, H> {}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// # Safety
    /// Called once, before any other use and thread. `parts` describe `floor`'s region: tables are
    /// granted, zeroed, with its pages.
    pub unsafe fn install(&self, floor: F, parts: Parts) {
        let Parts { base, map, records, lengths, trackers, capacity, frames, key, hardened, .. } = parts;
        let Parts { metadata_at_start, metadata_per_hugepage, .. } = parts;
        // SAFETY: by the contract no other thread is in the heap.
        unsafe {
            *self.layout.get() = Layout {
                base,
                map,
                records,
                lengths,
                metadata_at_start,
                metadata_per_hugepage,
                key,
                hardened,
                more_shards: AtomicUsize::new(0),
            };
        }
        let mut pages = self.pages.lock();
        pages.install(floor, trackers, capacity, HugeBacking::AUTO);
        if let Some(frames) = frames {
            pages.set_frames(frames);
        }
    }

    pub const fn new(floor: F, system: F::System, clock: C, huge_clock: C) -> Self {
        Self {
            granted_pages: AtomicUsize::new(0),
            free_pages: AtomicU32::new(0),
            layout: UnsafeCell::new(Layout {
                base: 0,
                map: PageMap::EMPTY,
                records: Table::EMPTY,
                lengths: Table::EMPTY,
                metadata_at_start: 0,
                metadata_per_hugepage: 0,
                key: Key::NONE,
                hardened: false,
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
            starts: SetOnce::new(core::ptr::null_mut()),
            search: Search::NEW,
            collapsing: AtomicU32::new(0),
            guards: AtomicU64::new(0),
            flush_requests: AtomicU32::new(0),
            system,
            clock: huge_clock,
            hooks: PhantomData,
        }
    }

    pub fn record(&self, page: PageId) -> &PageRecord {
        &self.layout().records[page.0 as usize]
    }

    pub fn length(&self, page: PageId) -> &SpanLength {
        &self.layout().lengths[page.0 as usize]
    }

    pub(crate) fn metadata(&self, granted: HugePages) -> u64 {
        let layout = self.layout();
        (layout.metadata_at_start + granted.0 as usize * layout.metadata_per_hugepage) as u64
    }

    pub fn layout(&self) -> &Layout {
        // SAFETY: not written after `install`.
        unsafe { &*self.layout.get() }
    }

    /// Does not publish the usage.
    pub fn pages(&self) -> Guard<'_, PageHeap<F, C>> {
        self.pages.lock()
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards[..=self.layout().more_shards.load(Ordering::Relaxed)]
    }

    pub fn homes(&self) -> usize {
        self.shards().len()
    }

    /// Call before a second thread allocates, outside any fork.
    pub fn use_shards(&self, processors: usize) {
        self.layout().more_shards.fetch_max(processors.clamp(1, SHARDS) - 1, Ordering::Relaxed);
    }

    pub fn home(&self, n: usize) -> usize {
        n % self.shards().len()
    }

    pub fn slabs(&self, home: usize, class: usize) -> Guard<'_, SlabCache> {
        let mut slabs = self.shards[home].class(class).lock();
        // Unused classes of the static heap take no memory.
        if slabs.is_unset() {
            *slabs = fresh(class);
        }
        slabs
    }

    pub fn try_slabs(&self, home: usize, class: usize) -> Option<Guard<'_, SlabCache>> {
        self.shards[home].class(class).try_lock()
    }

    #[inline(always)]
    pub fn is_hardened(&self) -> bool {
        self.layout().hardened
    }

    pub fn view(&self) -> HeapView<'_> {
        let Layout { base, map, ref key, hardened, .. } = *self.layout();
        // Relaxed: a thread got each object that it frees after the page was granted.
        HeapView { base, pages: self.granted_pages.load(Ordering::Relaxed), map, key, hardened }
    }

    #[inline(always)]
    pub fn seal(&self, class: usize) -> Seal {
        self.layout().key.seal(class)
    }

    #[inline]
    pub(crate) fn marks(&self, class: usize) -> ClassMarks {
        let bytes = self.granted_pages.load(Ordering::Relaxed) << PAGE_SHIFT;
        let Layout { base, map, ref key, hardened, .. } = *self.layout();
        let clears = if hardened { size_class::size_of_class(class) } else { 0 };
        ClassMarks { seal: key.seal(class), on_slab: key.on_slab, class: class as u8, map, base, bytes, clears }
    }

    pub fn address(&self, page: PageId) -> *mut u8 {
        (self.layout().base + page.offset().0) as *mut u8
    }

    /// `None`: not granted.
    pub fn page_of(&self, address: usize) -> Option<PageId> {
        let page = address.wrapping_sub(self.layout().base) >> PAGE_SHIFT;
        (page < self.view().pages).then_some(PageId(page as u32))
    }

    pub fn mark(&self, page: PageId) -> u8 {
        // SAFETY: `page_of` makes these `PageId`s.
        unsafe { self.layout().map.get(page.0 as usize) }
    }

    pub fn span_around(&self, page: PageId) -> Option<(PageRange, u8)> {
        // SAFETY: as in `mark`.
        let (first, mark) = unsafe { self.layout().map.marked_before(page)? };
        let span = PageRange::new(first, self.length(first).pages());
        span.contains(page).then_some((span, mark))
    }

    /// Needs no lock: the count precedes each hand-over.
    pub fn cut_objects(&self, slab: PageId) -> usize {
        self.layout().records[slab.0 as usize].as_ref().cut_objects().into()
    }

    /// As last published.
    pub fn in_use(&self) -> Pages {
        Pages(self.in_use_pages.load(Ordering::Relaxed))
    }

    /// Reports a span that the page heap does not know.
    pub(crate) fn expect_given(&self, span: PageRange, given: Result<(), SpanError>) {
        if given.is_err() {
            H::corrupt(Damage::Object { object: self.address(span.first), misuse: Misuse::Unallocated });
        }
    }

    /// Only the first page unless `all`; no place is cut.
    pub fn set_marks(&self, range: PageRange, mark: u8, all: bool) {
        // SAFETY: the caller owns the span, in granted pages.
        unsafe { self.layout().map.set(range, mark, all) };
    }

    pub(crate) fn set_marks_of_cut(&self, slab: PageRange, class: u8) {
        self.set_marks(slab, class, true);
        let places = self.record(slab.first).as_ref().cut_objects();
        // SAFETY: as in `set_marks`.
        unsafe { self.layout().map.set_cut(slab, class, places) };
    }

    /// Loom must see these before a model's threads begin.
    #[cfg(loom)]
    pub fn touch(&self) {
        let _ = (self.spans.pages(), self.gate.is_outside(0), self.view());
        let _ = (self.flush_requests.load(Ordering::Relaxed), self.huge_bytes.load(Ordering::Relaxed));
        let _ = self.collapsing.load(Ordering::Relaxed);
        drop(self.lock_pages());
        drop((self.morphs.lock(), self.huge.lock()));
    }

    #[cfg(test)]
    pub fn slabs_in_shards(&self) -> std::vec::Vec<u32> {
        let slabs = |home| (1..=crate::size_class::CLASSES).map(|class| self.slabs(home, class).stats().slabs).sum();
        (0..self.shards().len()).map(slabs).collect()
    }

    pub fn class_stats(&self, class: usize) -> SlabStats {
        (0..self.shards().len()).map(|home| self.slabs(home, class).stats()).fold(SlabStats::default(), SlabStats::plus)
    }
}
