//! The hugepage-aware page heap, after TEMERAIRE.
//!
//! **What.** Hands out spans of pages so that the program's memory lies densely on few hugepages, and whole hugepages
//! come free again and can go back to the system. It decides with numbers and never touches the memory it manages.
//!
//! **From.** TEMERAIRE §4: routing (§4.1), [`ranges`] stands for HugeAllocator's range tree (§4.2), [`huge_cache`] is
//! HugeCache (§4.3), [`filler`] is HugeFiller (§4.4), donation of slack (§4.1, Figure 8) in [`heap`], [`release`] (§4.6);
//! [`supply`] moves whole hugepages between these, [`resize`] changes spans where they stand. Where we
//! differ: free ranges are found by boundary tags and size bins instead of a treap, since their metadata is at hand
//! anyway; the cache's limit starts small and grows when demand that was just released returns, so that a
//! single drop goes back to the system at once; backing by hugepages is asked for only from a heap size on
//! ([`HugeBacking`]). HugeRegion (§4.5) is not part of the heap.
//!
//! **Units.** Pages of 8 KiB, hugepages of 256 pages, nanoseconds; places count from the region's first page.
//!
//! **State.** One [`tracker::Tracker`] a hugepage, in a table; each hugepage below the granted size is in one place:
//! ```text
//! Unbacked (free, no memory) · Cached (free, with memory) · Filler (some pages used) · Large (all of one span)
//! ```
//!
//! **Invariants** (walked by [`PageHeap::check`]):
//! - P1 each granted hugepage is in exactly one of the four places, and the counts of places add up to the grant;
//! - P2 a tracker's used pages, longest free range and allocation count agree with its bitmap;
//! - P3 a tracker in the filler is on the list that its numbers name, and nowhere else;
//! - P4 free ranges are maximal: no two neighbours of the same kind;
//! - P5 a page outside `touched` has never been handed out since its memory was last taken away: it reads as zero;
//! - P6 an unbacked hugepage has no touched page.
//!
//! **Threads.** None: the caller holds a lock.
//!
//! **Failure.** Every call to the floor may be refused; the request then fails with the state as before.
//!
//! **Cost.** A span of less than a hugepage: one bitmap search over the lists, one tracker (two cache lines), one
//! best-fit walk over 32 bytes.
#![no_std]

mod check;
mod filler;
mod heap;
mod huge_cache;
mod lists;
mod ranges;
mod release;
mod resize;
mod supply;
mod tracker;

pub use check::Broken;
pub use heap::{HugeBacking, PageHeap, PageHeapStats};
pub use huge_cache::{CACHE_MIN_HUGEPAGES, WINDOW_NS};
pub use tracker::Tracker;

#[cfg(test)]
mod tests;
