//! The counts of a thread's lists (T1).
//!
//! **What.** A pop gives back less room than a push takes, by [`WEAR`] parts. So a list on which a
//! program pops and pushes for ever counts as full now and then, and the debugging kit learns of it
//! without an instruction in either. Pushes change whole objects only, so the parts are the number
//! of pops, modulo [`ONE`], and [`ONE`] pops use up [`WEAR`] whole objects. This tells the pops
//! from objects that a signal handler lost or doubled.

use super::ThreadCache;
use crate::size_class::{self, CLASSES};
use craton_slab::end;

/// One object's room, in parts.
pub(super) const ONE: i32 = 1 << PARTS;
const PARTS: u32 = 16;
/// Parts that a pop uses up: a 1040th of an object. Odd, so that a sum's parts give the number of
/// pops.
pub(super) const WEAR: i32 = 63;
pub(super) const POPPED: i32 = ONE - WEAR;
/// Pops use up a part of this first.
const SLACK: i32 = ONE - 1;

/// `WEAR * INVERSE` ends in 1.
const INVERSE: u32 = {
    let mut inverse = 1u32;
    let mut bits = 1;
    while bits < PARTS {
        inverse = inverse.wrapping_mul(2u32.wrapping_sub((WEAR as u32).wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse % ONE as u32
};
const _: () = assert!(WEAR as u32 * INVERSE % ONE as u32 == 1);

/// The room of an empty list that may hold `max` objects.
pub(super) const fn room_for(max: i32) -> i32 {
    max * ONE + SLACK
}

pub(super) const fn objects_in(room: i32) -> i32 {
    room >> PARTS
}

/// Pops since the count was last exact, modulo [`ONE`].
pub(super) const fn pops_in(room: i32) -> u32 {
    ((SLACK - room) as u32).wrapping_mul(INVERSE) % ONE as u32
}

/// What room is missing: the pops that used it up, and the objects by which pushes and pops differ
/// from the list. Positive ones went out twice, negative ones were lost; up to half of `WEAR`.
pub(super) fn explain(missing: i32) -> (i32, i32) {
    let pops = ((missing as u32).wrapping_mul(INVERSE) % ONE as u32) as i32;
    let objects = (missing - pops * WEAR) >> PARTS;
    // Further pops, in `ONE`s, used up `WEAR` objects each.
    let further = if objects < 0 { 0 } else { (objects + WEAR / 2) / WEAR };
    (pops + further * ONE, further * WEAR - objects)
}

impl ThreadCache {
    /// Makes an empty list's count exact; returns the pops since it last was, and by how many
    /// objects a signal handler that interrupted a push or pop broke T1: positive ones went out
    /// twice, negative ones were lost.
    #[inline]
    pub fn miscount(&mut self, class: usize) -> (u32, i32) {
        let full = room_for(self.paces[class].max);
        let list = self.source_mut(class);
        if list.head != end() || list.room == full {
            return (0, 0);
        }
        let (pops, miscounted) = explain(full - core::mem::replace(&mut list.room, full));
        self.paces[class].popped = 0;
        (pops as u32, miscounted)
    }

    /// Restores the room that pops used up in a list of `len` objects; returns their number.
    /// Objects lost or doubled stay counted until the list is empty.
    pub(super) fn mend(&mut self, class: usize, len: i32) -> u32 {
        let (list, pace) = (&mut self.lists[class], &mut self.paces[class]);
        let (pops, _) = explain(room_for(pace.max) - len * ONE - list.room);
        list.room += pops * WEAR;
        pace.popped = 0;
        pops as u32
    }

    /// The pops since the count last was exact or they were taken, modulo [`ONE`]; restores the
    /// room that they used up.
    pub(super) fn take_pops(&mut self, class: usize) -> u32 {
        let list = self.source_mut(class);
        let pops = pops_in(list.room);
        list.room += pops as i32 * WEAR;
        self.paces[class].popped = 0;
        pops
    }

    /// Or somewhat more: by T1, pops count for some.
    pub(crate) fn len(&self, class: usize) -> i32 {
        self.paces[class].max - objects_in(self.source(class).room)
    }

    /// Bytes of free objects, for statistics, likewise.
    pub fn bytes(&self) -> usize {
        let listed = (1..=CLASSES).map(|c| self.len(c).max(0) as usize * size_class::size_of_class(c));
        listed.sum::<usize>() + self.waiting_bytes() + self.sampling.bytes()
    }
}
