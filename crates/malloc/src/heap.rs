//! The heap behind the caches: slabs, page heap, huge objects, and their locks.
//!
//! **State.** A slab cache for each size class, each under a lock on cache lines of its own; the page heap under one lock;
//! the table of huge objects under one.
//!
//! **Threads.** Lock order: class → pages; `huge` is taken alone. A fork takes them all, in this order.
//!
//! **Unsafe.** Hands slabs the address of the region, and writes the page map.

use crate::background;
use crate::cpu_cache::thread::{HeapView, mark};
use crate::huge::HugeTable;
use crate::page_map::PageMap;
use crate::report;
use crate::route::Misuse;
use crate::segment::{self, SEGMENT};
use crate::size_class::{self, CLASSES, LARGE};
use crate::trace;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use craton_base::{
    Clock, CollapseError, Density, Floor, HugePageId, HugePages, PAGE_SHIFT, PAGE_SIZE, PageId, PageRange, Pages, Span,
    SpanError, SpanSource, Table,
};
use craton_os::{Guard, Mutex, process};
use craton_pages::{Breaking, HugeBacking, LargeCache, PageHeap, SpanCache, Tick, Tracker};
use craton_slab::{Chain, SlabCache, SlabRecord};

/// A class's slabs, on cache lines of their own.
#[repr(align(128))]
struct Class(Mutex<SlabCache>);

/// What is set once, before the heap is used.
struct Layout {
    base: usize,
    map: PageMap,
    records: Table<SlabRecord>,
    metadata_per_hugepage: usize,
    key: usize,
}

/// Metadata that a heap is made over.
pub struct Parts {
    /// Address of page 0, a multiple of 2 MiB.
    pub base: usize,
    /// The page map.
    pub map: PageMap,
    /// A record for each page.
    pub records: Table<SlabRecord>,
    /// A tracker for each hugepage.
    pub trackers: Table<Tracker>,
    /// How many hugepages the floor can grant.
    pub capacity: HugePages,
    /// Bytes of metadata that become usable with each hugepage.
    pub metadata_per_hugepage: usize,
    /// What marks free objects: odd, and nothing that a program would write by chance.
    pub key: usize,
}

/// A heap over a floor.
pub struct Heap<F: Floor, C: Clock> {
    /// Pages granted; 0 until the heap is installed. Never falls.
    granted_pages: AtomicUsize,
    layout: UnsafeCell<Layout>,
    classes: [Class; CLASSES],
    pub(crate) pages: Mutex<PageHeap<F, C>>,
    /// Spans that slabs gave back, in front of the page heap.
    spans: SpanCache,
    /// Spans of large objects that were freed, likewise.
    large: LargeCache,
    /// Pages in spans, those in the caches in front too.
    in_use_pages: AtomicU32,
    pub(crate) huge: Mutex<HugeTable>,
}

// SAFETY: `layout` is written once, by `install`, before any other thread knows of the heap; the rest is under locks or atomic.
unsafe impl<F: Floor + Send, C: Clock + Send> Sync for Heap<F, C> {}

impl<F: Floor, C: Clock> Heap<F, C> {
    /// A heap without memory, over an empty floor.
    pub const fn new(floor: F, clock: C) -> Self {
        Self {
            granted_pages: AtomicUsize::new(0),
            layout: UnsafeCell::new(Layout {
                base: 0,
                map: PageMap::EMPTY,
                records: Table::EMPTY,
                metadata_per_hugepage: 0,
                key: 0,
            }),
            classes: [const { Class(Mutex::new(SlabCache::UNSET)) }; CLASSES],
            pages: Mutex::new(PageHeap::empty(floor, clock)),
            spans: SpanCache::EMPTY,
            large: LargeCache::EMPTY,
            in_use_pages: AtomicU32::new(0),
            huge: Mutex::new(HugeTable::EMPTY),
        }
    }

    /// Gives the heap its floor and metadata.
    ///
    /// # Safety
    /// Called once, before the heap is used otherwise, with no other thread in it. `parts` describe `floor`'s region: entries of
    /// the page map, the records and the trackers become usable, zero, with the pages that the floor grants.
    pub unsafe fn install(&self, floor: F, parts: Parts) {
        let Parts { base, map, records, trackers, capacity, metadata_per_hugepage, key } = parts;
        // SAFETY: nobody else is in the heap yet.
        unsafe { *self.layout.get() = Layout { base, map, records, metadata_per_hugepage, key } };
        self.pages.lock().install(floor, trackers, capacity, HugeBacking::AUTO);
    }

    fn layout(&self) -> &Layout {
        // SAFETY: not written any more once the heap is used.
        unsafe { &*self.layout.get() }
    }

