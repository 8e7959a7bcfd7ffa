//! What follows from things that any thread may change at any time.
//!
//! **What.** Who changes one of them notes it, and then does what follows from all. Somebody who does so at the same time, with what was there
//! before, does it once more: in the end it was done with what was set last. Nobody waits.

use craton_base::atomic::{AtomicU32, Ordering};

/// A count of changes, modulo 2³².
pub(crate) struct Changes(AtomicU32);

impl Changes {
    /// Without any.
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Something was changed.
    pub(crate) fn note(&self) {
        // ORDERING: AcqRel pairs with `until_settled`: either it sees this change, or what it did comes before what we do.
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Does what follows, until nothing has changed meanwhile.
    pub(crate) fn until_settled(&self, follow: impl Fn()) {
        // ORDERING: Acquire pairs with `note`.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            follow();
            // ORDERING: AcqRel pairs with `note`.
            let now = self.0.fetch_add(0, Ordering::AcqRel);
            if now == seen {
                return;
            }
            seen = now;
        }
    }
}
