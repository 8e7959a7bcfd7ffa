//! The physical hugepage frames of the simulated system.
//!
//! A split hugepage keeps its frame until its last page there is unbacked or copied, a forked child
//! until its end. Small pages are endless.

use crate::rng::Rng;

const ENDLESS: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct HugeFrames {
    free: u32,
    child: u32,
    /// Of a hundred, as where no contiguous frame is free.
    failing_percent: u32,
    rng: Rng,
}

impl HugeFrames {
    pub(crate) const ENDLESS: Self = Self { free: ENDLESS, child: 0, failing_percent: 0, rng: Rng::new(0) };

    /// `None`: endless.
    pub(crate) fn set_free(&mut self, free: Option<u32>) {
        self.free = free.unwrap_or(ENDLESS);
    }

    pub(crate) fn free(&self) -> Option<u32> {
        (self.free != ENDLESS).then_some(self.free)
    }

    pub(crate) fn set_failing(&mut self, percent: u32, seed: u64) {
        assert!(percent <= 100, "{percent} requests of a hundred cannot fail");
        (self.failing_percent, self.rng) = (percent, Rng::new(seed));
    }

    /// `false`: fewer are free, or the request fails.
    pub(crate) fn take(&mut self, frames: u32) -> bool {
        let fails = self.failing_percent > 0 && self.rng.below(100) < u64::from(self.failing_percent);
        if fails || self.free < frames {
            return false;
        }
        self.change(-i64::from(frames));
        true
    }

    pub(crate) fn leave(&mut self, inherited: bool) {
        if inherited {
            self.child += 1;
        } else {
            self.change(1);
        }
    }

    pub(crate) fn end_child(&mut self) {
        let left = core::mem::take(&mut self.child);
        self.change(i64::from(left));
    }

    fn change(&mut self, by: i64) {
        if self.free != ENDLESS {
            self.free = (i64::from(self.free) + by) as u32;
        }
    }
}

#[cfg(test)]
mod tests;
