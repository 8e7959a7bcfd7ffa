//! The experiments of `craton lab` (docs/experiments.md). An allocator's failure is a row with its
//! status; no row at all is an error. A stopped experiment yields its findings so far.

mod ask;
mod courses;
mod insight_cost;
mod insight_count;
mod kv;
mod llfree;
mod llfree_crash;
mod llfree_fig1;
mod llfree_fig10;
mod llfree_fig11;
mod llfree_fig12;
mod llfree_fig13;
mod llfree_fig2;
mod llfree_fig5;
mod llfree_fig6;
mod llfree_fig7;
mod llfree_fig8;
mod llfree_fig9;
mod llfree_kernel;
mod llfree_linux;
mod llfree_refuse;
mod llfree_tab1;
mod micro;
mod nvalloc;
mod nvalloc_fig10;
mod nvalloc_fig11;
mod nvalloc_fig12;
mod nvalloc_fig13;
mod nvalloc_fig14;
mod nvalloc_fig15;
mod nvalloc_fig16;
mod nvalloc_fig17;
mod nvalloc_fig18;
mod nvalloc_fig19;
mod nvalloc_fig1a;
mod nvalloc_fig1b;
mod nvalloc_fig2;
mod nvalloc_fig20;
mod nvalloc_fig21;
mod nvalloc_fig9;
mod pages_pair;
mod pheap_sync;
mod profiles;
mod series;
mod sheet;
mod simulation;
mod size_classes;
mod slab;
mod slab_colour;
mod slab_debug;
mod slab_frag;
mod slab_objects;
mod slab_reap;
mod slab_speed;
mod speed;
mod temeraire_empirical;
mod temeraire_fig10;
mod temeraire_fig11;
mod temeraire_fig12;
mod temeraire_fig13;
mod temeraire_fig9;
mod temeraire_overhead;
mod temeraire_redis;
mod tool;
mod trust;
mod wild;
mod world;

pub use ask::Ask;

