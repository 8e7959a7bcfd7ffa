//! The heap behind the caches: slabs, page heap, huge objects, and their locks.
//!
//! **State.** Shards: in each a slab cache for each size class, each under a lock on cache lines of its own, and batches on their
//! way between threads. A thread takes from one shard, its home, so that threads on different processors neither wait for each
//! other nor share the lines of their objects; a program with one thread has one shard. An object goes back to the
//! shard that its slab's record names. The page heap under one lock; the table of huge objects under one.
//!
//! **Threads.** Lock order: a heap of its own → object cache → class → morphs → pages; `huge` comes last, and under it none is taken. A fork takes them
//! all, in this order. Who holds a class's lock only tries another's.
//!
//! **Unsafe.** Hands slabs the address of the region, and writes the page map.

mod owned;

use crate::background;
use crate::caches::Caches;
use crate::cpu_cache::thread::{HeapView, mark};
use crate::heaps::Heaps;
use crate::hooks::Hooks;
use crate::huge::HugeTable;
use crate::limits::Gate;
use crate::morph::Search;
use crate::page_heap::{Frames, PageHeap};
use crate::page_map::PageMap;
use crate::report;
use crate::route::Misuse;
use crate::segment::SEGMENT;
use crate::size_class::{self, CLASSES};
use crate::trace;
use crate::transfer::Transfer;
use complete::Complete;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use counts::Counts;
use craton_base::atomic::{AtomicU32, AtomicUsize, Ordering};
use craton_base::{
    Clock, CollapseError, Floor, HugePageId, HugePages, PAGE_SHIFT, PageId, PageRange, Pages, SpanError, SpanSource,
    Table,
};
use craton_os::{Guard, Mutex};
use craton_pages::{Breaking, HugeBacking, LargeCache, SpanCache, Tick, Tracker};
use craton_slab::{Chain, Freed, Morphs, SlabCache, SlabRecord, SlabStats};

mod complete;
mod counts;
mod large;
mod limited;
mod shape;
mod source;
mod spans;

pub(crate) use source::{Marked, NoSpans};

/// A class's slabs, on cache lines of their own.
#[repr(align(128))]
struct Class(Mutex<SlabCache>);

// The heap's faults at a program's start are those of the classes it uses.
const _: () = assert!(cfg!(loom) || size_of::<Class>() == 128);

/// Shards at the most: more processors share them.
pub(crate) const SHARDS: usize = if cfg!(loom) { 2 } else { 16 };

/// Free memory of the page heap from which on a shard takes another slab rather than another shard's objects: 1 MiB.
const MUCH_FREE: Pages = Pages(128);

/// What threads of one home take from.
struct Shard {
    classes: [Class; CLASSES],
    transfer: Transfer,
    complete: Complete,
    counts: Counts,
}

