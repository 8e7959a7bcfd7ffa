//! The hugepage-aware page heap, after TEMERAIRE.
//!
//! **From.** TEMERAIRE §4. Decides with numbers and never touches the memory:
//! ```text
//! §4.1  heap            routes requests            donation     tails of large spans
//! §4.2  huge_allocator  hugepages without memory   ranges       free ranges of hugepages
//! §4.3  huge_cache      those with memory          cache_limit  how many stay
//! §4.4  filler          packs short spans          lists, fit   ranked lists, and the policy
//! §4.5  region          spans across hugepages     tracker      the record of a hugepage
//! §4.6  release         how much goes back, when   demand       how much may not
//! later backing         hugepages of the machine   collapse     and those made afterwards
//! later growth          those made ahead of need
//! ```
//! Differences: boundary tags and size bins instead of a treap, since the trackers exist anyway;
//! the cache limit grows when released demand returns; dense and sparse spans lie apart; small
//! heaps stay on small pages ([`HugeBacking`]).
//! **Two heaps** differ in the [`placement`] of short spans: the filler's lists in [`Temeraire`],
//! LLFree's page frames in [`FrameHeap`].
//! **Units.** Pages of 8 KiB; 256 of them a hugepage unless the [`Geometry`](craton_base::Geometry)
//! differs; nanoseconds. Places count from the region's first page.
//! **Invariants** ([`Temeraire::check`] walks P1 to P9):
//! - *P1* each granted hugepage is in exactly one place; counts of places and used pages add up;
//! - *P2* a tracker's used pages, longest free range and number of spans agree with its bitmaps;
//! - *P3* a tracker in the filler is on the list that its numbers name, and nowhere else;
//! - *P4* free ranges are maximal: no two neighbours of the same kind;
//! - *P5* a page outside `touched` was not handed out since it was last unbacked: it is zero;
//! - *P6* an unbacked hugepage has no memory, as far as the heap knows;
//! - *P7* the sums of used and backed pages of families, and of cached hugepages, are right;
//! - *P8* a region is in the bin of its longest free range; the sums over regions are right;
//! - *P9* the budget counts the guarded hugepages, all of them broken ones of the filler;
//! - *P10* a span in a cache in front is there once ([`SpanCache`], [`LargeCache`]);
//! - *P11* a filler's hugepage is online, exactly its used pages allocated; all others are offline.
//!
//! **Threads.** The caller's lock; the caches in front need none.
//! **Cost.** A short span: a bitmap search, a tracker (two cache lines), a best fit over 32 bytes.
#![no_std]

mod backing;
mod cache_limit;
mod collapse;
mod demand;
mod donation;
mod filler;
mod fit;
mod frames;
mod growth;
mod heap;
mod huge_allocator;
mod huge_cache;
mod large_cache;
mod lists;
mod page_heap;
mod placement;
mod ranges;
mod region;
mod release;
mod span_cache;
pub mod trace;
mod tracker;
mod trust;

pub use backing::HugeBacking;
pub use cache_limit::{CACHE_MIN_HUGEPAGES, WINDOW_NS};
pub use collapse::{CollapseStats, Took};
pub use demand::DEMAND_S;
pub use fit::{Fit, FullestFirst, GlobalBestFit, LongestFreeFirst};
pub use frames::ByFrames;
pub use growth::SLOW_NS;
pub use heap::{Broken, Census, Component, Components, FrameHeap, PageHeapStats, Temeraire};
pub use large_cache::LargeCache;
pub use page_heap::{Act, Answer, Figures, PageHeap, PageHeapExt};
pub use placement::{ByLists, Placement};
pub use release::{AUTO_RATE, Breaking, MARGIN_PART, STEP, Tick, TooMuch};
pub use span_cache::SpanCache;
pub use tracker::Tracker;
pub use trust::{Choice, Seen, Trust};

#[cfg(test)]
mod testing;
