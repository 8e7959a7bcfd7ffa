//! The classes that have lent objects to smaller ones.
//!
//! In a small heap a larger class's object can serve a request; the program then frees it by a
//! smaller class's size. No class lends where frees trust the size
//! ([`crate::thread_cache::ThreadCache::push_trusted`]).
//!
//! **Threads.** A pair is recorded before its object can be freed.

use crate::size_class::{CLASSES, MOST_LENDERS};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering::Relaxed};

pub struct Lent {
    may_lend: AtomicBool,
    /// By class, a bit for each larger lender.
    lenders: [AtomicU16; CLASSES + 1],
    loans: [AtomicU8; CLASSES + 1],
}

const _: () = assert!(MOST_LENDERS <= u16::BITS as usize);

impl Lent {
    /// All zeros.
    pub const fn new() -> Self {
        Self {
            may_lend: AtomicBool::new(false),
            lenders: [const { AtomicU16::new(0) }; CLASSES + 1],
            loans: [const { AtomicU8::new(0) }; CLASSES + 1],
        }
    }

    /// From now on each free looks at the object's page.
    pub fn begin(&self) {
        self.may_lend.store(true, Relaxed);
    }

    /// Each loan makes the next request, and a free by size, slow: at most 255.
    pub fn may_lend_to(&self, class: usize) -> bool {
        self.may_lend.load(Relaxed) && self.loans[class].load(Relaxed) < u8::MAX
    }

    pub fn note(&self, class: usize, lender: usize) {
        // Threads at once may lend a few times more.
        self.loans[class].store(self.loans[class].load(Relaxed).saturating_add(1), Relaxed);
        let bit = 1 << (lender - class - 1);
        if self.lenders[class].load(Relaxed) & bit == 0 {
            self.lenders[class].fetch_or(bit, Relaxed);
        }
    }

    pub fn has(&self, class: usize, lender: usize) -> bool {
        let apart = lender.wrapping_sub(class + 1);
        apart < MOST_LENDERS && self.lenders[class].load(Relaxed) & (1 << apart) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_known_and_a_class_borrows_255_times() {
        let lent = Lent::new();
        assert!(!lent.may_lend_to(20));
        lent.begin();
        lent.note(20, 23);
        assert!(lent.has(20, 23) && !lent.has(20, 22) && !lent.has(23, 20) && !lent.has(20, 20) && !lent.has(19, 22));
        let more = (0..1000).take_while(|_| lent.may_lend_to(20)).inspect(|_| lent.note(20, 21)).count();
        assert!(more == 254 && lent.has(20, 21) && lent.may_lend_to(21), "{more}");
    }
}
