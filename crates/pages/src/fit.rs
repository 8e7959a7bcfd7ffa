//! The rank of hugepages, and the search by rank for a span.
//!
//! **From.** TEMERAIRE §4.4. [`LongestFreeFirst`] is the paper's policy and ours; Figure 11's
//! others are to be measured.

use crate::lists::{LISTS, Lists};
use crate::tracker::Trackers;
use craton_base::{Geometry, HugePageId, PAGES_PER_HUGEPAGE};

/// Groups by number of spans, Cmax.
const CHUNKS: usize = 8;
/// For an aligned place, before one with room to spare.
const LOOKS: usize = 4;

pub(crate) type Found = Option<(HugePageId, u32)>;

pub trait Fit: sealed::Fit {}
impl<T: sealed::Fit> Fit for T {}

pub(crate) mod sealed {
    use super::{Found, Geometry, Lists, Trackers};

    pub trait Fit {
        fn rank(longest: u32, allocs: u32) -> usize;
        fn find<G: Geometry>(lists: &Lists, trackers: &Trackers<G>, pages: u32, align: u32) -> Found;
    }
}

/// 0 has the most spans, expected to live longest.
fn chunk(allocs: u32) -> usize {
    let log = (u32::BITS - allocs.leading_zeros()) as usize;
    CHUNKS - 1 - log.min(CHUNKS - 1)
}

fn search<G: Geometry>(lists: &Lists, trackers: &Trackers<G>, from: usize, to: usize, pages: u32, align: u32) -> Found {
    let mut from = from;
    for _ in 0..LOOKS {
        let at = lists.first_in(from, to)?;
        let id = lists.head(at)?;
        if let Some(place) = trackers[id.0 as usize].best_fit(pages, align) {
            return Some((id, place));
        }
        from = at + 1;
    }
    None
}

/// The smallest sufficient longest free range; then the most spans.
#[derive(Clone, Copy, Debug)]
pub struct LongestFreeFirst;

impl sealed::Fit for LongestFreeFirst {
    fn rank(longest: u32, allocs: u32) -> usize {
        CHUNKS * longest as usize + chunk(allocs)
    }

    fn find<G: Geometry>(lists: &Lists, trackers: &Trackers<G>, pages: u32, align: u32) -> Found {
        search(lists, trackers, CHUNKS * pages as usize, LISTS, pages, align).or_else(|| {
            // This much room always holds an aligned place.
            let sure = (pages + align - 1).min(G::PAGES);
            let at = lists.first_in(CHUNKS * sure as usize, LISTS)?;
            let id = lists.head(at)?;
            trackers[id.0 as usize].best_fit(pages, align).map(|place| (id, place))
        })
    }
}

/// The fullest first; then the longest free range.
#[derive(Clone, Copy, Debug)]
pub struct FullestFirst;

const LENGTHS: usize = PAGES_PER_HUGEPAGE as usize + 1;

impl sealed::Fit for FullestFirst {
    fn rank(longest: u32, allocs: u32) -> usize {
        LENGTHS * chunk(allocs) + longest as usize
    }

    fn find<G: Geometry>(lists: &Lists, trackers: &Trackers<G>, pages: u32, align: u32) -> Found {
        (0..CHUNKS).find_map(|c| {
            search(lists, trackers, LENGTHS * c + pages as usize, LENGTHS * (c + 1), pages, align).or_else(|| {
                let sure = (pages + align - 1).min(G::PAGES) as usize;
                let id = lists.head(lists.first_in(LENGTHS * c + sure, LENGTHS * (c + 1))?)?;
                trackers[id.0 as usize].best_fit(pages, align).map(|place| (id, place))
            })
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct GlobalBestFit;

impl sealed::Fit for GlobalBestFit {
    fn rank(longest: u32, allocs: u32) -> usize {
        LongestFreeFirst::rank(longest, allocs)
    }

    fn find<G: Geometry>(lists: &Lists, trackers: &Trackers<G>, pages: u32, align: u32) -> Found {
        let mut best: Option<(u32, (HugePageId, u32))> = None;
        let mut from = CHUNKS * pages as usize;
        while let Some(at) = lists.first_in(from, LISTS) {
            from = at + 1;
            for id in lists.walk(trackers, at) {
                let t = &trackers[id.0 as usize];
                let Some(place) = t.best_fit(pages, align) else { continue };
                let (_, len) = t.used().clear_run_around(place);
                if len == pages {
                    return Some((id, place));
                }
                if best.is_none_or(|(l, _)| len < l) {
                    best = Some((len, (id, place)));
                }
            }
        }
        best.map(|(_, found)| found)
    }
}

/// Ranked by most spans alone, since all are short; grouped by largest free block.
pub(crate) mod dense {
    use super::{Found, Geometry, LENGTHS, Lists, Trackers};

    pub(crate) const MAX_PAGES: u32 = 8;
    const BLOCKS: usize = 5;

    pub(crate) fn rank(free_block: u32, allocs: u32) -> usize {
        LENGTHS * free_block as usize + (LENGTHS - 1 - allocs as usize)
    }

    pub(crate) fn find<G: Geometry>(lists: &Lists, trackers: &Trackers<G>, pages: u32, align: u32) -> Found {
        let level = pages.max(align).next_power_of_two().trailing_zeros();
        let mut best: Option<(usize, usize)> = None;
        for blocks in level as usize + 1..BLOCKS {
            if let Some(at) = lists.first_in(LENGTHS * blocks, LENGTHS * (blocks + 1)) {
                let few = at - LENGTHS * blocks;
                if best.is_none_or(|(least, _)| few < least) {
                    best = Some((few, at));
                }
            }
        }
        let id = lists.head(best?.1)?;
        trackers[id.0 as usize].used().smallest_clear_block(level).map(|place| (id, place))
    }

    const _: () = assert!(BLOCKS * LENGTHS <= super::LISTS);
}

#[cfg(test)]
mod tests;
