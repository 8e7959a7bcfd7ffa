//! The counts of a thread's lists (T1).

use super::{ONE, PARTS, ThreadCache, room_for};
use crate::size_class::{self, CLASSES};
use craton_slab::end;

impl ThreadCache {
    /// Makes the count of an empty list exact; returns by how many objects T1 was broken. A signal
    /// handler that interrupts a push or a pop breaks it: positive means objects handed out twice,
    /// negative objects lost. Of lost ones only those beyond what pops may have used up are seen.
    #[inline]
    pub fn miscount(&mut self, class: usize) -> i32 {
        let (list, full) = (&mut self.lists[class], room_for(self.paces[class].max));
        if list.head != end() {
            return 0;
        }
        let room = core::mem::replace(&mut list.room, full);
        match room - full {
            more @ 1.. => (more + ONE - 1) >> PARTS,
            _ => (room >> PARTS).min(0),
        }
    }

    /// Objects of a list, or somewhat more: by T1, pops count for some.
    pub(super) fn len(&self, class: usize) -> i32 {
        self.paces[class].max - (self.lists[class].room >> PARTS)
    }

    /// Bytes of free objects, for statistics, likewise.
    pub fn bytes(&self) -> usize {
        (1..=CLASSES).map(|c| self.len(c).max(0) as usize * size_class::size_of_class(c)).sum()
    }
}
