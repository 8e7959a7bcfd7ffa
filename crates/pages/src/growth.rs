//! Rules for growth, where a thread collapses hugepages later. The first touch of a hugepage clears
//! 2 MiB: 170 µs, or seconds where the system compacts memory.
//! ```text
//! first of a rise   begins on small pages, for a collapse by the thread
//! slow growth       the thread clears one hugepage ahead, which waits in the cache
//! fast growth       whole hugepages: small pages cost four times the processor time
//! slow faults       a pause: none are requested
//! ```
//! In a rise after a release the thread collapses broken hugepages ahead, as much as the rise has
//! used: pages in use beyond their least since the last tick.

use craton_base::{HugePages, Pages};

/// A hugepage that lasts this long begins on small pages, if none waits.
const SLOW_GROWTH_NS: u64 = 20_000_000;
/// While a hugepage lasts between these, one is cleared ahead: waking the thread costs 5 µs.
const CLEAR_NS: core::ops::Range<u64> = 4_000_000..1_000_000_000;
/// One cleared ahead is 3 %.
const CLEAR_FROM: HugePages = HugePages(32);
/// A fault or collapse that had to wait for frames.
pub const SLOW_NS: u64 = 10_000_000;
/// Doubled by the next, up to [`MOST_PAUSE_NS`].
const PAUSE_NS: u64 = 1_000_000_000;
const MOST_PAUSE_NS: u64 = 64_000_000_000;
/// The least that refills broken hugepages: 8 MiB.
const RISE: u32 = 1024;

pub(crate) struct Growth {
    /// A thread collapses hugepages.
    helped: bool,
    /// When spans that will fill it last got a hugepage.
    last_ns: u64,
    /// 0 outside pauses.
    pause_end_ns: u64,
    last_pause_ns: u64,
    /// Of pages in use, since the last tick.
    low: u32,
    refilled: u32,
    clears: bool,
}

impl Growth {
    pub(crate) const NONE: Self =
        Self { helped: false, last_ns: 0, pause_end_ns: 0, last_pause_ns: 0, low: 0, refilled: 0, clears: false };

    pub(crate) fn set_helped(&mut self, helped: bool) {
        self.helped = helped;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pause_end_ns > 0
    }

    /// For spans that will fill it; `demand` hugepages are in use.
    pub(crate) fn begins_small(&mut self, demand: HugePages, now_ns: u64) -> bool {
        let lasted_ns = now_ns - core::mem::replace(&mut self.last_ns, now_ns);
        self.clears |= self.helped && demand >= CLEAR_FROM && CLEAR_NS.contains(&lasted_ns);
        self.is_paused() || self.helped && lasted_ns >= SLOW_GROWTH_NS
    }

    #[inline(always)]
    pub(crate) fn clears(&self) -> bool {
        self.clears
    }

    pub(crate) fn end_clears(&mut self) {
        self.clears = false;
    }

    /// The system had no hugepage, or took long.
    pub(crate) fn pause(&mut self, now_ns: u64) {
        if !self.is_paused() {
            self.last_pause_ns = (2 * self.last_pause_ns).clamp(PAUSE_NS, MOST_PAUSE_NS);
            self.pause_end_ns = now_ns + self.last_pause_ns;
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, in_use: u32) {
        self.low = self.low.min(in_use);
    }

    pub(crate) fn tick(&mut self, in_use: u32, now_ns: u64) {
        (self.low, self.refilled) = (in_use, 0);
        if !self.is_paused() {
            self.last_pause_ns -= self.last_pause_ns / 8;
        } else if now_ns >= self.pause_end_ns {
            self.pause_end_ns = 0;
        }
    }

    #[inline(always)]
    pub(crate) fn refill_due(&self, in_use: u32) -> Pages {
        let risen = in_use - self.low;
        Pages(if self.helped && risen >= RISE { risen.saturating_sub(self.refilled) } else { 0 })
    }

    pub(crate) fn refilled(&mut self, pages: Pages) {
        self.refilled = self.refilled.saturating_add(pages.0);
    }

    pub(crate) fn end_refills(&mut self) {
        self.refilled = u32::MAX;
    }
}

#[cfg(test)]
mod tests;