pub struct Experiment {
    pub name: &'static str,
    pub about: &'static str,
    pub answers: &'static str,
    pub run: fn(&Ask<'_>) -> Result<Findings, String>,
}

pub struct Findings {
    pub document: String,
    pub text: String,
    /// Name, without an ending, and SVG.
    pub pictures: Vec<(String, String)>,
    pub failed: usize,
}

macro_rules! experiments {
    ($($name:literal $module:ident $answers:literal $about:literal)*) => {
        pub const EXPERIMENTS: &[Experiment] =
            &[$(Experiment { name: $name, about: $about, answers: $answers, run: $module::run }),*];
    };
}

// Name, module, what it answers, what it shows.
experiments! {
    "speed" speed "is it better, than what, and on which load?"
        "all workloads and real programs on all allocators: time and memory, with geometric means"
    "wild" wild "does it hold on programs that we did not write?"
        "sparse, idle, swinging, forking and late programs: time, memory over time, longest request, control groups"
    "trust" trust "may a program trust it: other people's tests, attacks, refused system calls, storms?"
        "suites of other people, attacks, planted bugs, system calls that fail, kill, fork and signal storms"
    "micro" micro "what the fast path costs, and where it ends"
        "one malloc and its free: cold and warm, by size and threads, in ns and in instructions"
    "insight-cost" insight_cost "what do the tools that show a heap cost while no reader is there?"
        "all workloads with statistics in a file, with the heap profile, with a trace, and without: processor time"
    "insight-count" insight_count "the same, where time does not show it"
        "workloads of one thread with statistics in a file, the heap profile, a trace, and without: instructions"
    "temeraire-redis" temeraire_redis "TEMERAIRE §5.1, redis"
        "redis-server, push and read five elements: allocators, and Craton with and without hugepages"
    "temeraire-empirical" temeraire_empirical "TEMERAIRE §6.1; figure 11's question"
        "the page heap alone in simulated memory: overhead and hugepage coverage under five courses of demand"
    "temeraire-fig9" temeraire_fig9 "TEMERAIRE figure 9; the loop of §4.4"
        "a loop that drains a hugepage each turn: calls to the system, time and page faults"
    "temeraire-fig10" temeraire_fig10 "TEMERAIRE figure 10"
        "the hugepage cache under a demand that swings like a saw and then stops"
    "temeraire-fig11" temeraire_fig11 "TEMERAIRE figure 11"
        "memory after half of the demand is gone: longest free range first, fullest first, global best fit"
    "temeraire-fig12" temeraire_fig12 "TEMERAIRE figure 12, §4.5"
        "spans of 1.1 MiB, and of 0.6 to 2.5 MiB: backed by used memory, with and without regions"
    "temeraire-fig13" temeraire_fig13 "TEMERAIRE figure 13"
        "hugepage coverage of the heap under a demand that varies, with and without release"
    "temeraire-overhead" temeraire_overhead "TEMERAIRE §6.1; page-heap overhead"
        "the page heap alone in simulated memory, by profile: overhead and hugepage coverage in steady state"
    "size-classes" size_classes "TEMERAIRE §3: at most an eighth in each class; at most 4 % on a fleet"
        "waste by size classes: the worst of each class, and on each profile, for the library's table and others"
    "pages-pair" pages_pair "what a request to the page heap costs, and whether it grows with the heap"
        "New and Delete of one page in a warm heap of 1 GiB to 1 TiB, in ns; metadata for each byte"
    "llfree-fig1" llfree_fig1 "LLFree figure 1"
        "Linux's own allocator in an emulated guest: bulk gets and puts of orders 0 and 9, by CPUs"
    "llfree-fig2" llfree_fig2 "LLFree figure 2"
        "orders that Linux asks for while it starts, in an emulated guest"
    "llfree-fig5" llfree_fig5 "LLFree figure 5"
        "page frames: ns for each get and put of orders 0 to 10, bulk, random and repeat"
    "llfree-fig6" llfree_fig6 "LLFree figure 6"
        "page frames beside Linux's allocator in one emulated kernel, by order: instructions and time"
    "llfree-fig7" llfree_fig7 "LLFree figure 7"
        "page frames: ns for each get and put of orders 0 and 9, from one thread to all processors"
    "llfree-fig8" llfree_fig8 "LLFree figure 8"
        "page frames beside Linux's allocator in one emulated kernel, by CPUs"
    "llfree-fig9" llfree_fig9 "LLFree figure 9, §5.4"
        "page frames: lists with a lock, without one, and for each processor, against LLFree, by threads"
    "llfree-tab1" llfree_tab1 "LLFree table 1, §5.5"
        "page frames: bytes and cache lines of an allocator's state, by level, computed and counted"
    "llfree-fig10" llfree_fig10 "LLFree figure 10, §5.6"
        "page frames: free huge frames and the cost of compaction over 100 turns of random frees and gets"
    "llfree-fig11" llfree_fig11 "LLFree figure 11"
        "Linux on page frames and on its buddy allocator: memcached under load, huge frames beside it"
    "llfree-fig12" llfree_fig12 "LLFree figure 12"
        "Linux on page frames and on its buddy allocator: the paper's write benchmark, in instructions"
    "llfree-fig13" llfree_fig13 "LLFree figure 13"
        "where that benchmark spends its instructions, in Linux on page frames and on its buddy allocator"
    "llfree-refuse" llfree_refuse "what does a get cost when little or nothing is free?"
        "page frames: refused gets, four processors on one tree, the count of free frames, in ns"
    "llfree-crash" llfree_crash "LLFree §5.7"
        "page frames: processes killed at random on a zone that persists: frames lost, and time to find it again"
    "slab-objects" slab_objects "Bonwick94 §2, §5.1"
        "objects with locks, conditions, lists and buffers: constructed each time, and kept constructed by a cache"
    "slab-speed" slab_speed "Bonwick94 §5.1; at most 4 ns, or no slower than the fastest malloc?"
        "an object taken and given back: caches, slabs, every malloc, and three allocators of the paper's time"
    "slab-frag" slab_frag "Bonwick94 §5.2; is it at most 10 % after all four?"
        "kernel objects: total fragmentation after boot, a spike, find and kenbus, of slabs and three others"
    "slab-colour" slab_colour "Bonwick94 §4.1, §4.3"
        "objects whose first 48 bytes are hot: use of a cache's sets and time of a walk, with colouring and without"
    "slab-reap" slab_reap "Bonwick94 §3.4"
        "a cache after spikes: memory over time and what the next spike costs, with working sets of 0, 15 s and for ever"
    "slab-debug" slab_debug "Bonwick94 §6; what do the checks cost?"
        "real programs with the debugging kit off, sampled, and on: how much slower"
    "nvalloc-fig1a" nvalloc_fig1a "NVAlloc figure 1(a)"
        "persistent heaps: flushes and fences of an operation, and flushes of lines flushed just before, counted"
    "nvalloc-fig1b" nvalloc_fig1b "NVAlloc figure 1(b), Table 1"
        "peak memory on Fragbench W1 to W4, as a ratio to the live data"
    "nvalloc-fig2" nvalloc_fig2 "NVAlloc figure 2"
        "persistent heaps: where the first thousand flushes of metadata go"
    "nvalloc-fig9" nvalloc_fig9 "NVAlloc figure 9"
        "persistent heaps: small objects, none lost in a crash, beside PMDK"
    "nvalloc-fig10" nvalloc_fig10 "NVAlloc figure 10"
        "persistent heaps: small objects, collected after a crash"
    "nvalloc-fig11" nvalloc_fig11 "NVAlloc figure 11"
        "the persistent heap without interleaving, and with dirty lines written back soon: where the gain comes from"
    "nvalloc-fig12" nvalloc_fig12 "NVAlloc figure 12"
        "persistent heaps: large objects, beside PMDK"
    "nvalloc-fig13" nvalloc_fig13 "NVAlloc figure 13"
        "persistent heaps: most space of the file, and what short threads and one large object add, beside PMDK"
    "nvalloc-fig14" nvalloc_fig14 "NVAlloc figure 14"
        "persistent heaps under a tree: half insert, half delete, beside PMDK"
    "nvalloc-fig15" nvalloc_fig15 "NVAlloc figure 15"
        "persistent heaps: space, use of slabs and speed on Fragbench W1 to W4, with morphing and without, beside PMDK"
    "nvalloc-fig16" nvalloc_fig16 "NVAlloc figure 16"
        "the persistent heap by stripes of bitmaps, and by the threshold of morphing"
    "nvalloc-fig17" nvalloc_fig17 "NVAlloc figure 17"
        "the persistent heap's extents by how soon their log is collected"
    "nvalloc-fig18" nvalloc_fig18 "NVAlloc figure 18"
        "persistent heaps: time to find a list of nodes again after its process ended, beside PMDK"
    "nvalloc-fig19" nvalloc_fig19 "NVAlloc figure 19"
        "the persistent heap without flushes, by stripes of bitmaps"
    "nvalloc-fig20" nvalloc_fig20 "NVAlloc figure 20"
        "persistent heaps: small objects without flushes, beside PMDK"
    "nvalloc-fig21" nvalloc_fig21 "NVAlloc figure 21"
        "persistent heaps: large objects without flushes, beside PMDK"
    "pheap-sync" pheap_sync "what does it take to make scattered pages durable at once?"
        "a heap's sync on a disk, transactions of LMDB and SQLite, and two flushes of the bytes: 1 to 1,000 pages"
    "kv" kv "what a persistent heap is worth to a server: speed, bytes written, time to restart"
        "craton-kv and redis-server with its append-only file: SET one and 16 at a time, and the first GET after a kill"
}

pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}

#[cfg(test)]
mod tests;
