//! Ranked lists of hugepages; a bitmap finds the first non-empty one.
//!
//! **From.** TEMERAIRE §4.4. Links hold the place plus 1: zeros are empty lists.

use crate::tracker::{Tracker, Trackers};
use craton_base::{Geometry, HugePageId, PAGES_PER_HUGEPAGE};

/// Eight for each longest free range from 0 to 256.
pub(crate) const LISTS: usize = 8 * (PAGES_PER_HUGEPAGE as usize + 1);
const WORDS: usize = LISTS.div_ceil(64);
const _: () = assert!(WORDS < 64);

pub struct Lists {
    heads: [u32; LISTS],
    occupied: [u64; WORDS],
    words: u64,
    len: u32,
    pub(crate) sums: Sums,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) used: u32,
    pub(crate) backed: u32,
}

impl Sums {
    pub(crate) fn of<G: Geometry>(t: &Tracker<G>) -> Self {
        Self { used: t.used_pages(), backed: t.backed_pages() }
    }

    #[inline]
    pub(crate) fn replace(&mut self, old: Self, new: Self) {
        self.used = self.used - old.used + new.used;
        self.backed = self.backed - old.backed + new.backed;
    }
}

impl Lists {
    pub(crate) const EMPTY: Self =
        Self { heads: [0; LISTS], occupied: [0; WORDS], words: 0, len: 0, sums: Sums { used: 0, backed: 0 } };

    pub(crate) fn push<G: Geometry>(&mut self, trackers: &mut Trackers<G>, at: usize, id: HugePageId) {
        let head = self.heads[at];
        if head != 0 {
            trackers[(head - 1) as usize].prev = id.0 + 1;
        }
        let t = &mut trackers[id.0 as usize];
        (t.next, t.prev) = (head, 0);
        self.heads[at] = id.0 + 1;
        self.occupied[at / 64] |= 1 << (at % 64);
        self.words |= 1 << (at / 64);
        self.len += 1;
    }

    pub(crate) fn remove<G: Geometry>(&mut self, trackers: &mut Trackers<G>, at: usize, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        let (next, prev) = (t.next, t.prev);
        (t.next, t.prev) = (0, 0);
        if next != 0 {
            trackers[(next - 1) as usize].prev = prev;
        }
        if prev != 0 {
            trackers[(prev - 1) as usize].next = next;
        } else {
            debug_assert_eq!(self.heads[at], id.0 + 1);
            self.heads[at] = next;
            if next == 0 {
                self.occupied[at / 64] &= !(1 << (at % 64));
                if self.occupied[at / 64] == 0 {
                    self.words &= !(1 << (at / 64));
                }
            }
        }
        self.len -= 1;
    }

    #[inline]
    pub(crate) fn first_in(&self, from: usize, to: usize) -> Option<usize> {
        if from >= to {
            return None;
        }
        let mut w = from / 64;
        let mut word = self.occupied[w] & (u64::MAX << (from % 64));
        if word == 0 {
            let behind = self.words & (u64::MAX << w << 1);
            if behind == 0 {
                return None;
            }
            w = behind.trailing_zeros() as usize;
            word = self.occupied[w];
        }
        Some(w * 64 + word.trailing_zeros() as usize).filter(|at| *at < to)
    }

    pub(crate) fn last_before(&self, to: usize) -> Option<usize> {
        let mut w = to / 64;
        let mut word = if w < WORDS { self.occupied[w] & ((1 << (to % 64)) - 1) } else { 0 };
        if word == 0 {
            let before = self.words & ((1 << w) - 1);
            w = before.checked_ilog2()? as usize;
            word = self.occupied[w];
        }
        Some(w * 64 + word.ilog2() as usize)
    }

    pub(crate) fn head(&self, at: usize) -> Option<HugePageId> {
        self.heads[at].checked_sub(1).map(HugePageId)
    }

    pub(crate) fn walk<'a, G: Geometry>(
        &'a self,
        trackers: &'a Trackers<G>,
        at: usize,
    ) -> impl Iterator<Item = HugePageId> + use<'a, G> {
        let mut next = self.head(at);
        core::iter::from_fn(move || {
            let id = next?;
            next = trackers[id.0 as usize].next.checked_sub(1).map(HugePageId);
            Some(id)
        })
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }
}

#[cfg(test)]
mod tests;
