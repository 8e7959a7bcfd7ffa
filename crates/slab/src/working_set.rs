//! What a cache needs of the complete slabs, or magazines, that lie there, and how many it keeps.
//!
//! **From.** Bonwick94 §3.4: what was used of late is kept. Bonwick & Adams 2001 §3.4: the least
//! number that lay there at any moment of an interval is what nobody needed in it. Size classes
//! keep no complete slab at first, since one of them can keep a hugepage from coming free: each
//! that is asked for after one was given back lets one more be kept, up to a most; so as many stay
//! as the program swings by, and none in one that frees for good. What is idle goes, and may not
//! stay again.
//!
//! **Units.** Whatever is counted.

/// A number of things, and the least that it was of late. Zeros are none, of which none are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkingSet {
    count: u32,
    /// The least count since the interval began.
    least: u32,
    /// The least count of the interval before.
    before: u32,
    /// How many are kept, for those who ask; and how many may ever be.
    allowed: u16,
    most: u16,
    /// How many went and may be missed.
    given: u16,
    /// No more are kept for now, whatever is allowed.
    closed: bool,
}

impl WorkingSet {
    pub(crate) const EMPTY: Self = Self::up_to(0);

    /// Without things, of which up to `most` are kept when they were missed.
    pub(crate) const fn up_to(most: u16) -> Self {
        Self { count: 0, least: 0, before: 0, allowed: 0, most, given: 0, closed: false }
    }

    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(crate) fn add(&mut self) {
        self.count += 1;
    }

    #[inline]
    pub(crate) fn remove(&mut self) {
        self.count -= 1;
        self.least = self.least.min(self.count);
        self.before = self.before.min(self.count);
    }

    /// One of those that were idle goes for good.
    pub(crate) fn drop_idle(&mut self) {
        self.count -= 1;
        self.least = self.least.saturating_sub(1);
        self.before = self.before.saturating_sub(1);
        self.allowed = self.allowed.saturating_sub(1);
        self.given = self.given.saturating_add(1);
    }

    /// An interval ends and the next begins.
    pub(crate) fn turn(&mut self) {
        self.before = self.least;
        self.least = self.count;
        self.given /= 2;
    }

    /// How many were not needed in the whole of the interval before, nor since.
    pub(crate) fn idle(&self) -> u32 {
        self.before.min(self.least)
    }

    /// Lets more be kept, or not for now.
    #[inline]
    pub(crate) fn set_closed(&mut self, closed: bool) {
        self.closed = closed;
    }

    /// Whether one more is to be kept; it goes if not.
    pub(crate) fn wants(&mut self) -> bool {
        let wants = self.count < self.allowed.into() && !self.closed;
        if !wants {
            self.given = self.given.saturating_add(1);
        }
        wants
    }

    /// One had to be asked for.
    pub(crate) fn missed(&mut self) {
        if self.given > 0 {
            self.given -= 1;
            self.allowed = (self.allowed + 1).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests;
