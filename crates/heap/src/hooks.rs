//! What the heap reports to the process around it.
//!
//! **What.** Limits, the trace, the debugging kit, statistics and reports look into the core through these calls alone. Every
//! method has a default, so that a heap in a test needs no process. [`Hooks`] is a type without data: the compiler resolves
//! each call, and an empty one costs nothing.
//!
//! **Threads.** Any thread calls them. [`Hooks::span`] and [`Hooks::usage`] run under the page heap's lock; [`Hooks::event`]
//! under whichever lock its event names; no method may allocate from the heap.

use crate::misuse::Misuse;
use craton_base::{Density, HugePages, PageRange, Pages};

/// What happened to a span of the page heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanEvent {
    /// The page heap gave it out.
    Alloc {
        /// Its pages.
        range: PageRange,
        /// The alignment that was asked for.
        align: Pages,
        /// How many objects it will hold.
        density: Density,
    },
    /// It went back.
    Free {
        /// Its pages.
        range: PageRange,
        /// As the caller said.
        density: Density,
    },
    /// It became longer or shorter where it stands.
    Resize {
        /// Its pages from now on.
        range: PageRange,
    },
}

/// How much memory the heap uses, as of a use of the page heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Pages in spans.
    pub in_use: Pages,
    /// Hugepages with memory.
    pub backed: HugePages,
    /// Bytes with memory, as far as is known.
    pub backed_bytes: u64,
    /// Bytes of metadata made usable.
    pub metadata_bytes: u64,
}

/// What is counted, or asked of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Chains of objects left for caches. The hook returns how many did before.
    Refills {
        /// Chains.
        chains: u32,
        /// Objects in them.
        objects: u64,
    },
    /// A large object was allocated.
    LargeAlloc,
    /// A huge object was mapped.
    HugeAlloc,
    /// Bytes of huge objects changed.
    HugeBytes {
        /// Bytes that came.
        more: u64,
        /// Bytes that went.
        less: u64,
    },
    /// A class reused complete slabs [`crate::shard::REUSES`] times, without a use of the page heap.
    SlabsReused,
    /// More memory is in use than a limit watches for: the process should look. Under the page heap's lock.
    LimitPassed,
    /// The heap keeps a freed mapping for a while, and needs somebody to return it when the program sleeps.
    MappingKept,
    /// Per-CPU caches were set up: 0 none, 1 by processor, 2 by the kernel's compact numbers.
    CpuCacheMode(u64),
    /// So many per-CPU caches exist.
    CpuCaches(u64),
    /// A thread cache's list held fewer objects than it counted.
    ObjectsLost {
        /// The size class.
        class: usize,
        /// Objects.
        objects: u32,
    },
}

/// Damage that the heap cannot undo, found where no error can be returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// An object that came back is none.
    Object {
        /// Its address.
        object: *mut u8,
        /// What is wrong with it.
        misuse: Misuse,
    },
    /// A thread cache's list handed objects out twice.
    GivenTwice {
        /// The size class.
        class: usize,
        /// Objects.
        objects: u32,
    },
}

/// What a heap reports.
pub trait Hooks: 'static {
    /// Something happened to a span.
    #[inline(always)]
    fn span(_event: SpanEvent) {}

    /// The page heap was used; `releasable` counts the pages that could go back to the system now.
    #[inline(always)]
    fn usage(_usage: Usage, _releasable: impl FnOnce() -> Pages) {}

    /// Something is to be counted, or done soon. Returns what the event's text says, or 0.
    #[inline(always)]
    fn event(_event: Event) -> u64 {
        0
    }

    /// How many of `want` objects of a class a cache may fetch at once.
    #[inline(always)]
    fn bound(_class: usize, want: u32) -> u32 {
        want
    }

    /// Whether freed mappings may be kept: somebody returns them in time.
    #[inline(always)]
    fn keeps_mappings() -> bool {
        false
    }

    /// Reports damage and ends the process.
    #[cold]
    fn corrupt(damage: Damage) -> ! {
        panic!("the heap is damaged: {damage:?}")
    }
}

/// A heap that nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct NoHooks;

impl Hooks for NoHooks {}
