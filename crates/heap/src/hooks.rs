//! The heap's reports to its process.
//!
//! **What.** Limits, trace, debugging kit, statistics and reports see the core through these calls
//! alone. Each method has a default, so a test's heap needs no process. [`Hooks`] has no data: the
//! compiler resolves each call, and an empty one costs nothing.
//!
//! **Threads.** Any thread calls them. [`Hooks::span`] and [`Hooks::usage`] run under the page
//! heap's lock, [`Hooks::event`] under the lock that its event names. None may allocate from the
//! heap.

use crate::misuse::Misuse;
use craton_base::{Density, HugePages, PageRange, Pages};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanEvent {
    /// Allocated, by the requested alignment and the objects that it will hold.
    Alloc { range: PageRange, align: Pages, density: Density },
    /// Freed, with the caller's density.
    Free { range: PageRange, density: Density },
    /// Resized in place, to these pages.
    Resize { range: PageRange },
}

/// Memory in use, after each use of the page heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Pages in spans.
    pub in_use: Pages,
    /// Hugepages with memory.
    pub backed: HugePages,
    /// Backed bytes, as far as known.
    pub backed_bytes: u64,
    /// Bytes of usable metadata.
    pub metadata_bytes: u64,
}

/// Counts, and requests to the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Caches got chains. The hook returns the number of earlier chains.
    Refills { chains: u32, objects: u64 },
    /// Large objects were allocated. The hook returns the number so far.
    LargeAllocs(u32),
    /// The heap mapped a huge object.
    HugeAlloc,
    /// The live bytes of huge objects changed.
    HugeBytes { more: u64, less: u64 },
    /// A class reused complete slabs [`crate::shard::REUSES`] times without the page heap.
    SlabsReused,
    /// Memory in use passed the watermark: check the limits. Under the page heap's lock.
    LimitPassed,
    /// The heap keeps a freed mapping; the background thread must return it in time.
    MappingKept,
    /// Many dense hugepages are on small pages: collapse them. Under the page heap's lock.
    DenseSmall,
    /// Growth wants hugepages refilled or cleared. Under the page heap's lock.
    Grows,
    /// Per-CPU caches are set up: 0 none, 1 by CPU, 2 by the kernel's compact numbers.
    CpuCacheMode(u64),
    /// Number of per-CPU caches.
    CpuCaches(u64),
}

/// Damage found where no error can be returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// A freed pointer is no object.
    Object { object: *mut u8, misuse: Misuse },
    /// A free list leads to an address without a free object's mark.
    NotFree { class: usize, at: *mut u8 },
    /// A thread cache's list handed out objects twice.
    GivenTwice { class: usize, objects: u32 },
    /// A thread cache's list held fewer objects than its count.
    Lost { class: usize, objects: u32 },
}

/// Of bytes before a sample of the heap profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Countdown {
    /// Below 0 once it has ended.
    pub left: i64,
    /// For which its end stands; 0: it is no sample.
    pub bytes: u64,
}

/// After a countdown.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub next: Countdown,
    /// Bytes for which the sample stands; 0: no sample follows.
    pub bytes: u64,
    /// Which of the next requests is the sample, from 1.
    pub nth: u32,
}

pub trait Hooks: 'static {
    #[inline(always)]
    fn span(_event: SpanEvent) {}

    /// The page heap was used; `releasable` counts the pages that could be returned now.
    #[inline(always)]
    fn usage(_usage: Usage, _releasable: impl FnOnce() -> Pages) {}

    /// Returns the value that the event's text names, or 0.
    #[inline(always)]
    fn event(_event: Event) -> u64 {
        0
    }

    /// How many of `want` objects a cache may fetch at once.
    #[inline(always)]
    fn bound(_class: usize, want: u32) -> u32 {
        want
    }

    /// A thread cache served this many allocations from the same objects; returns whether the next
    /// one should take the slow path.
    fn reused(_class: usize, _allocations: u32) -> bool {
        false
    }

    /// A thread's countdown has ended, in requests of a class. One of the next `among` requests of
    /// the class becomes the sample.
    #[cold]
    fn count_ended(_class: usize, _ended: Countdown, _among: u32) -> Ended {
        Ended { next: Countdown { left: i64::MAX, bytes: 0 }, bytes: 0, nth: 0 }
    }

    /// A thread no longer awaits a class's sample, which stands for these bytes.
    #[cold]
    fn forgone(_class: usize, _bytes: u64) {}

    /// Whether a signal handler was seen to allocate in the midst of a request.
    #[cold]
    fn handlers_allocate() -> bool {
        false
    }

    /// Whether the heap may keep freed mappings, because the background thread will return them.
    #[inline(always)]
    fn keeps_mappings() -> bool {
        false
    }

    /// Reports damage and aborts.
    #[cold]
    fn corrupt(damage: Damage) -> ! {
        panic!("the heap is damaged: {damage:?}")
    }
}

#[derive(Clone, Copy, Debug)]
pub struct NoHooks;

impl Hooks for NoHooks {}
