//! The slabs of a cache that have room, by how full they are.
//!
//! **What.** A list for each eighth of fullness, and one for slabs that are complete. New objects come from the fullest slabs, so that nearly empty ones are
//! left alone until their last objects come back and they can be given up whole.
//!
//! **From.** TCMalloc's central free list, which TEMERAIRE §3 builds on, keeps its spans so; Bonwick94 §3.2 has one
//! list. TCMalloc goes by the bit width of the count. By eighths of the capacity slabs that are nearly full are told
//! apart as well as those that are nearly empty, which matters when a cache has none of the latter.
//!
//! **State.** Doubly linked through the records; links are a slab's first page plus 1, and 0 ends a list. A bit for
//! each list that is not empty.
//!
//! **Cost.** Each operation is O(1) and touches at most three records.

use crate::record::SlabRecord;
use craton_base::{PageId, Table};

/// How many lists there are.
pub(crate) const LISTS: usize = EIGHTHS + 1;
/// Lists of slabs with objects in use. Complete slabs are on a list before them.
const EIGHTHS: usize = 8;
/// Bits behind the point of [`PartialLists::scale`].
const POINT: u32 = 16;

/// Slabs with room, by fullness.
pub(crate) struct PartialLists {
    /// First slab of each list, plus 1.
    heads: [u32; LISTS],
    /// The lists that are not empty.
    filled: u32,
    /// Lists for each object in use, with [`POINT`] bits behind the point.
    scale: u32,
}

impl PartialLists {
    /// Without slabs, for slabs of `capacity` objects. All zeros when that is 0.
    pub(crate) const fn new(capacity: u16) -> Self {
        let scale = if capacity == 0 { 0 } else { ((EIGHTHS as u32) << POINT) / capacity as u32 };
        Self { heads: [0; LISTS], filled: 0, scale }
    }

    /// The list of a slab with so many objects in use, fewer than its capacity: a higher number is a fuller slab.
    pub(crate) fn list_of(&self, used: u16) -> usize {
        // Below the capacity, the product stays below `EIGHTHS`, since the scale is rounded down.
        ((u32::from(used) * self.scale) >> POINT) as usize + usize::from(used > 0)
    }

    /// The slab at the front of the fullest list.
    pub(crate) fn fullest(&self) -> Option<PageId> {
        let list = self.filled.checked_ilog2()?;
        self.first(list as usize)
    }

    /// The slab at the front of a list.
    pub(crate) fn first(&self, list: usize) -> Option<PageId> {
        self.heads[list].checked_sub(1).map(PageId)
    }

    /// Puts a slab on the list of `used`.
    pub(crate) fn push(&mut self, slab: PageId, used: u16, records: &Table<SlabRecord>) {
        let list = self.list_of(used);
        let (record, head) = (&records[slab.0 as usize], self.heads[list]);
        record.set_prev(0);
        record.set_next(head);
        if let Some(head) = head.checked_sub(1) {
            records[head as usize].set_prev(slab.0 + 1);
        }
        self.heads[list] = slab.0 + 1;
        self.filled |= 1 << list;
    }

    /// Takes a slab off the list of `used`.
    pub(crate) fn unlink(&mut self, slab: PageId, used: u16, records: &Table<SlabRecord>) {
        let record = &records[slab.0 as usize];
        let (next, prev) = (record.next(), record.prev());
        match prev.checked_sub(1) {
            Some(prev) => records[prev as usize].set_next(next),
            None => {
                let list = self.list_of(used);
                self.heads[list] = next;
                if next == 0 {
                    self.filled &= !(1 << list);
                }
            }
        }
        if let Some(next) = next.checked_sub(1) {
            records[next as usize].set_prev(prev);
        }
    }

    /// How many slabs have room and some object in use; a step for each.
    pub(crate) fn partial(&self, records: &Table<SlabRecord>) -> u32 {
        let mut count = 0;
        for head in &self.heads[1..] {
            let mut slab = *head;
            while let Some(page) = slab.checked_sub(1) {
                (count, slab) = (count + 1, records[page as usize].next());
            }
        }
        count
    }

    /// Whether list `list` is known to be not empty.
    pub(crate) fn is_filled(&self, list: usize) -> bool {
        (self.filled >> list) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuller_slabs_are_on_higher_lists_and_the_first_and_last_list_are_used() {
        for capacity in 2..=1024 {
            let lists = PartialLists::new(capacity);
            assert!((1..capacity).all(|used| lists.list_of(used - 1) <= lists.list_of(used)), "{capacity}");
            assert_eq!((lists.list_of(0), lists.list_of(1) > 0), (0, true));
            assert_eq!(lists.list_of(capacity - 1), LISTS - EIGHTHS.div_ceil(usize::from(capacity)), "{capacity}");
        }
    }
}