    /// A class's slabs, locked.
    fn slabs(&self, class: usize) -> Guard<'_, SlabCache> {
        let mut slabs = self.classes[class - 1].0.lock();
        // The static heap is all zeros, so that classes which a program does not use take no memory.
        if slabs.is_unset() {
            *slabs = SlabCache::new(size_class::geometry(class));
        }
        slabs
    }

    /// What a cache must know.
    pub fn view(&self) -> HeapView {
        let Layout { base, map, key, .. } = *self.layout();
        // A thread frees only what it was given, and that came to it after the page was granted: relaxed will do.
        HeapView { base, pages: self.granted_pages.load(Ordering::Relaxed), map, key }
    }

    /// The address of a page.
    pub(crate) fn address(&self, page: PageId) -> *mut u8 {
        (self.layout().base + page.offset().0) as *mut u8
    }

    /// The page that holds an address, if it was granted.
    pub(crate) fn page_of(&self, address: usize) -> Option<PageId> {
        let page = address.wrapping_sub(self.layout().base) >> PAGE_SHIFT;
        (page < self.view().pages).then_some(PageId(page as u32))
    }

    /// The mark of a granted page.
    pub(crate) fn mark(&self, page: PageId) -> u8 {
        // SAFETY: `PageId`s here come from `page_of`.
        unsafe { self.layout().map.get(page.0 as usize) }
    }

    /// The start of the object that covers a granted page of a span with several pages, by the page map.
    pub(crate) fn span_around(&self, page: PageId) -> Option<(PageRange, u8)> {
        // SAFETY: as in `mark`.
        let (first, mark) = unsafe { self.layout().map.marked_before(page)? };
        let span = PageRange::new(first, self.layout().records[first.0 as usize].pages());
        span.contains(page).then_some((span, mark))
    }

    /// Takes up to `want` objects of a class from its slabs; an empty chain when there is no memory.
    pub(crate) fn take(&self, class: usize, want: u32) -> Chain {
        let mut source = Marked { heap: self, class };
        let Layout { base, records, key, .. } = self.layout();
        // SAFETY: the base, the records and the source are those of this heap; the class's lock is held.
        let chain =
            unsafe { self.slabs(class).alloc(want, *base as *mut u8, records, &mut source, |o| mark_free(*key, o)) };
        segment::add(&SEGMENT.refills, 1);
        segment::add(&SEGMENT.objects_out, chain.len().into());
        chain
    }

    /// How many objects of the slab that begins at a page have ever been handed out. Read without the lock: whoever asks about an object
    /// of his got it after it was counted.
    pub(crate) fn cut_objects(&self, slab: PageId) -> usize {
        self.layout().records[slab.0 as usize].cut_objects().into()
    }

    /// Gives objects of a class back to their slabs. Ends the process if one of them never was an object.
    ///
    /// # Safety
    /// The objects are of this class and heap, and the caller gives them up.
    pub(crate) unsafe fn give(&self, class: usize, chain: Chain) {
        if chain.is_empty() {
            let (_, _) = chain.into_raw();
            return;
        }
        let mut source = Marked { heap: self, class };
        let Layout { base, records, .. } = self.layout();
        // SAFETY: as in `take`, and by the contract.
        let given = unsafe { self.slabs(class).free(chain, *base as *mut u8, records, &mut source) };
        if let Err(object) = given {
            // The cache in front could not see it. What it did since then is no longer what the program thinks.
            report::misuse("free", object, Misuse::Unallocated);
        }
    }

    /// Takes a span for a large object; `Span::zeroed` says whether it reads as zeros.
    pub(crate) fn take_large(&self, pages: Pages, align: Pages) -> Result<Span, SpanError> {
        if let Some(range) = self.take_large_kept(pages, align) {
            return Ok(Span { range, zeroed: false });
        }
        let span = self.take_span(pages, align, Density::Sparse)?;
        self.begin_large(span.range);
        Ok(span)
    }

    /// Takes a span for a large object that another one left a moment ago, with whatever is in it; takes no lock.
    #[inline]
    pub(crate) fn take_large_kept(&self, pages: Pages, align: Pages) -> Option<PageRange> {
        let range = self.large.take(process::cpu(), pages, align)?;
        self.begin_large(range);
        Some(range)
    }

    fn begin_large(&self, span: PageRange) {
        self.layout().records[span.first.0 as usize].set_pages(span.len);
        self.set_marks(span, LARGE, false);
        segment::add(&SEGMENT.large_allocs, 1);
    }

    /// Takes a span from the page heap, if need be with what is kept in front of it.
    fn take_span(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let span = self.with_pages(|p| trace::alloc(p, pages, align, density));
        if span == Err(SpanError::NoMemory) && (self.pages_in_front() > Pages(0) || self.drop_kept() > 0) {
            return self.with_pages(|p| {
                self.drain(p);
                trace::alloc(p, pages, align, density)
            });
        }
        span
    }

    /// Gives the spans in front of the page heap back to it.
    fn drain(&self, pages: &mut PageHeap<F, C>) {
        self.spans.drain(|span, density| {
            let given = trace::free(pages, span, density);
            debug_assert_eq!(given, Ok(()), "a cached span is out");
        });
        self.large.drain(|span| {
            let given = trace::free(pages, span, Density::Sparse);
            debug_assert_eq!(given, Ok(()), "a cached span is out");
        });
    }

    /// Pages that the caches in front of the page heap hold.
    fn pages_in_front(&self) -> Pages {
        Pages(self.spans.pages().0 + self.large.pages().0)
    }

    /// Pages of freed large objects that may be kept: half a MiB and a sixteenth of what is in use.
    fn most_large_kept(&self) -> Pages {
        Pages(64 + self.in_use().0 / 16)
    }

    /// Length of the large object that begins at a page marked so.
    pub(crate) fn large_pages(&self, first: PageId) -> Pages {
        self.layout().records[first.0 as usize].pages()
    }

    /// The first page of the large object that begins at an address, if one does.
    #[inline]
    pub(crate) fn large_at(&self, address: usize) -> Option<PageId> {
        let page = self.page_of(address)?;
        (self.mark(page) == LARGE && address.is_multiple_of(PAGE_SIZE)).then_some(page)
    }

    /// Gives a large object's span back; says whether that took the page heap. Leaves `errno` alone.
    pub(crate) fn give_large(&self, first: PageId) -> bool {
        let record = &self.layout().records[first.0 as usize];
        let span = PageRange::new(first, record.pages());
        record.set_pages(Pages(0));
        self.set_marks(span, 0, false);
        let given = self.large.put(process::cpu(), span, self.most_large_kept());
        given.map(|span| self.give_span(span)).is_some()
    }

    #[cold]
    fn give_span(&self, span: PageRange) {
        let saved = process::errno();
        let given = self.with_pages(|p| trace::free(p, span, Density::Sparse));
        self.expect_given(span, given);
        process::set_errno(saved);
    }

    /// How much of a large object can be moved elsewhere.
    pub(crate) fn movable(&self, span: PageRange) -> HugePages {
        self.pages.lock().movable(span)
    }

    /// Gives a large object's span back whose whole hugepages were moved elsewhere.
    pub(crate) fn give_moved(&self, first: PageId) {
        let record = &self.layout().records[first.0 as usize];
        let span = PageRange::new(first, record.pages());
        record.set_pages(Pages(0));
        self.set_marks(span, 0, false);
        let given = self.with_pages(|p| trace::free_moved(p, span));
        self.expect_given(span, given);
    }

    /// Pages in spans, as of the last change.
    pub(crate) fn in_use(&self) -> Pages {
        Pages(self.in_use_pages.load(Ordering::Relaxed))
    }

    /// Ends the process where the page heap does not know a span that our records name: they are no longer what we wrote.
    fn expect_given(&self, span: PageRange, given: Result<(), SpanError>) {
        if given.is_err() {
            report::misuse("free", self.address(span.first), Misuse::Unallocated);
        }
    }

    /// Makes a large object longer or shorter where it stands.
    pub(crate) fn resize_large(&self, first: PageId, pages: Pages) -> Result<(), SpanError> {
        let record = &self.layout().records[first.0 as usize];
        self.with_pages(|p| trace::resize(p, PageRange::new(first, record.pages()), pages))?;
        record.set_pages(pages);
        Ok(())
    }

    /// How much memory goes back by itself, in bytes a second.
    pub(crate) fn set_release_rate(&self, bytes_per_s: u64) {
        self.pages.lock().set_release_rate(bytes_per_s);
    }

    /// What the page heap does by itself, collapses left out; also says how many pages are in use. Lets others in between its steps.
    pub(crate) fn tick(&self) -> (Tick, Pages) {
        self.with_pages(|p| self.drain(p));
        let mut all = Tick::default();
        loop {
            let (step, in_use) = self.with_pages(|p| (p.tick_step(), p.in_use()));
            all.released += step.released;
            if !step.more {
                return (all, in_use);
            }
        }
    }

    /// Whether it is time to collapse hugepages; to be asked once a round.
    pub(crate) fn collapse_is_due(&self) -> bool {
        self.pages.lock().collapse_is_due()
    }

    /// The next hugepage to collapse; its memory stays until [`Heap::end_collapse`].
    pub(crate) fn begin_collapse(&self) -> Option<HugePageId> {
        let mut pages = self.pages.lock();
        let id = pages.begin_collapse();
        background::COLLAPSING.store(id.map_or(0, |id| id.0 + 1), Ordering::Relaxed);
        id
    }

    /// What came of a collapse; says whether another may be tried in this round.
    pub(crate) fn end_collapse(&self, id: HugePageId, result: Result<(), CollapseError>, took_ns: u64) -> bool {
        self.with_pages(|p| {
            background::COLLAPSING.store(0, Ordering::Relaxed);
            p.end_collapse(id, result, took_ns)
        })
    }

    /// Uses the page heap, and publishes what changed.
    fn with_pages<R>(&self, f: impl FnOnce(&mut PageHeap<F, C>) -> R) -> R {
        let mut pages = self.pages.lock();
        let result = f(&mut pages);
        self.publish(&mut pages);
        result
    }

    fn publish(&self, pages: &mut PageHeap<F, C>) {
        let (in_use, backed) = (pages.in_use(), pages.backed());
        background::note(backed, in_use, || pages.releasable(Breaking::Always));
        self.in_use_pages.store(in_use.0, Ordering::Relaxed);
        self.granted_pages.store(pages.granted().pages().0 as usize, Ordering::Relaxed);
        let (in_use, backed) = (in_use.bytes(), backed.bytes());
        let metadata = pages.granted().0 as usize * self.layout().metadata_per_hugepage;
        SEGMENT.metadata_bytes.store(metadata as u64, Ordering::Relaxed);
        SEGMENT.heap_in_use_bytes.store(in_use.0 as u64, Ordering::Relaxed);
        SEGMENT.heap_backed_bytes.store(backed.0 as u64, Ordering::Relaxed);
    }

    fn set_marks(&self, range: PageRange, mark: u8, all: bool) {
        // SAFETY: the span belongs to the caller, and spans lie in granted pages.
        unsafe { self.layout().map.set(range, mark, all) };
    }

    /// Gives the memory of all free pages back to the system; returns the bytes that lost theirs.
    pub(crate) fn release(&self) -> u64 {
        let kept = self.drop_kept() as u64;
        let pages = self.with_pages(|p| {
            self.drain(p);
            p.release_all(Breaking::Always)
        });
        kept + (pages << PAGE_SHIFT)
    }

    /// Bytes of large objects.
    pub(crate) fn large_bytes(&self) -> u64 {
        let slabs: u64 = (1..=CLASSES)
            .map(|c| u64::from(self.class_stats(c).slabs) * size_class::geometry(c).pages.bytes().0 as u64)
            .sum();
        let cached = self.pages_in_front().bytes().0 as u64;
        (self.pages.lock().in_use().bytes().0 as u64).saturating_sub(slabs + cached)
    }

    /// Bytes of objects that slabs have given out.
    pub(crate) fn bytes_out(&self) -> u64 {
        (1..=CLASSES).map(|c| self.slabs(c).stats().objects_out * size_class::size_of_class(c) as u64).sum()
    }

    /// Counts of one class.
    pub(crate) fn class_stats(&self, class: usize) -> craton_slab::SlabStats {
        self.slabs(class).stats()
    }

    /// Takes every lock, for a fork.
    pub(crate) fn hold_for_fork(&self) {
        self.classes.iter().for_each(|c| c.0.hold_for_fork());
        self.pages.hold_for_fork();
        self.huge.hold_for_fork();
    }

    /// Gives every lock up after a fork.
    ///
    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe {
            self.huge.release_after_fork();
            self.pages.release_after_fork();
            self.classes.iter().for_each(|c| c.0.release_after_fork());
        }
    }
}

