//! The counters of the statistics. The order of rows is the layout of the structs in `craton.h`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Now,
    /// Since the start of the process, or of its object.
    Since,
    /// Now.
    Bytes,
    Code,
    Text,
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Since => "since the start",
            Self::Bytes => "bytes, now",
            Self::Code => "code",
            Self::Text => "text",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Counter {
    pub name: &'static str,
    pub unit: Unit,
    /// Markdown.
    pub text: &'static str,
}

/// Calls `MACRO!` with rows `name: Unit, "text";` of `process`, `class`, `heap`, `cache` or `kit`.
#[macro_export]
macro_rules! counters {
    (process, $($then:tt)*) => { $crate::with_rows! { [$($then)*]
        pid: Now, "process id; the numbers of a forked child begin with its parent's";
        refills: Since, "batches of objects that caches received, from slabs or from threads that had too many";
        objects_out: Since, "objects in those batches; a cache serves the same object again and again, so that a program \
            allocates more";
        large_allocs: Since, "objects above 128 KiB that came from the page heap";
        huge_allocs: Since, "objects with their own mapping: 32 MiB and more, or grown by moving pages";
        heap_in_use_bytes: Bytes, "in slabs and large objects: what the program has, what caches keep, and what is free \
            in slabs";
        heap_backed_bytes: Bytes, "of the heap that may have memory: what is in use, touched or not, and free memory that was not released. \
            The difference to `heap_in_use_bytes` is free memory; `release_rate`, `soft_limit` and `craton_release()` \
            release it";
        metadata_bytes: Bytes, "address space made usable for Craton's tables; memory follows on first touch";
        threads_seen: Since, "threads that have had their own cache";
        huge_bytes: Bytes, "in huge objects; not part of the heap's bytes";
        memory_limit_bytes: Bytes, "the control group's limit, or that of the option `memory_limit`; 0 for none";
        soft_limit_bytes: Bytes, "the soft limit in force; 0 for none";
        hard_limit_bytes: Bytes, "the hard limit in force; 0 for none";
        soft_limit_passed: Since, "times a request found more in use than the soft limit";
        hard_limit_refused: Since, "requests that the hard limit refused, each with `ENOMEM`";
        pressure_releases: Since, "times memory was released because the system was short of it";
        usable_cpus: Now, "processors that the process may use, by affinity and quota, as last read; 0 before the heap has \
            grown beyond 16 MiB";
        cache_mode: Code, "how threads without their own cache are served";
        processor_caches: Now, "processors that have a cache";
        memory_limit_source: Code, "where `memory_limit_bytes` comes from";
        granted_bytes: Bytes, "address space of the heap";
        filler_dense_used_bytes: Bytes, "spans of many small objects, on the filler's dense hugepages";
        filler_dense_free_bytes: Bytes, "free memory on the filler's dense hugepages";
        filler_sparse_used_bytes: Bytes, "other spans shorter than a hugepage, and long spans' tails, on the filler's other \
            hugepages";
        filler_sparse_free_bytes: Bytes, "free memory on the filler's other hugepages";
        filler_slack_bytes: Bytes, "donated slack: free pages behind long spans' tails, also those without memory";
        huge_cache_bytes: Bytes, "free memory of whole hugepages, which the hugepage cache keeps for the next spans";
        huge_cache_limit_bytes: Bytes, "that the hugepage cache may keep now, by recent demand; more goes back at once";
        region_used_bytes: Bytes, "long spans in regions, packed across hugepages";
        region_free_bytes: Bytes, "free memory of regions";
        large_span_bytes: Bytes, "long spans' whole hugepages. With the used bytes of filler and regions this is \
            `heap_in_use_bytes`; with the free ones and `huge_cache_bytes` it is `heap_backed_bytes`";
        whole_hugepages: Now, "hugepages that the system backs whole, as far as Craton knows: it asks for them, and looks later \
            whether they came";
        coverage_percent: Now, "hugepage coverage: the memory on `whole_hugepages` as a part of `heap_backed_bytes`";
        broken_hugepages: Now, "hugepages of which some free pages were released one by one (subrelease)";
        guarded_hugepages: Now, "broken hugepages that are advised against hugepages, so that the system does not refill \
            them";
        small_hugepages: Now, "hugepages with spans that are left on small pages until the program is seen to use such spans densely";
        released_bytes: Since, "bytes of the heap that went back to the system, for any reason";
        released_background_bytes: Since, "of these, by the background work, in a thread or in a request";
        released_limit_bytes: Since, "of these, for the soft limit, or since the system was short of memory";
        collapses: Since, "hugepages that were on small pages and became huge";
        collapses_no_memory: Since, "collapses that failed since the system had no free hugepage";
        collapses_busy: Since, "collapses that failed since the system was using a page";
        collapses_failed: Since, "collapses that failed for another reason";
        complete_slab_bytes: Bytes, "slabs without an object, kept in front of the page heap, to which they are in use";
        front_span_bytes: Bytes, "short spans that slabs freed, kept in front of the page heap likewise";
        front_large_bytes: Bytes, "freed objects above 128 KiB, kept in front of the page heap likewise";
        kept_mapping_bytes: Bytes, "freed huge objects' mappings, kept for the next huge object; not part of the heap's \
            bytes";
        resident_bytes: Bytes, "of the heap that have memory, by the system's page tables; 0 where it does not say, as \
            before Linux 6.7. Read for text, XML and JSON only, since that takes up to 5 ms for a gigabyte on small pages";
        resident_huge_bytes: Bytes, "of `resident_bytes`, those on hugepages: the coverage as the system sees it";
    } };
    (class, $($then:tt)*) => { $crate::with_rows! { [$($then)*]
        object_bytes: Bytes, "of an object";
        slabs: Now, "slabs, of whatever fullness";
        objects_out: Now, "objects that are out: with the program, or in the caches in front";
        total: Now, "objects that its slabs have places for";
        memory_bytes: Bytes, "of its slabs";
        partial: Now, "slabs with room of which some object is out";
        complete: Now, "slabs of which no object is out, kept since the class missed such slabs";
        full: Now, "slabs without room";
        failures: Since, "requests that got nothing";
        refills: Since, "batches that caches received; what threads take from their caches is not counted, since that \
            would cost each request";
        objects_refilled: Since, "objects in those batches";
        morphed: Since, "slabs taken over from other sizes, with objects that live on them";
        settled: Since, "those of them that became ordinary slabs of this size";
    } };
    (heap, $($then:tt)*) => { $crate::with_rows! { [$($then)*]
        id: Now, "number among living heaps";
        objects: Now, "objects that are out";
        object_bytes: Bytes, "of those, as `malloc_usable_size` counts";
        used_bytes: Bytes, "of its slabs and of objects above 256 KiB: what the limit bounds";
        held_bytes: Bytes, "taken from the process's heap";
        limit_bytes: Bytes, "the limit; 0 for none";
        refused: Since, "requests that got nothing";
    } };
    (cache, $($then:tt)*) => { $crate::with_rows! { [$($then)*]
        id: Now, "number among living caches";
        object_bytes: Bytes, "of an object, as asked for";
        buffer_bytes: Bytes, "from one object to the next";
        in_use: Now, "objects that the program has";
        total: Now, "objects that the slabs have room for";
        memory_bytes: Bytes, "of slabs and magazines: what the limit of bytes bounds";
        allocations: Since, "objects handed out";
        magazine_hits: Since, "of these, those that lay in the processor's array";
        failures: Since, "requests that got nothing, also because the constructor failed";
        constructor_failures: Since, "constructors that failed";
        constructed: Since, "objects constructed";
        destroyed: Since, "objects destroyed";
        slabs: Now, "slabs";
        partial: Now, "slabs of which some objects are out, in arrays or in magazines";
        complete: Now, "slabs of which no object is";
        full: Now, "slabs of which all objects are";
        in_arrays: Now, "free objects in processors' arrays";
        in_depot: Now, "free objects in magazines";
        rounds: Now, "objects that an array and the depot exchange at a time, at most; an array holds twice as many. Grows \
            where calls wait for each other, and where arrays are often empty or full";
        contended: Since, "calls that had to wait for the cache's lock";
        reserved: Now, "objects that `craton_cache_prefill` has promised";
        limit_objects: Now, "objects that there may be, free ones included; 0 for no limit";
        limit_bytes: Bytes, "that slabs and magazines may take; 0 for no limit";
    } };
    (kit, $($then:tt)*) => { $crate::with_rows! { [$($then)*]
        buffers: Now, "objects that are out as buffers of the debugging kit, sampled ones included";
        buffer_bytes: Bytes, "asked for in them";
        waiting: Now, "freed buffers whose memory waits before it is reused";
        samples: Since, "objects that `guard_sample` has put on their own pages";
        transactions: Since, "allocations and frees that `debug=audit` has logged";
        transactions_kept: Now, "those of them that the log still has";
        targets_unmet: Now, "targets of the option that name an object cache, of which none was made since it was set";
    } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! with_rows {
    ([@struct $(#[$attribute:meta])* $vis:vis struct $Name:ident { $($rest:tt)* }]
        $($name:ident: $unit:ident, $text:literal;)*) => {
        $(#[$attribute])*
        $vis struct $Name { $(#[doc = $text] pub $name: u64,)* $($rest)* }

        impl $Name {
            /// In the layout's order.
            pub fn numbers(&self) -> [(&'static str, u64); [$(stringify!($name)),*].len()] {
                [$((stringify!($name), self.$name)),*]
            }
        }
    };
    ([$then:ident] $($rows:tt)*) => { $then! { $($rows)* } };
}

/// `count_struct! { TABLE, struct NAME { MORE } }`: a public `u64` for each row, then `MORE`.
#[macro_export]
macro_rules! count_struct {
    ($table:ident, $($item:tt)*) => { $crate::counters! { $table, @struct $($item)* } };
}

macro_rules! rows {
    ($($name:ident: $unit:ident, $text:literal;)*) => {
        &[$(Counter { name: stringify!($name), unit: Unit::$unit, text: $text }),*]
    };
}

/// `struct craton_segment` behind its magic and version.
pub const PROCESS: &[Counter] = counters!(process, rows);
pub const CLASS: &[Counter] = counters!(class, rows);
/// Of a heap of `craton_heap_create`.
pub const HEAP: &[Counter] = counters!(heap, rows);
pub const CACHE: &[Counter] = counters!(cache, rows);
pub const KIT: &[Counter] = counters!(kit, rows);

pub const TEXTS: &[Counter] = &[
    Counter { name: "exe", unit: Unit::Text, text: "the process's name as the kernel has it, at most 15 bytes" },
    Counter { name: "cache_mode_name", unit: Unit::Text, text: "`cache_mode` in a word" },
    Counter { name: "memory_limit_source_name", unit: Unit::Text, text: "`memory_limit_source` in a word" },
    Counter { name: "page_heap", unit: Unit::Text, text: "the option `page_heap`: `temeraire` or `frames`" },
];

/// Of a counter, with their meaning.
pub type Codes = [(&'static str, &'static str)];

pub const CACHE_MODES: &Codes = &[
    ("none", "every thread has its own, since there are no restartable sequences"),
    ("processors", "by the cache of the processor that the thread is on"),
    (
        "compact-numbers",
        "by the cache of the kernel's compact number of the thread (`mm_cid`), so that a program on few of many processors needs few caches",
    ),
];

pub const LIMIT_SOURCES: &Codes = &[
    (
        "not-read",
        "not read yet: the main thread reads it when the heap has grown beyond 16 MiB, the library's thread a second later",
    ),
    ("nowhere", "there are no control groups for memory"),
    ("cgroup-v1", "control groups of version 1; `memory_limit_bytes` is 0 if they set none"),
    ("cgroup-v2", "control groups of version 2; `memory_limit_bytes` is 0 if they set none"),
    ("option", "the option `memory_limit`"),
];

pub fn word(codes: &Codes, code: u64) -> &'static str {
    codes.get(code as usize).map_or("unknown", |(word, _)| *word)
}
