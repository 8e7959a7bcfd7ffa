//! Objects that a list borrows from lists of larger classes.
//!
//! **Unsafe.** Pops from a list.

use super::ThreadCache;
use crate::size_class;

impl ThreadCache {
    /// Pops an object of a larger class, up to twice the size, for one whose list is empty; with its
    /// class. Only some hundred times for each class: the next request takes the slow path, too.
    pub fn borrow(&mut self, class: usize) -> Option<(*mut u8, usize)> {
        if self.paces[class].loans == 0 {
            return None;
        }
        let loan = (class + 1..=size_class::largest_lender(class)).find_map(|lender| {
            // SAFETY: the cache is borrowed for this call; it is a size class.
            let object = unsafe { Self::pop(self, lender) };
            (!object.is_null()).then_some((object, lender))
        })?;
        self.paces[class].loans -= 1;
        Some(loan)
    }
}
