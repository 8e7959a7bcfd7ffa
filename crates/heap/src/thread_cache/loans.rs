//! Objects that a list borrows from lists of larger classes.
//!
//! **Unsafe.** Pops from a list.

use super::ThreadCache;
use crate::size_class;

impl ThreadCache {
    /// Up to twice the size.
    pub fn borrow(&mut self, class: usize) -> Option<(*mut u8, usize)> {
        (class + 1..=size_class::largest_lender(class)).find_map(|lender| {
            // SAFETY: the cache is borrowed for this call.
            let object = unsafe { Self::pop(self, lender) };
            (!object.is_null()).then_some((object, lender))
        })
    }
}
