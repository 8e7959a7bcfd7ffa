//! What growth asks of hugepages: to begin on small pages, to ask for none, or to be refilled.
//!
//! **What.** The first touch of a hugepage clears 2 MiB in one request: 170 µs, or seconds where the
//! system compacts memory for it. Three rules bound that, for heaps whose library thread collapses
//! hugepages later:
//! ```text
//! slow growth     the hugepage begins on small pages, for a collapse by the thread
//! fast growth     whole hugepages: small pages cost four times the processor time
//! slow faults     a pause: none are asked for
//! ```
//! In a rise after a release the filler grows into broken hugepages. The thread collapses these
//! ahead: 170 µs each while mostly empty, as much as their small faults cost the program. It backs
//! no more than the rise itself has taken.
//!
//! **State.** A rise is the pages in use beyond their least since the last tick.
//!
//! **Failure.** A failed refill ends those of this tick.

use craton_base::Pages;

/// Growth is slow if a hugepage lasts this long: a collapse then costs 2 % of a processor.
const SLOW_GROWTH_NS: u64 = 20_000_000;
/// Processor time of a fault or collapse that had to wait for frames.
pub const SLOW_NS: u64 = 10_000_000;
/// The first pause after such a one, doubled by the next, up to [`MOST_PAUSE_NS`].
const PAUSE_NS: u64 = 1_000_000_000;
const MOST_PAUSE_NS: u64 = 64_000_000_000;
/// The least rise that refills broken hugepages, 8 MiB.
const RISE: u32 = 1024;

pub(crate) struct Growth {
    /// A thread collapses hugepages.
    helped: bool,
    /// When sparse and dense spans last took a hugepage without memory.
    last_ns: [u64; 2],
    /// 0 outside pauses.
    pause_end_ns: u64,
    last_pause_ns: u64,
    /// Least pages in use since the last tick.
    low: u32,
    /// Pages that refills backed since then.
    refilled: u32,
}

impl Growth {
    /// None yet; all zeros.
    pub(crate) const NONE: Self =
        Self { helped: false, last_ns: [0; 2], pause_end_ns: 0, last_pause_ns: 0, low: 0, refilled: 0 };

    pub(crate) fn set_helped(&mut self, helped: bool) {
        self.helped = helped;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pause_end_ns > 0
    }

    /// Notes that spans took a hugepage without memory; whether it begins on small pages.
    pub(crate) fn begins_small(&mut self, dense: bool, now_ns: u64) -> bool {
        let last_ns = core::mem::replace(&mut self.last_ns[usize::from(dense)], now_ns);
        self.is_paused() || self.helped && now_ns - last_ns >= SLOW_GROWTH_NS
    }

    /// The system had no hugepage, or took long.
    pub(crate) fn pause(&mut self, now_ns: u64) {
        if !self.is_paused() {
            self.last_pause_ns = (2 * self.last_pause_ns).clamp(PAUSE_NS, MOST_PAUSE_NS);
            self.pause_end_ns = now_ns + self.last_pause_ns;
        }
    }

    #[inline]
    pub(crate) fn note(&mut self, in_use: u32) {
        self.low = self.low.min(in_use);
    }

    /// Each tick.
    pub(crate) fn tick(&mut self, in_use: u32, now_ns: u64) {
        (self.low, self.refilled) = (in_use, 0);
        if !self.is_paused() {
            self.last_pause_ns -= self.last_pause_ns / 8;
        } else if now_ns >= self.pause_end_ns {
            self.pause_end_ns = 0;
        }
    }

    /// Pages that refills of broken hugepages may back now.
    #[inline(always)]
    pub(crate) fn refill_due(&self, in_use: u32) -> Pages {
        let risen = in_use - self.low;
        Pages(if self.helped && risen >= RISE { risen.saturating_sub(self.refilled) } else { 0 })
    }

    pub(crate) fn refilled(&mut self, pages: Pages) {
        self.refilled = self.refilled.saturating_add(pages.0);
    }

    /// No refill until the next tick.
    pub(crate) fn end_refills(&mut self) {
        self.refilled = u32::MAX;
    }
}

#[cfg(test)]
mod tests;
