//! How many complete slabs a cache keeps, instead of giving them back.
//!
//! **What.** A cache that asks for slabs it has just given back may keep so many more from then on: as many as the program
//! swings by, and none in a program that frees for good. Those that nobody needed for a while go back, and so many fewer may be kept.
//!
//! **From.** Bonwick94 §3.4 keeps complete slabs for a fixed time, his "working set"; Bonwick and Adams 2001, for magazines in the depot, take the least
//! number that was there in the last interval as what was not needed. Here what is missed sets how many may be kept, too.
//!
//! **Units.** Slabs.
//!
//! **Invariants.** Of S3 the count: at most `most`.

/// Counts for one cache. All zeros keep nothing.
#[derive(Debug)]
pub(crate) struct Keep {
    /// Complete slabs that are kept.
    count: u16,
    /// How many may be.
    allowed: u16,
    /// How many may ever be.
    most: u16,
    /// Slabs that were given back, and may be missed.
    given: u16,
    /// The least `count` since the last look.
    least: u16,
    /// No more are kept for now, whatever is allowed.
    closed: bool,
}

impl Keep {
    /// Nothing is kept, until up to `most` may be.
    pub(crate) const fn up_to(most: u16) -> Self {
        Self { count: 0, allowed: 0, most, given: 0, least: 0, closed: false }
    }

    /// Complete slabs that are kept.
    pub(crate) fn count(&self) -> u32 {
        self.count.into()
    }

    /// Lets slabs be kept, or not for now.
    pub(crate) fn set_closed(&mut self, closed: bool) {
        self.closed = closed;
    }

    /// A slab became complete: whether it is kept, and counted.
    pub(crate) fn wants(&mut self) -> bool {
        let wants = self.count < self.allowed && !self.closed;
        if wants {
            self.count += 1;
        } else {
            self.given = self.given.saturating_add(1);
        }
        wants
    }

    /// One of the complete slabs is used again.
    pub(crate) fn used(&mut self) {
        self.count -= 1;
        self.least = self.least.min(self.count);
    }

    /// One of the complete slabs goes back.
    pub(crate) fn gave_back(&mut self) {
        self.used();
        self.allowed = self.allowed.saturating_sub(1);
        self.given = self.given.saturating_add(1);
    }

    /// A slab had to be asked for.
    pub(crate) fn missed(&mut self) {
        if self.given > 0 {
            self.given -= 1;
            self.allowed = (self.allowed + 1).min(self.most);
        }
    }

    /// How many of the complete slabs were not needed since the last look.
    pub(crate) fn idle(&mut self) -> u32 {
        let idle = self.least;
        self.given /= 2;
        self.least = self.count;
        idle.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` slabs become complete, and are asked for again; returns how many of them had to come from elsewhere.
    fn swing(keep: &mut Keep, n: u16) -> u16 {
        let kept = (0..n).filter(|_| keep.wants()).count() as u16;
        (0..kept).for_each(|_| keep.used());
        (kept..n).for_each(|_| keep.missed());
        n - kept
    }

    #[test]
    fn a_cache_that_may_keep_none_never_does() {
        let mut keep = Keep::up_to(0);
        assert_eq!((swing(&mut keep, 3), swing(&mut keep, 3), keep.count()), (3, 3, 0));
    }

    #[test]
    fn what_was_given_back_and_missed_is_kept_the_next_time() {
        let mut keep = Keep::up_to(10);
        assert_eq!(swing(&mut keep, 4), 4);
        assert_eq!(swing(&mut keep, 4), 0);
        assert_eq!(swing(&mut keep, 20), 16, "four as before");
        assert_eq!(swing(&mut keep, 20), 10, "no more than the most");
    }

    #[test]
    fn who_only_frees_or_only_grows_keeps_nothing() {
        let mut keep = Keep::up_to(10);
        (0..5).for_each(|_| keep.missed());
        assert_eq!((0..5).filter(|_| keep.wants()).count(), 0);
    }

    #[test]
    fn while_it_is_closed_nothing_more_is_kept() {
        let mut keep = Keep::up_to(10);
        swing(&mut keep, 4);
        keep.set_closed(true);
        assert_eq!(swing(&mut keep, 4), 4);
        keep.set_closed(false);
        assert_eq!(swing(&mut keep, 4), 0);
    }

    #[test]
    fn what_was_not_needed_between_two_looks_goes_and_is_not_kept_again() {
        let mut keep = Keep::up_to(10);
        swing(&mut keep, 6);
        assert_eq!((0..6).filter(|_| keep.wants()).count(), 6);
        assert_eq!(keep.idle(), 0, "they came since the last look");
        (0..2).for_each(|_| keep.used());
        (0..2).for_each(|_| assert!(keep.wants()));
        assert_eq!(keep.idle(), 4, "two were needed");
        (0..4).for_each(|_| keep.gave_back());
        assert_eq!((keep.count(), keep.wants(), keep.idle()), (2, false, 2));
        (0..2).for_each(|_| keep.used());
        (0..2).for_each(|_| keep.missed());
        assert_eq!((0..6).filter(|_| keep.wants()).count(), 4, "two of those that went were missed");
    }
}
