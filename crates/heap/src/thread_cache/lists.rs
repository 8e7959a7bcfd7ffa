//! A cache's lists beyond their heads: their lengths, and how chains come and go.
//!
//! **Unsafe.** Follows and ends the links of free objects that the cache owns.

use super::count::{ONE, WEAR, objects_in, pops_in, room_for};
use super::{FRESH_PACES, LAST_KEPT, LONG_SWING, LONGEST, LOOK_LEAST, LOOK_PART, MAX_BYTES, MAX_OBJECTS};
use super::{Pace, ThreadCache, first_max};
use crate::hooks::{Damage, Hooks};
use crate::size_class;
use core::ptr::null_mut;
use craton_base::Pages;
use craton_slab::{Chain, end};

/// Most objects of a full list that are counted: to walk a longer one takes too long.
const MOST_WALKED: i32 = 128;
/// Pops before a list is walked again, in 256s.
const LEAST_POPPED: u8 = 3;

impl ThreadCache {
    /// Within the budget and the class's bounds.
    pub(super) fn grow(&mut self, class: usize, more: i32) {
        let size = size_class::size_of_class(class);
        let (bytes, max) = (more as usize * size, self.paces[class].max + more);
        if bytes <= self.budget && max as usize * size <= MAX_BYTES && max <= MAX_OBJECTS {
            self.budget -= bytes;
            self.paces[class].max += more;
            self.source_mut(class).room += more * ONE;
        }
    }

    /// Puts a chain into the list for requests.
    pub fn fill(&mut self, class: usize, chain: Chain) {
        if chain.is_empty() {
            return;
        }
        let (hardened, tail) = (self.is_hardened(), chain.last());
        let list = self.source_mut(class);
        let (head, len) = chain.into_raw();
        if list.head != end() && hardened && !tail.is_null() {
            // SAFETY: the chain's last object is the cache's now.
            unsafe { tail.cast::<*mut u8>().write(list.head) };
            list.head = head;
        } else {
            self.restore(class, head);
        }
        self.source_mut(class).room -= len as i32 * ONE;
    }

    /// Makes objects from `head` on the list's again, or for the first time.
    pub(super) fn restore(&mut self, class: usize, head: *mut u8) {
        let list = self.source_mut(class);
        if list.head == end() {
            list.head = head;
            return;
        }
        // A signal handler may have freed objects meanwhile: they go first.
        let mut last = list.head;
        // SAFETY: free objects of the cache, just linked; the last link is the end.
        unsafe {
            while next(last) != end() {
                last = next(last);
            }
            last.cast::<*mut u8>().write(head);
        }
    }

    /// Removes an empty list's room, so that frees leave the fast path.
    pub fn close(&mut self, class: usize) {
        debug_assert!(self.is_empty(class));
        self.close_stage(class);
        (self.paces[class].max, self.lists[class].room) = (0, room_for(0));
        self.source_mut(class).room = room_for(0);
    }

    /// A list with objects, none of which pops, is damaged.
    pub fn is_empty(&self, class: usize) -> bool {
        self.source(class).head == end()
    }

    pub(crate) fn head(&self, class: usize) -> *mut u8 {
        self.source(class).head
    }

    pub fn is_full(&self, class: usize) -> bool {
        self.lists[class].room < ONE
    }

    /// Whether the list for requests exceeds its bound.
    pub fn is_over(&self, class: usize) -> bool {
        self.source(class).room < 0
    }

    /// Objects to flush from a full list: a batch, or more if the list shrinks; at most its length.
    pub fn overflow(&mut self, class: usize) -> u32 {
        let (held, pace) = (self.len(class), &mut self.paces[class]);
        let mut less = 0;
        if pace.swing < LONG_SWING {
            pace.swing += 1;
        } else {
            // A closed list stays closed.
            less = ((pace.max - first_max(class).min(LAST_KEPT) + 1) / 2).max(0);
            pace.max -= less;
            self.source_mut(class).room -= less * ONE;
            self.budget += less as usize * size_class::size_of_class(class);
        }
        (size_class::batch(class) + less as u32).min(held as u32)
    }