/// What is set once, before the heap is used, on cache lines that nobody writes afterwards.
#[repr(align(128))]
pub(crate) struct Layout {
    pub(crate) base: usize,
    map: PageMap,
    pub(crate) records: Table<SlabRecord>,
    metadata_at_start: usize,
    metadata_per_hugepage: usize,
    pub(crate) key: usize,
    /// Shards in use besides the first. Never falls. (The static heap is all zeros, so that it takes no room in the file.)
    more_shards: AtomicUsize,
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
pub struct Heap<F: Floor, C: Clock, H: Hooks> {
    /// Pages granted; 0 until the heap is installed. Never falls.
    granted_pages: AtomicUsize,
    /// Pages of hugepages with memory that no span has, when the page heap was last used.
    free_pages: AtomicU32,
    layout: UnsafeCell<Layout>,
    shards: [Shard; SHARDS],
    pub(crate) pages: Mutex<PageHeap<F, C>>,
    /// Spans that slabs gave back, in front of the page heap.
    spans: SpanCache,
    /// Spans of large objects that were freed, likewise.
    large: LargeCache,
    /// Pages in spans, those in the caches in front too.
    in_use_pages: AtomicU32,
    pub(crate) huge: Mutex<HugeTable>,
    pub(crate) gate: Gate,
    /// Slabs that hold objects of two classes.
    pub(crate) morphs: Mutex<Morphs>,
    /// Where slabs are looked for that could become such.
    pub(crate) search: Search,
    /// Heaps of their own, over the same page heap.
    pub(crate) heaps: Heaps,
    /// Object caches of the program's, likewise.
    pub(crate) caches: Caches,
    /// Calls only: hooks have no data.
    hooks: PhantomData<fn() -> H>,
}

// SAFETY: `layout` is written once, by `install`, before any other thread knows of the heap; the rest is under locks or atomic.
unsafe impl<F: Floor + Send, C: Clock + Send, H: Hooks> Sync for Heap<F, C, H> {}

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// A heap without memory, over an empty floor.
    pub const fn new(floor: F, clock: C) -> Self {
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
            shards: [const {
                Shard {
                    classes: [const { Class(Mutex::new(SlabCache::UNSET)) }; CLASSES],
                    transfer: Transfer::EMPTY,
                    complete: Complete::NONE,
                    counts: Counts::NONE,
                }
            }; SHARDS],
            pages: Mutex::new(PageHeap::empty(floor, clock)),
            spans: SpanCache::EMPTY,
            large: LargeCache::EMPTY,
            in_use_pages: AtomicU32::new(0),
            huge: Mutex::new(HugeTable::EMPTY),
            gate: Gate::open(),
            morphs: Mutex::new(Morphs::EMPTY),
            search: Search::NEW,
            heaps: Heaps::NONE,
            caches: Caches::NONE,
            hooks: PhantomData,
        }
    }

    /// Gives the heap its floor and metadata.
    ///
    /// # Safety
    /// Called once, before the heap is used otherwise, with no other thread in it. `parts` describe `floor`'s region: entries of
    /// the page map, the records and the trackers become usable, zero, with the pages that the floor grants.
    pub unsafe fn install(&self, floor: F, parts: Parts) {
        let Parts { base, map, records, trackers, capacity, metadata_at_start, metadata_per_hugepage, frames, key } =
            parts;
        // SAFETY: nobody else is in the heap yet.
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

    pub(crate) fn layout(&self) -> &Layout {
        // SAFETY: not written any more once the heap is used.
        unsafe { &*self.layout.get() }
    }

    /// Shards in use.
    fn shards(&self) -> &[Shard] {
        &self.shards[..=self.layout().more_shards.load(Ordering::Relaxed)]
    }

    /// How many shards are in use.
    pub(crate) fn homes(&self) -> usize {
        self.shards().len()
    }

    /// Lets threads have different homes, as many as there are processors for them; to be said before the second thread takes
    /// anything, and while no fork is on its way.
    pub(crate) fn use_shards(&self, processors: usize) {
        self.layout().more_shards.fetch_max(processors.clamp(1, SHARDS) - 1, Ordering::Relaxed);
    }

    /// The home of the `n`-th thread or processor.
    pub(crate) fn home(&self, n: usize) -> usize {
        n % self.shards().len()
    }

    /// A class's slabs in a shard, locked.
    pub(crate) fn slabs(&self, home: usize, class: usize) -> Guard<'_, SlabCache> {
        let mut slabs = self.shards[home].classes[class - 1].0.lock();
        // The static heap is all zeros, so that classes which a program does not use take no memory.
        if slabs.is_unset() {
            *slabs = complete::fresh(class);
        }
        slabs
    }

    /// A class's slabs in a shard, locked, if nobody else has the lock.
    pub(crate) fn try_slabs(&self, home: usize, class: usize) -> Option<Guard<'_, SlabCache>> {
        self.shards[home].classes[class - 1].0.try_lock()
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

    /// Takes objects of a class for a cache that has none: a batch that another one had too many of, or up to `want` from the home's
    /// slabs; an empty chain when there is no memory.
    pub(crate) fn take(&self, home: usize, class: usize, want: u32) -> Chain {
        let shards = self.shards();
        if shards.len() > 1 && want == size_class::batch(class) && Transfer::keeps(class) {
            // One's own first: their lines may still be in this processor's cache.
            let (before, from) = shards.split_at(home);
            if let Some(batch) = from.iter().chain(before).find_map(|s| s.transfer.take(class)) {
                self.count_refill(home, batch.len());
                return batch;
            }
        }
        let mut chain = Chain::EMPTY;
        if shards.len() > 1 {
            // Before the heap grows for one shard, what is free in another serves.
            let grows = self.would_grow() && self.complete_pages() == Pages(0);
            let others = (0..shards.len()).filter(|other| *other != home && grows);
            for shard in core::iter::once(home).chain(others) {
                chain = self.take_from_shard(shard, class, want, &mut NoSpans);
                if !chain.is_empty() {
                    break;
                }
            }
        }
        if chain.is_empty() {
            chain = self.take_from_shard(home, class, want, &mut Marked { heap: self, home, class });
        }
        self.count_refill(home, chain.len());
        chain
    }

    /// Whether another slab would be memory that the heap does not have yet: it has little that is free.
    fn would_grow(&self) -> bool {
        self.free_pages.load(Ordering::Relaxed) < MUCH_FREE.0
    }

    fn take_from_shard(&self, shard: usize, class: usize, want: u32, source: &mut impl SpanSource) -> Chain {
        let mut slabs = self.slabs(shard, class);
        self.counted(shard, class, &mut slabs, |slabs| self.take_from(slabs, want, source))
    }

    /// How many objects of the slab that begins at a page have ever been handed out. Read without the lock: whoever asks about an object
    /// of his got it after it was counted.
    pub(crate) fn cut_objects(&self, slab: PageId) -> usize {
        self.layout().records[slab.0 as usize].cut_objects().into()
    }

    /// Whether a batch of a class that a cache has too many of may be of use to other threads.
    pub(crate) fn passes_on(&self, home: usize, class: usize) -> bool {
        self.shards().len() > 1 && self.shards[home].transfer.has_room(class)
    }

    /// Keeps objects for whoever needs a batch next, if they are one and there is room; else gives them back to their slabs.
    ///
    /// # Safety
    /// As [`Heap::give`].
    pub(crate) unsafe fn pass_on_or_give(&self, home: usize, class: usize, chain: Chain) {
        let left = if self.shards().len() > 1 { self.shards[home].transfer.put(class, chain) } else { Err(chain) };
        if let Err(chain) = left {
            // SAFETY: by the contract.
            unsafe { self.give(class, chain) };
        }
    }

    /// Gives one object, marked as free, back to its slab.
    ///
    /// # Safety
    /// As [`Heap::give`].
    pub(crate) unsafe fn give_marked(&self, class: usize, object: *mut u8) {
        let mut chain = Chain::EMPTY;
        // SAFETY: by the contract.
        unsafe {
            chain.push(object);
            self.give(class, chain);
        }
    }

    /// Gives objects of a class back to their slabs. Ends the process if one of them never was an object.
    ///
    /// # Safety
    /// The objects are of this class and heap, and the caller gives them up.
    pub(crate) unsafe fn give(&self, class: usize, chain: Chain) {
        let (first, n) = chain.into_raw();
        // SAFETY: by the contract.
        unsafe { self.give_first(class, first, n) };
    }

    /// Gives the first `n` objects of a list back to their slabs, and returns the rest.
    ///
    /// # Safety
    /// As [`Heap::give`], for the first `n` of the list, which has at least so many.
    pub(crate) unsafe fn give_first(&self, class: usize, first: *mut u8, n: u32) -> *mut u8 {
        // A signal handler that allocates can have left a list shorter than its count, which shows when it is empty.
        if n == 0 || first.is_null() {
            return first;
        }
        let owner_of = |object: *mut u8| match self.shards().len() {
            1 => 0,
            _ => {
                // The links may not be what we wrote.
                let Some(page) = self.page_of(object as usize) else {
                    report::misuse("free", object, Misuse::Unallocated)
                };
                self.layout().records[size_class::geometry(class).slab_of(page).0 as usize].owner()
            }
        };
        // SAFETY: by the contract.
        let (rest, mut strays) = unsafe { self.give_to(owner_of(first), class, first, n) };
        // Each turn serves one owner at least.
        while !strays.is_empty() {
            let (first, n) = strays.into_raw();
            // SAFETY: strays are a list of their own.
            (_, strays) = unsafe { self.give_to(owner_of(first), class, first, n) };
        }
        let _ = strays.into_raw();
        rest
    }

    /// # Safety
    /// As [`Heap::give_first`]; besides the rest of the list, what belongs to other shards than `owner` is left.
    unsafe fn give_to(&self, owner: usize, class: usize, first: *mut u8, n: u32) -> (*mut u8, Chain) {
        let mut source = Marked { heap: self, home: owner, class };
        let Layout { base, records, .. } = self.layout();
        let mut slabs = self.slabs(owner, class);
        let given = self.counted(owner, class, &mut slabs, |slabs| {
            // SAFETY: as in `take`, and by the contract.
            unsafe { slabs.free_first(first, n, owner, *base as *mut u8, records, &mut source) }
        });
        drop(slabs);
        match given {
            Ok(Freed { rest, strays, moved }) => {
                // SAFETY: they are of this class and heap, and given up.
                unsafe { self.give_moved(class, moved) };
                (rest, strays)
            }
            // The cache in front could not see it. What it did since then is no longer what the program thinks.
            Err(object) => report::misuse("free", object, Misuse::Unallocated),
        }
    }

    /// Gives the batches that are between threads back to their slabs.
    fn drain_transfers(&self) {
        let shards = self.shards();
        if shards.len() > 1 {
            for shard in shards {
                // SAFETY: the batches are of this heap's objects, and nobody else has them.
                shard.transfer.drain(|class, batch| unsafe { self.give(class, batch) });
            }
        }
    }

    /// Pages in spans, as of the last change.
    pub(crate) fn in_use(&self) -> Pages {
        Pages(self.in_use_pages.load(Ordering::Relaxed))
    }

    /// Ends the process where the page heap does not know a span that our records name: they are no longer what we wrote.
    pub(super) fn expect_given(&self, span: PageRange, given: Result<(), SpanError>) {
        if given.is_err() {
            report::misuse("free", self.address(span.first), Misuse::Unallocated);
        }
    }

    /// How much memory goes back by itself, in bytes a second.
    pub(crate) fn set_release_rate(&self, bytes_per_s: u64) {
        self.pages.lock().set_release_rate(bytes_per_s);
    }

    /// What the page heap does by itself, collapses left out; also says how many pages are in use. Lets others in between its steps.
    pub(crate) fn tick(&self) -> (Tick, Pages) {
        self.tell_refills();
        self.drain_transfers();
        self.give_idle();
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
        let mut pages = self.pages.lock();
        pages.collapse_is_due() && !self.is_near_limit(&pages)
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
        self.search.note_in_use(in_use);
        self.free_pages.store(backed.pages().0.saturating_sub(in_use.0), Ordering::Relaxed);
        background::note(backed, in_use, || pages.releasable(Breaking::Always));
        self.in_use_pages.store(in_use.0, Ordering::Relaxed);
        let granted = pages.granted().pages().0 as usize;
        // Caches look at it with every refill.
        if self.granted_pages.load(Ordering::Relaxed) != granted {
            self.granted_pages.store(granted, Ordering::Relaxed);
        }
        let (metadata, backed) = (self.metadata(pages), pages.backed_pages().bytes().0 as u64);
        SEGMENT.metadata_bytes.store(metadata, Ordering::Relaxed);
        SEGMENT.heap_in_use_bytes.store(in_use.bytes().0 as u64, Ordering::Relaxed);
        SEGMENT.heap_backed_bytes.store(backed, Ordering::Relaxed);
        self.note_use(backed + metadata + self.gate.huge());
    }

    pub(crate) fn set_marks(&self, range: PageRange, mark: u8, all: bool) {
        // SAFETY: the span belongs to the caller, and spans lie in granted pages.
        unsafe { self.layout().map.set(range, mark, all) };
    }

    /// Gives the memory of all free pages back to the system; returns the bytes that lost theirs.
    pub(crate) fn release(&self) -> u64 {
        // What comes back to the page heap now may let whole hugepages go at once.
        let before = self.pages.lock().backed_pages();
        self.drain_transfers();
        self.heaps.trim(self);
        self.give_complete();
        let kept = self.drop_kept() as u64;
        let after = self.with_pages(|p| {
            self.drain(p);
            p.release_all(Breaking::Always);
            p.backed_pages()
        });
        kept + (u64::from(before.0.saturating_sub(after.0)) << PAGE_SHIFT)
    }

    /// Bytes of large objects.
    pub(crate) fn large_bytes(&self) -> u64 {
        let slabs: u64 = (1..=CLASSES)
            .map(|c| u64::from(self.class_stats(c).slabs) * size_class::geometry(c).pages.bytes().0 as u64)
            .sum();
        let cached = (self.pages_in_front().bytes().0 + self.heaps.spare().bytes().0) as u64;
        (self.pages.lock().in_use().bytes().0 as u64).saturating_sub(slabs + cached)
    }

    /// Bytes of objects that slabs have given out.
    pub(crate) fn bytes_out(&self) -> u64 {
        let out: u64 =
            (1..=CLASSES).map(|c| self.class_stats(c).objects_out * size_class::size_of_class(c) as u64).sum();
        let old = self.morphs.lock().old_bytes();
        (out + old).saturating_sub(self.shards().iter().map(|s| s.transfer.bytes() as u64).sum())
    }

    /// Counts of one class, over all shards.
    pub(crate) fn class_stats(&self, class: usize) -> SlabStats {
        (0..self.shards().len()).map(|home| self.slabs(home, class).stats()).fold(SlabStats::default(), SlabStats::plus)
    }

    /// Looks at what threads may reach without an order between them, as a model does before its threads begin.
    #[cfg(loom)]
    pub(crate) fn touch(&self) {
        let _ = (self.spans.pages(), self.gate.is_outside(0), self.view());
        self.with_pages(|_| ());
        drop((self.morphs.lock(), self.huge.lock()));
    }

    /// How many slabs each shard has.
    #[cfg(test)]
    pub(crate) fn slabs_in_shards(&self) -> std::vec::Vec<u32> {
        let slabs = |home| (1..=CLASSES).map(|class| self.slabs(home, class).stats().slabs).sum();
        (0..self.shards().len()).map(slabs).collect()
    }

    /// Takes every lock, for a fork.
    pub(crate) fn hold_for_fork(&self, nested: bool) {
        self.heaps.hold_for_fork(nested);
        self.caches.hold_for_fork(nested);
        self.shards().iter().flat_map(|s| &s.classes).for_each(|c| c.0.hold_for_fork(nested));
        self.morphs.hold_for_fork(nested);
        self.pages.hold_for_fork(nested);
        self.huge.hold_for_fork(nested);
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
            self.morphs.release_after_fork();
            self.shards().iter().flat_map(|s| &s.classes).for_each(|c| c.0.release_after_fork());
            self.caches.release_after_fork();
            self.heaps.release_after_fork();
        }
    }
}

/// Marks an object as free, so that freeing it is seen as an error.
pub(crate) fn mark_free(key: usize, object: *mut u8) {
    // SAFETY: the slab has just cut the object, and hands it over; it has at least 16 bytes.
    unsafe { object.cast::<usize>().add(1).write(mark(key, object)) };
}
