//! The hugepage-aware page heap, after TEMERAIRE.
//!
//! **What.** Hands out spans of pages so that the program's memory lies densely on few hugepages,
//! and whole hugepages come free again and can go back to the system. It decides with numbers and
//! never touches the memory it manages.
//!
//! **From.** TEMERAIRE §4. Each part is an object with its own state, made and tested alone;
//! [`heap`] composes them:
//! ```text
//! §4.1  heap            routes requests            donation     tails of large spans
//! §4.2  huge_allocator  hugepages without memory   ranges       free ranges of hugepages
//! §4.3  huge_cache      those with memory          cache_limit  how many stay
//! §4.4  filler          packs short spans          lists, fit   ranked lists, and the policy
//! §4.5  region          spans across hugepages
//! §4.6  release         how much goes back, when   demand       how much may not
//! later backing         hugepages of the machine   collapse     and those made afterwards
//! all   tracker         the record of a hugepage
//! ```
//! Where we differ: boundary tags and size bins find free ranges instead of a treap, since their
//! metadata is at hand anyway; the cache's limit grows when demand that was just released returns,
//! so that a single drop goes back at once; dense spans lie apart from sparse ones; small heaps
//! stay on small pages ([`HugeBacking`]).
//!
//! **Two heaps** behind one trait, [`PageHeap`]. A [`placement`] says where spans of up to half a
//! hugepage go: the filler's lists in [`Temeraire`], page frames as LLFree's are in [`FrameHeap`].
//! All else is the same.
//!
//! **Units.** Pages of 8 KiB, hugepages of 256 pages unless the [`Geometry`](craton_base::Geometry)
//! says otherwise, nanoseconds; places count from the region's first page.
//!
//! **State.** One [`tracker::Tracker`] a hugepage, in a table; each hugepage below the granted size
//! is in one place:
//! ```text
//! Unbacked (free, no memory) · Cached (free, with memory) · Filler (some pages used)
//! Large (all of one span) · Region
//! ```
//!
//! **Invariants** (walked by [`Temeraire::check`]):
//! - P1 each granted hugepage is in exactly one of the five places, and the counts of places and of
//!   used pages add up;
//! - P2 a tracker's used pages, longest free range and number of spans agree with its bitmaps;
//! - P3 a tracker in the filler is on the list that its numbers name, and nowhere else;
//! - P4 free ranges are maximal: no two neighbours of the same kind;
//! - P5 a page outside `touched` has never been handed out since its memory was last taken away: it
//!   reads as zero;
//! - P6 an unbacked hugepage has no memory, as far as the heap knows;
//! - P7 each family's sums of used and backed pages are those of its hugepages, and so is the sum
//!   of cached ones;
//! - P8 a region is in the bin of its longest free range, and the sums over hugepages of regions
//!   are right;
//! - P9 as many hugepages are guarded as the budget counts, all of them broken ones of the filler;
//! - P10 a span in a cache in front is there once ([`SpanCache`], [`LargeCache`]);
//! - P11 of a hugepage in the filler the pages of spans are taken from the frame source, if there
//!   is one, and all of others.
//!
//! **Threads.** The heap has none: the caller holds a lock. The caches in front of it may be used
//! by all at a time.
//!
//! **Failure.** Every call to the floor may be refused; the request then fails with the state as
//! before. A span that is not out, or not so, is an error that says which
//! ([`craton_base::SpanError`]), and changes nothing.
//!
//! **Cost.** A span of less than a hugepage: one bitmap search over the lists, one tracker (two
//! cache lines), one best-fit walk over 32 bytes.
#![no_std]

mod backing;
mod cache_limit;
mod collapse;
mod demand;
mod donation;
mod filler;
mod fit;
mod frames;
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

pub use backing::HugeBacking;
pub use cache_limit::{CACHE_MIN_HUGEPAGES, WINDOW_NS};
pub use collapse::CollapseStats;
pub use demand::{LONG_S, SHORT_S};
pub use fit::{Fit, FullestFirst, GlobalBestFit, LongestFreeFirst};
pub use frames::ByFrames;
pub use heap::{Broken, FrameHeap, PageHeapStats, Temeraire};
pub use large_cache::LargeCache;
pub use page_heap::{Act, Answer, Figures, PageHeap, PageHeapExt};
pub use placement::{ByLists, Placement};
pub use release::{Breaking, Tick, TooMuch};
pub use span_cache::SpanCache;
pub use tracker::Tracker;

#[cfg(test)]
mod testing;
