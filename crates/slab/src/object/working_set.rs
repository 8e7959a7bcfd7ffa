//! What was not needed for an interval.
//!
//! **From.** Bonwick94 §3.4: what was used in the last 15 s is kept. Bonwick & Adams 2001 §3.4: the least number of something that lay
//! there at any moment of an interval is what nobody needed in it.
//!
//! **Units.** Whatever is counted: complete slabs, magazines.

/// A number of things, and the least that it was of late. All zeros are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct WorkingSet {
    count: u32,
    /// The least count since the interval began.
    least: u32,
    /// The least count of the interval before.
    before: u32,
}

impl WorkingSet {
    pub(super) const EMPTY: Self = Self { count: 0, least: 0, before: 0 };

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn add(&mut self) {
        self.count += 1;
    }

    pub(super) fn remove(&mut self) {
        self.count -= 1;
        self.least = self.least.min(self.count);
        self.before = self.before.min(self.count);
    }

    /// One of those that were idle goes for good.
    pub(super) fn drop_idle(&mut self) {
        self.count -= 1;
        self.least = self.least.saturating_sub(1);
        self.before = self.before.saturating_sub(1);
    }

    /// An interval ends and the next begins.
    pub(super) fn turn(&mut self) {
        self.before = self.least;
        self.least = self.count;
    }

    /// How many were not needed in the whole of the interval before, nor since.
    pub(super) fn idle(&self) -> u32 {
        self.before.min(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(n: u32) -> WorkingSet {
        let mut set = WorkingSet::EMPTY;
        (0..n).for_each(|_| set.add());
        set
    }

    #[test]
    fn nothing_is_idle_before_a_whole_interval_has_gone_by() {
        let mut set = with(5);
        assert_eq!(set.idle(), 0);
        set.turn();
        assert_eq!(set.idle(), 0, "they came in the interval that has ended");
        set.turn();
        assert_eq!(set.idle(), 5);
    }

    #[test]
    fn what_was_needed_for_a_moment_is_not_idle_though_it_is_back() {
        let mut set = with(5);
        set.turn();
        (0..3).for_each(|_| set.remove());
        (0..3).for_each(|_| set.add());
        set.turn();
        assert_eq!(set.idle(), 2);
        set.remove();
        assert_eq!((set.idle(), set.count()), (2, 4), "the one that went was of those that were needed");
        (0..3).for_each(|_| set.remove());
        assert_eq!((set.idle(), set.count()), (1, 1));
        set.drop_idle();
        assert_eq!((set.idle(), set.count()), (0, 0));
    }

    #[test]
    fn idle_ones_that_go_leave_the_needed_ones_alone() {
        let mut set = with(5);
        set.turn();
        (0..3).for_each(|_| set.remove());
        (0..3).for_each(|_| set.add());
        set.turn();
        (0..2).for_each(|_| set.drop_idle());
        assert_eq!((set.idle(), set.count()), (0, 3));
    }
}