    /// Checks whether a full list only counts as full, since pops have used up its room. Makes the
    /// count exact and returns the pops since it last was. `None` for lists that are full, or too
    /// long to walk.
    pub fn recount(&mut self, class: usize) -> Option<u32> {
        let seal = self.seal(class);
        let (list, pace) = (&self.lists[class], &mut self.paces[class]);
        let popped = (pops_in(list.room) >> 8) as u8;
        // Fewer pops use up no room, as of a program that only frees.
        if popped.wrapping_sub(pace.popped) < LEAST_POPPED {
            return None;
        }
        pace.popped = popped;
        let (mut at, mut len) = (list.head, 0);
        // SAFETY: a free object of the list. One without its mark was overwritten: the flush
        // reports it.
        while at != end() && len < MOST_WALKED && unsafe { seal.is_on(at) } {
            // SAFETY: as above.
            at = unsafe { next(at) };
            len += 1;
        }
        (at == end() && len < pace.max).then(|| self.mend(class, len))
    }

    /// Whether a walked list would soon be walked again for the objects that it has.
    pub fn is_nearly_full(&self, class: usize) -> bool {
        self.len(class) > 4 * (objects_in(self.lists[class].room) + 1)
    }

    /// Whether the heap has grown enough for an idle check (`LOOK_PART`).
    pub fn is_look_due(&self, in_use: Pages) -> bool {
        in_use.0 >= self.look_at
    }

    /// Starts an idle check and schedules the next one.
    pub fn begin_look(&mut self, in_use: Pages) {
        self.look_at = in_use.0 + (in_use.0 / LOOK_PART).max(LOOK_LEAST.0);
    }

    /// Idle objects of a class: nearly all, if the head is the one of the last check. The list's
    /// `max` then returns to that of a new list.
    pub fn idle(&mut self, class: usize) -> u32 {
        let (held, kept) = (self.len(class), first_max(class).min(LAST_KEPT));
        let first = self.head(class) as u32;
        if core::mem::replace(&mut self.paces[class].seen, first) != first || held <= kept {
            return 0;
        }
        let less = self.paces[class].max - first_max(class);
        if less > 0 {
            self.source_mut(class).room -= less * ONE;
            self.budget += less as usize * size_class::size_of_class(class);
            self.paces[class] = Pace { seen: first, ..FRESH_PACES[class] };
        }
        (held - kept) as u32
    }

    /// Removes the first `n` objects of a list: `rest_of` consumes them and returns the rest.
    pub fn shorten(&mut self, class: usize, n: u32, rest_of: impl FnOnce(*mut u8) -> *mut u8) {
        let empty = self.room_emptied(class);
        let list = self.source_mut(class);
        let first = core::mem::replace(&mut list.head, end());
        list.head = rest_of(first);
        // The count may have been too high by what pops had used up.
        list.room = if list.head == end() { empty } else { list.room + n as i32 * ONE };
    }

    /// The room of a list once it is empty: its pops are still to be counted.
    fn room_emptied(&self, class: usize) -> i32 {
        room_for(self.paces[class].max) - pops_in(self.source(class).room) as i32 * WEAR
    }

    /// Removes up to `most` objects of a list.
    pub fn drain<H: Hooks>(&mut self, class: usize, most: u32) -> Chain {
        let seal = self.seal(class);
        let full = self.room_emptied(class);
        let list = self.source_mut(class);
        let first = list.head;
        let (mut last, mut at, mut n) = (null_mut::<u8>(), first, 0);
        while at != end() && n < most {
            if n > LONGEST {
                H::corrupt(Damage::GivenTwice { class, objects: 1 });
            }
            // SAFETY: `at` is a free object of the list, linked to the next. Where a program
            // overwrote a link, the mark shows it before the object is used or written.
            unsafe {
                if !seal.is_on(at) {
                    H::corrupt(Damage::NotFree { class, at });
                }
                last = at;
                at = next(at);
            }
            n += 1;
        }
        if n == 0 {
            return Chain::EMPTY;
        }
        // SAFETY: `last` is a free object of the list; it ends the chain now.
        unsafe { last.cast::<*mut u8>().write(end()) };
        list.head = at;
        // A signal handler may have left the count below the list's length.
        list.room = if at == end() { full } else { (list.room + n as i32 * ONE).min(full) };
        // SAFETY: `n` objects hang from `first`, and are off the list.
        unsafe { Chain::from_raw(first, last, n) }
    }
}

/// # Safety
/// The cache has the object.
pub(super) unsafe fn next(object: *mut u8) -> *mut u8 {
    // SAFETY: by the contract.
    unsafe { object.cast::<*mut u8>().read() }
}
