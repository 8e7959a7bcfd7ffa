//! Which request becomes a sample of the heap profile.
//!
//! **What.** A countdown of requested bytes passes between two samples. A refill and a list that
//! counts as full know how many pops there were ([`super::count`]), so that pops and pushes need no
//! instruction. When the countdown has ended, the list is *armed*: it keeps a few objects, by
//! chance, and no room. So neither frees nor the refill's own place decide which request finds it
//! empty; that one is the sample. Without it, a program that allocates two objects and frees the
//! first would have only the first sampled: the second takes the one that the first gave back.
//!
//! **Invariants.** T1 with `max` = 0 in an armed list; its former `max` lies in `Pace::seen`.
//!
//! **Failure.** A list that meets many frees and no request gets its room back, and the sample
//! waits for the next refill. Hardened caches arm no list: there the next slow request is the
//! sample.
//!
//! **Unsafe.** Exchanges an object of a list for one that goes out.

use super::count::ONE;
use super::lists::next;
use super::{MARKS, ThreadCache};
use crate::hooks::Hooks;
use crate::mark::clear_head;
use crate::size_class;
use core::ptr::null_mut;
use craton_base::{PAGE_SHIFT, PAGE_SIZE};
use craton_slab::end;

/// Frees that find no room in armed lists before one is disarmed.
const MOST_REFUSED: u8 = 64;

/// Bytes before a page's end that are near enough.
const NEAR_END: usize = PAGE_SIZE / 64;

pub(super) struct Sampling {
    /// Bytes before the next sample.
    countdown: i64,
    armed: [u64; 2],
    refused: u8,
}

const _: () = assert!(MARKS <= 2 * u64::BITS as usize);

impl Sampling {
    pub(super) const NEW: Self = Self { countdown: i64::MAX, armed: [0; 2], refused: 0 };

    const fn bit(class: usize) -> (usize, u64) {
        (class / 64, 1 << (class % 64))
    }
}

impl ThreadCache {
    /// Bytes before the next sample.
    pub fn set_countdown(&mut self, bytes: i64) {
        self.sampling.countdown = bytes;
    }

    /// Counts requests of a class; returns how many further ones precede a sample, or 0.
    #[inline]
    pub(crate) fn count_down<H: Hooks>(&mut self, class: usize, requests: u32) -> u32 {
        let bytes = u64::from(requests) * size_class::size_of_class(class) as u64;
        self.sampling.countdown -= bytes as i64;
        if self.sampling.countdown >= 0 {
            return 0;
        }
        let (next, before) = H::count_ended(class, self.sampling.countdown.unsigned_abs());
        self.sampling.countdown = next;
        before
    }

    /// Counts a sample's own request, which no list served.
    pub fn count_sample(&mut self, class: usize) {
        self.sampling.countdown =
            self.sampling.countdown.saturating_sub_unsigned(size_class::size_of_class(class) as u64);
    }

    #[inline]
    pub fn is_armed(&self, class: usize) -> bool {
        let (word, bit) = Sampling::bit(class);
        self.sampling.armed[word] & bit != 0
    }

    /// Takes a list's room; `false` in a hardened cache.
    pub(crate) fn arm(&mut self, class: usize) -> bool {
        if self.is_hardened() {
            return false;
        }
        let max = self.paces[class].max;
        let (word, bit) = Sampling::bit(class);
        self.sampling.armed[word] |= bit;
        (self.paces[class].seen, self.paces[class].max) = (max as u32, 0);
        self.lists[class].room -= max * ONE;
        true
    }

    /// Gives an armed list its room back.
    #[inline]
    pub fn disarm(&mut self, class: usize) {
        if self.is_armed(class) {
            let (word, bit) = Sampling::bit(class);
            self.sampling.armed[word] &= !bit;
            let max = core::mem::take(&mut self.paces[class].seen) as i32;
            self.paces[class].max = max;
            self.lists[class].room += max * ONE;
        }
    }

    /// Exchanges an object that went out for the one of it and the first `most` objects of the list
    /// that lies nearest to the end of its page, which goes out instead; none on the page `without`
    /// (an address divided).
    ///
    /// # Safety
    /// The object is of the class, went out, and has not been used.
    pub(crate) unsafe fn exchange(&mut self, class: usize, object: *mut u8, most: u32, without: usize) -> *mut u8 {
        let seal = self.seal(class);
        let near = PAGE_SIZE - size_class::size_of_class(class).clamp(NEAR_END, PAGE_SIZE);
        let in_page = |object: *mut u8| object as usize % PAGE_SIZE;
        let is_out = |object: *mut u8| object as usize >> PAGE_SHIFT == without;
        // A signal handler finds an empty list meanwhile.
        let first = core::mem::replace(&mut self.source_mut(class).head, end());
        let mut greatest = if is_out(object) { 0 } else { in_page(object) };
        let (mut before, mut best) = (null_mut::<u8>(), object);
        let (mut last, mut at, mut n) = (null_mut::<u8>(), first, 0);
        // SAFETY: free objects of the list, as far as they bear their marks.
        unsafe {
            while n < most && greatest < near && at != end() && seal.is_on(at) {
                if in_page(at) > greatest && !is_out(at) {
                    (before, best, greatest) = (last, at, in_page(at));
                }
                (last, at, n) = (at, next(at), n + 1);
            }
        }
        let mut head = first;
        if best != object {
            // SAFETY: `best` is a free object of the list; `object` takes its place there.
            unsafe {
                object.cast::<*mut u8>().write(next(best));
                seal.set(object);
                if before.is_null() {
                    head = object;
                } else {
                    before.cast::<*mut u8>().write(object);
                }
                clear_head(best);
            }
        }
        self.restore(class, head);
        best
    }

    /// After a free that an armed list refused; `false` if the list has room now.
    pub(crate) fn stays_armed(&mut self, class: usize) -> bool {
        self.sampling.refused = (self.sampling.refused + 1) % MOST_REFUSED;
        if self.sampling.refused == 0 {
            self.disarm(class);
        }
        self.is_armed(class)
    }
}
