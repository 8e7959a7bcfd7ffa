//! The physical hugepage frames of the simulated system: how many are free, and which requests
//! fail.
//!
//! **What.** A huge fault and a collapse take a frame. A split hugepage keeps its frame until its
//! last page there is unbacked or copied. Small pages come from elsewhere, without end.
//!
//! **State.** A forked child keeps the frames that its parent leaves until it ends.

use crate::rng::Rng;

/// A supply without end.
const ENDLESS: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct HugeFrames {
    /// Free ones; [`ENDLESS`] for a system that always has one.
    free: u32,
    /// Left by the parent, in use by the child.
    child: u32,
    /// Requests of a hundred that fail though frames are free, as where none is contiguous.
    failing_percent: u32,
    rng: Rng,
}

impl HugeFrames {
    pub(crate) const ENDLESS: Self = Self { free: ENDLESS, child: 0, failing_percent: 0, rng: Rng::new(0) };

    /// The supply from now on, beside the frames in use; `None` for one without end.
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

    /// Takes frames; `false` if there are fewer, or the request fails.
    pub(crate) fn take(&mut self, frames: u32) -> bool {
        let fails = self.failing_percent > 0 && self.rng.below(100) < u64::from(self.failing_percent);
        if fails || self.free < frames {
            return false;
        }
        self.change(-i64::from(frames));
        true
    }

    /// Returns a frame that the process has left; a child keeps those that it `inherited`.
    pub(crate) fn leave(&mut self, inherited: bool) {
        if inherited {
            self.child += 1;
        } else {
            self.change(1);
        }
    }

    /// The child has ended.
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
