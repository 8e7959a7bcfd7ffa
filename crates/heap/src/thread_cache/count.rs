//! The counts of a thread's lists. T1 `room` = `max` − length of the list.

use super::ThreadCache;
use crate::size_class::{self, CLASSES};

impl ThreadCache {
    /// Repairs T1 for an empty list; returns the error. A signal handler that interrupts a push or
    /// a pop breaks it: positive means objects handed out twice, negative objects lost.
    #[inline]
    pub fn miscount(&mut self, class: usize) -> i32 {
        let list = &mut self.lists[class];
        if !list.head.is_null() || list.room == list.max {
            return 0;
        }
        let miscount = list.room - list.max;
        list.room = list.max;
        miscount
    }

    /// Bytes of free objects, for statistics.
    pub fn bytes(&self) -> usize {
        (1..=CLASSES)
            .map(|c| (self.lists[c].max - self.lists[c].room).max(0) as usize * size_class::size_of_class(c))
            .sum()
    }
}
