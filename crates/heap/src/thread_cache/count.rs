//! The counts of a thread's lists. T1 `room` = `max` − length of the list.

use super::ThreadCache;
use crate::size_class::{self, CLASSES};
use craton_slab::end;

impl ThreadCache {
    /// Repairs T1 for an empty list; returns the error. A signal handler that interrupts a push or
    /// a pop breaks it: positive means objects handed out twice, negative objects lost.
    #[inline]
    pub fn miscount(&mut self, class: usize) -> i32 {
        let (list, max) = (&mut self.lists[class], self.paces[class].max);
        if list.head != end() || list.room == max {
            return 0;
        }
        let miscount = list.room - max;
        list.room = max;
        miscount
    }

    /// T1.
    pub(super) fn len(&self, class: usize) -> i32 {
        self.paces[class].max - self.lists[class].room
    }

    /// Bytes of free objects, for statistics.
    pub fn bytes(&self) -> usize {
        (1..=CLASSES).map(|c| self.len(c).max(0) as usize * size_class::size_of_class(c)).sum()
    }
}
