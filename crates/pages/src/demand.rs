//! What recent demand says will be wanted again.
//!
//! **From.** The adaptive hugepage subrelease that followed TEMERAIRE (Maas et al., ISMM 2021):
//! memory that recent peaks will want back is not worth breaking hugepages for. Two windows: within
//! [`SHORT_S`], how far demand swings; within [`LONG_S`], the level that it keeps coming back to.
//! That level and one swing on top are wanted, but not more than the highest peak seen. In
//! the first [`SHORT_S`] nothing is known of swings, and all that there is may be wanted.
//!
//! **State.** The lowest and the highest demand of each second, a ring indexed by time.
//!
//! **Cost.** Two comparisons a request; a walk over the ring each time that something is asked.

/// The window of short fluctuations, in seconds.
pub const SHORT_S: u64 = 60;
/// The window of the long trend, in seconds.
pub const LONG_S: u64 = 300;
const EPOCHS: usize = LONG_S as usize;
const EPOCH_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Epoch {
    /// Number of the second plus 1; 0 when the slot has not been used. Wraps after 136 years.
    number: u32,
    low: u32,
    high: u32,
}

/// Demand in pages over the last minutes.
pub(crate) struct Demand {
    /// The extremes since the last [`Demand::fold`].
    low: u32,
    high: u32,
    /// The number of the first second in the ring; 0 until there is one.
    first: u32,
    ring: [Epoch; EPOCHS],
}

impl Demand {
    pub(crate) const NONE: Self =
        Self { low: 0, high: 0, first: 0, ring: [Epoch { number: 0, low: 0, high: 0 }; EPOCHS] };

    /// Notes how many pages are in use.
    #[inline]
    pub(crate) fn note(&mut self, pages: u32) {
        self.low = self.low.min(pages);
        self.high = self.high.max(pages);
    }

    /// Enters what was noted since the last time into the ring. Whoever asks folds first, and
    /// somebody does each second.
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

    /// How many pages will be wanted at a time, judging by the last minutes.
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
