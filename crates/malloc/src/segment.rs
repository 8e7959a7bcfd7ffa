//! The statistics that a running process shows.
//!
//! **What.** One page of numbers, updated as they change, exported as `craton_segment`: whoever may read the process's
//! memory (its user) finds it by the library's symbol table. The layout is that of `struct craton_segment` in `craton.h`.
//!
//! **Unsafe.** Exports the segment under a name of its own.
//!
//! **Threads.** Each number is exact by itself; two read together may be a moment apart.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// First word of a segment: "\0CRATON1" read as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATON1");
/// Version of the layout.
pub const VERSION: u64 = 1;

/// The numbers. All but the first three count from the process's start.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Segment {
    magic: AtomicU64,
    version: AtomicU64,
    /// The process; a forked child writes its own.
    pub pid: AtomicU64,
    /// Chains of objects handed to caches, from slabs or by threads that had too many.
    pub refills: AtomicU64,
    /// Objects in those chains.
    pub objects_out: AtomicU64,
    /// Large objects allocated from the page heap.
    pub large_allocs: AtomicU64,
    /// Huge objects mapped by themselves.
    pub huge_allocs: AtomicU64,
    /// Bytes of the heap in spans, now.
    pub heap_in_use_bytes: AtomicU64,
    /// Bytes of the heap that have memory, as far as is known, now.
    pub heap_backed_bytes: AtomicU64,
    /// Bytes of metadata made usable (address space; memory follows on first touch).
    pub metadata_bytes: AtomicU64,
    /// Threads that have had a cache.
    pub threads_seen: AtomicU64,
    /// Bytes of huge objects, now; not part of the heap's bytes.
    pub huge_bytes: AtomicU64,
    /// The control group's limit on memory, or what the option `memory_limit` says, now; 0 for none.
    pub memory_limit_bytes: AtomicU64,
    /// The soft limit in force, now; 0 for none.
    pub soft_limit_bytes: AtomicU64,
    /// The hard limit in force, now; 0 for none.
    pub hard_limit_bytes: AtomicU64,
    /// Times a request found more in use than the soft limit.
    pub soft_limit_passed: AtomicU64,
    /// Requests that the hard limit refused.
    pub hard_limit_refused: AtomicU64,
    /// Times memory was given back because the system was short of it.
    pub pressure_releases: AtomicU64,
    /// Processors that the process may use, as last found; 0 before anybody looked.
    pub usable_cpus: AtomicU64,
    /// How threads without a cache of their own are served: 0 there are none, 1 by a cache for each processor, 2 by a cache for each of
    /// the kernel's compact numbers (`mm_cid`).
    pub cache_mode: AtomicU64,
    /// Processors that have a cache, as of the last change.
    pub processor_caches: AtomicU64,
    /// Where the limit on memory is from: 0 nobody has looked yet, 1 nowhere, there are no control groups for memory, 2 and 3 the control
    /// group of version 1 or 2, which may have none, 4 the option.
    pub memory_limit_source: AtomicU64,
}

/// The process's own.
#[unsafe(export_name = "craton_segment")]
pub static SEGMENT: Segment = Segment::new();

/// How many numbers a segment has.
pub const WORDS: usize = 22;

impl Segment {
    /// A segment of a process that has not started.
    pub const fn new() -> Self {
        Self {
            magic: AtomicU64::new(MAGIC),
            version: AtomicU64::new(VERSION),
            pid: AtomicU64::new(0),
            refills: AtomicU64::new(0),
            objects_out: AtomicU64::new(0),
            large_allocs: AtomicU64::new(0),
            huge_allocs: AtomicU64::new(0),
            heap_in_use_bytes: AtomicU64::new(0),
            heap_backed_bytes: AtomicU64::new(0),
            metadata_bytes: AtomicU64::new(0),
            threads_seen: AtomicU64::new(0),
            huge_bytes: AtomicU64::new(0),
            memory_limit_bytes: AtomicU64::new(0),
            soft_limit_bytes: AtomicU64::new(0),
            hard_limit_bytes: AtomicU64::new(0),
            soft_limit_passed: AtomicU64::new(0),
            hard_limit_refused: AtomicU64::new(0),
            pressure_releases: AtomicU64::new(0),
            usable_cpus: AtomicU64::new(0),
            cache_mode: AtomicU64::new(0),
            processor_caches: AtomicU64::new(0),
            memory_limit_source: AtomicU64::new(0),
        }
    }

    /// All numbers, in the order of `struct craton_segment`.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [MAGIC; WORDS];
        words[1] = VERSION;
        for (word, (_, value)) in words[2..].iter_mut().zip(self.numbers()) {
            *word = value;
        }
        words
    }

    /// The numbers with their names, without magic and version.
    pub fn numbers(&self) -> [(&'static str, u64); WORDS - 2] {
        [
            ("pid", self.pid.load(Relaxed)),
            ("refills", self.refills.load(Relaxed)),
            ("objects_out", self.objects_out.load(Relaxed)),
            ("large_allocs", self.large_allocs.load(Relaxed)),
            ("huge_allocs", self.huge_allocs.load(Relaxed)),
            ("heap_in_use_bytes", self.heap_in_use_bytes.load(Relaxed)),
            ("heap_backed_bytes", self.heap_backed_bytes.load(Relaxed)),
            ("metadata_bytes", self.metadata_bytes.load(Relaxed)),
            ("threads_seen", self.threads_seen.load(Relaxed)),
            ("huge_bytes", self.huge_bytes.load(Relaxed)),
            ("memory_limit_bytes", self.memory_limit_bytes.load(Relaxed)),
            ("soft_limit_bytes", self.soft_limit_bytes.load(Relaxed)),
            ("hard_limit_bytes", self.hard_limit_bytes.load(Relaxed)),
            ("soft_limit_passed", self.soft_limit_passed.load(Relaxed)),
            ("hard_limit_refused", self.hard_limit_refused.load(Relaxed)),
            ("pressure_releases", self.pressure_releases.load(Relaxed)),
            ("usable_cpus", self.usable_cpus.load(Relaxed)),
            ("cache_mode", self.cache_mode.load(Relaxed)),
            ("processor_caches", self.processor_caches.load(Relaxed)),
            ("memory_limit_source", self.memory_limit_source.load(Relaxed)),
        ]
    }
}

/// The names of the codes of `cache_mode`.
const CACHE_MODES: [&str; 3] = ["none", "processors", "compact-numbers"];
/// The names of the codes of `memory_limit_source`.
const LIMIT_SOURCES: [&str; 5] = ["not-read", "nowhere", "cgroup-v1", "cgroup-v2", "option"];

impl Segment {
    /// What those numbers mean that are codes, for texts.
    pub fn names(&self) -> [(&'static str, &'static str); 3] {
        let name = |names: &[&'static str], code: &AtomicU64| names.get(code.load(Relaxed) as usize).copied();
        [
            ("cache_mode_name", name(&CACHE_MODES, &self.cache_mode).unwrap_or("unknown")),
            ("memory_limit_source_name", name(&LIMIT_SOURCES, &self.memory_limit_source).unwrap_or("unknown")),
            ("page_heap", crate::page_heap::name()),
        ]
    }
}

impl Default for Segment {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds to a number; returns what it was.
pub(crate) fn add(number: &AtomicU64, n: u64) -> u64 {
    number.fetch_add(n, Relaxed)
}
