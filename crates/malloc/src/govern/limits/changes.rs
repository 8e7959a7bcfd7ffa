//! Lock-free recomputation after concurrent changes: the last result has the last inputs.

use craton_base::atomic::{AtomicU32, Ordering};

/// Modulo 2³².
pub(crate) struct Changes(AtomicU32);

impl Changes {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn record(&self) {
        // ORDERING: pairs with `until_settled`: it sees this change, or we see its work.
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn until_settled(&self, follow: impl Fn()) {
        // ORDERING: pairs with `record`.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            follow();
            // ORDERING: pairs with `record`.
            let now = self.0.fetch_add(0, Ordering::AcqRel);
            if now == seen {
                return;
            }
            seen = now;
        }
    }
}
