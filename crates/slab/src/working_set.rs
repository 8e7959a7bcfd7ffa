//! How many complete slabs, or magazines, a cache keeps (Bonwick94 §3.4; Bonwick & Adams 2001
//! §3.4).
//!
//! Size classes keep none at first, since one complete slab can pin a hugepage: each miss after a
//! slab was freed allows one more, up to a limit.

/// Zeros: empty, keeps none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkingSet {
    count: u32,
    least: u32,
    before: u32,
    allowed: u16,
    most: u16,
    given: u16,
    closed: bool,
}

impl WorkingSet {
    pub(crate) const EMPTY: Self = Self::up_to(0);

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

    pub(crate) fn drop_idle(&mut self) {
        self.count -= 1;
        self.least = self.least.saturating_sub(1);
        self.before = self.before.saturating_sub(1);
        self.allowed = self.allowed.saturating_sub(1);
        self.given = self.given.saturating_add(1);
    }

    pub(crate) fn turn(&mut self) {
        self.before = self.least;
        self.least = self.count;
        self.given /= 2;
    }

    pub(crate) fn idle(&self) -> u32 {
        self.before.min(self.least)
    }

    #[inline]
    pub(crate) fn set_closed(&mut self, closed: bool) {
        self.closed = closed;
    }

    pub(crate) fn wants(&mut self) -> bool {
        let wants = self.count < self.allowed.into() && !self.closed;
        if !wants {
            self.given = self.given.saturating_add(1);
        }
        wants
    }

    pub(crate) fn missed(&mut self) {
        if self.given > 0 {
            self.given -= 1;
            self.allowed = (self.allowed + 1).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests;
