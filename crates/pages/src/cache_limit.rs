//! How many free hugepages may stay backed.
//!
//! **From.** TEMERAIRE §4.3: the limit follows the difference of demand's extremes in a window. The
//! paper raises it when memory comes back; we when dropped demand *returns* and misses the cache,
//! so that a program that shrinks once is released at once.

use crate::demand::DEMAND_S;
use craton_base::HugePages;

pub const WINDOW_NS: u64 = DEMAND_S * 1_000_000_000;
/// Small heaps never thrash.
pub const CACHE_MIN_HUGEPAGES: HugePages = HugePages(8);
const EPOCHS: usize = 8;
const EPOCH_NS: u64 = WINDOW_NS / EPOCHS as u64;

#[derive(Clone, Copy)]
struct Extremes {
    /// Plus 1; 0: unused.
    epoch: u64,
    low: u32,
    high: u32,
}

pub(crate) struct CacheLimit {
    above_min: u32,
    ring: [Extremes; EPOCHS],
    shrunk_at_epoch: u64,
}

impl CacheLimit {
    pub(crate) const MIN: Self =
        Self { above_min: 0, ring: [Extremes { epoch: 0, low: 0, high: 0 }; EPOCHS], shrunk_at_epoch: 0 };

    pub(crate) fn limit(&self) -> HugePages {
        HugePages(CACHE_MIN_HUGEPAGES.0 + self.above_min)
    }

    /// Lowers the limit once an epoch.
    pub(crate) fn record(&mut self, demand: HugePages, now_ns: u64) {
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

    /// An early release, if the window has seen that demand.
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