/// Marks an object as free, so that freeing it is seen as an error.
fn mark_free(key: usize, object: *mut u8) {
    // SAFETY: the slab has just cut the object, and hands it over; it has at least 16 bytes.
    unsafe { object.cast::<usize>().add(1).write(mark(key, object)) };
}

/// The page heap as a class's slabs see it: spans are marked in the page map while the class has them.
struct Marked<'a, F: Floor, C: Clock> {
    heap: &'a Heap<F, C>,
    class: usize,
}

impl<F: Floor, C: Clock> Marked<'_, F, C> {
    fn mark(&self, range: PageRange, mark: u8) {
        // Of a single object only the first page may be freed.
        self.heap.set_marks(range, mark, !size_class::geometry(self.class).is_single());
    }
}

impl<F: Floor, C: Clock> SpanSource for Marked<'_, F, C> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let span = match self.heap.spans.take(process::cpu(), pages, align, density) {
            Some(range) => Span { range, zeroed: false },
            None => self.heap.take_span(pages, align, density)?,
        };
        self.mark(span.range, self.class as u8);
        Ok(span)
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.mark(span, 0);
        if self.heap.spans.put(process::cpu(), span, density) {
            return Ok(());
        }
        let given = self.heap.with_pages(|p| trace::free(p, span, density));
        self.heap.expect_given(span, given);
        given
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}
