//! The memory that recent demand will want back.
//!
//! **From.** Adaptive hugepage subrelease (Maas et al., ISMM 2021): memory that recent peaks will
//! want back is not worth breaking hugepages for. [`SHORT_S`] shows how far demand swings,
//! [`LONG_S`] the level it returns to. Wanted: that level plus one swing, at most the highest peak.
//! In the first [`SHORT_S`] swings are unknown, and everything may be wanted.
//!
//! **State.** Each second's lowest and highest demand, in a ring indexed by time.
//!
//! **Cost.** Two comparisons a request; a walk over the ring for each query.

/// Window of short fluctuations, in seconds.
pub const SHORT_S: u64 = 60;
/// Window of the long trend, in seconds.
pub const LONG_S: u64 = 300;
const EPOCHS: usize = LONG_S as usize;
const EPOCH_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Epoch {
    /// Number of the second plus 1; 0 if unused. Wraps after 136 years.
    number: u32,
    low: u32,
    high: u32,
}

/// Demand in pages over the last minutes.
pub(crate) struct Demand {
    /// The extremes since the last [`Demand::fold`].
    low: u32,
    high: u32,
    /// Number of the ring's first second; 0 for none.
    first: u32,
    ring: [Epoch; EPOCHS],
}

impl Demand {
    pub(crate) const NONE: Self =
        Self { low: 0, high: 0, first: 0, ring: [Epoch { number: 0, low: 0, high: 0 }; EPOCHS] };

    #[inline]
    pub(crate) fn note(&mut self, pages: u32) {
        self.low = self.low.min(pages);
        self.high = self.high.max(pages);
    }

    /// Enters the extremes into the ring: before each query, and every second.
    pub(crate) fn fold(&mut self, pages: u32, now_ns: u64) {
        let number = (now_ns / EPOCH_NS + 1) as u32;
        if self.first == 0 {
            self.first = number;
        }
        let slot = &mut self.ring[number as usize % EPOCHS];
        if slot.number == number {
            slot.low = slot.low.min(self.low);
            slot.high = slot.high.max(self.high);
        } else {
            *slot = Epoch { number, low: self.low, high: self.high };
        }
        (self.low, self.high) = (pages, pages);
    }

    /// Pages that will be wanted, by the last minutes.
    pub(crate) fn wanted(&self, now_ns: u64) -> u32 {
        let now = (now_ns / EPOCH_NS + 1) as u32;
        if self.first == 0 || u64::from(now.wrapping_sub(self.first)) < SHORT_S {
            return u32::MAX;
        }
        let (mut level, mut swing, mut peak) = (0, 0, 0);
        for epoch in self.ring.iter().filter(|e| e.number > 0) {
            let age = u64::from(now.wrapping_sub(epoch.number));
            if age < LONG_S {
                level = level.max(epoch.low);
                peak = peak.max(epoch.high);
            }
            if age < SHORT_S {
                swing = swing.max(epoch.high - epoch.low);
            }
        }
        peak.min(level.saturating_add(swing))
    }
}

#[cfg(test)]
mod tests;
