//! What the counts of a thread's lists say.
//!
//! **State.** As in [`super`]: T1 `room` = `max` − length of the list.

use super::ThreadCache;
use crate::size_class::{self, CLASSES};

impl ThreadCache {
    /// How many objects more an empty list believes it gave out than it held, which is put right: T1 breaks when a signal handler that
    /// allocates interrupts a push or a pop. More are objects that were given out twice, fewer ones that were lost.
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

    /// Bytes in free objects, for statistics.
    pub fn bytes(&self) -> usize {
        (1..=CLASSES)
            .map(|c| (self.lists[c].max - self.lists[c].room).max(0) as usize * size_class::size_of_class(c))
            .sum()
    }
}
