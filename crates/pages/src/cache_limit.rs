//! How many free hugepages may keep their memory.
//!
//! **From.** TEMERAIRE §4.3: the limit follows the difference between the highest and the lowest
//! demand of the last two seconds. The paper raises the limit to that difference when memory comes
//! back. We raise it when demand that had dropped *returns* and finds the cache empty: a program
//! that gives up most of its memory once gets it released at once, and one that oscillates pays for
//! one swing.
//!
//! **State.** Demand's extremes in [`EPOCHS`] slices of the window, a ring indexed by time.

use craton_base::HugePages;

/// The sliding window, in nanoseconds.
pub const WINDOW_NS: u64 = 2_000_000_000;
/// Free hugepages that are always kept: 16 MiB, so that small heaps never thrash.
pub const CACHE_MIN_HUGEPAGES: HugePages = HugePages(8);
const EPOCHS: usize = 8;
const EPOCH_NS: u64 = WINDOW_NS / EPOCHS as u64;

#[derive(Clone, Copy)]
struct Extremes {
    /// Number of the slice plus 1; 0 when the slot has not been used.
    epoch: u64,
    low: u32,
    high: u32,
}

/// The limit, and the demand that it follows.
pub(crate) struct CacheLimit {
    /// The limit less [`CACHE_MIN_HUGEPAGES`].
    above_min: u32,
    ring: [Extremes; EPOCHS],
    shrunk_at_epoch: u64,
}

impl CacheLimit {
    pub(crate) const MIN: Self =
        Self { above_min: 0, ring: [Extremes { epoch: 0, low: 0, high: 0 }; EPOCHS], shrunk_at_epoch: 0 };

    /// Free hugepages that may keep their memory.
    pub(crate) fn limit(&self) -> HugePages {
        HugePages(CACHE_MIN_HUGEPAGES.0 + self.above_min)
    }

    /// Records the demand (hugepages in use) at a time; once an epoch, lowers the limit to what the
    /// window justifies.
    pub(crate) fn note(&mut self, demand: HugePages, now_ns: u64) {
        let epoch = now_ns / EPOCH_NS + 1;
        let slot = &mut self.ring[epoch as usize % EPOCHS];
        if slot.epoch != epoch {
            *slot = Extremes { epoch, low: demand.0, high: demand.0 };
        }
        slot.low = slot.low.min(demand.0);
        slot.high = slot.high.max(demand.0);
        if self.shrunk_at_epoch != epoch {
            self.shrunk_at_epoch = epoch;
            self.set_limit(self.limit().min(self.swing(epoch)));
        }
    }

    /// A request found `missing` hugepages too few in the cache. When the window has seen that much
    /// demand before, the cache released too early.
    pub(crate) fn missed(&mut self, missing: HugePages, demand: HugePages, now_ns: u64) {
        let epoch = now_ns / EPOCH_NS + 1;
        if demand.0 <= self.extremes(epoch).1 {
            let limit = self.limit();
            self.set_limit(HugePages(limit.0 + missing.0).min(self.swing(epoch).max(limit)));
        }
    }

    fn set_limit(&mut self, limit: HugePages) {
        self.above_min = limit.0.saturating_sub(CACHE_MIN_HUGEPAGES.0);
    }

    /// The lowest and the highest demand in the window; zeros when the window is empty.
    fn extremes(&self, epoch: u64) -> (u32, u32) {
        let seen = self.ring.iter().filter(|e| e.epoch > 0 && e.epoch + EPOCHS as u64 > epoch);
        seen.map(|e| (e.low, e.high)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0))
    }

    fn swing(&self, epoch: u64) -> HugePages {
        let (low, high) = self.extremes(epoch);
        HugePages(high - low)
    }
}

#[cfg(test)]
mod tests;
