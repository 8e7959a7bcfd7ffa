//! The modules that the rules describe. A module in another's place proves that the other was
//! unloaded: its rules are dropped.
//!
//! **Failure.** A race or an evicted module drops rules without need. Unnoticed: a module whose
//! stacks meet only its predecessor's rules, and run-time code where a module was.
//! **Cost.** 0.1 µs for each unknown rule. 6 KiB of zeros.

use super::module::Module;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const PLACES: usize = 256;

pub(super) struct Known {
    places: [Place; PLACES],
    next: AtomicUsize,
}

struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    what: AtomicUsize,
}

impl Place {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with.
    const EMPTY: Self = Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0), what: AtomicUsize::new(0) };
}

impl Known {
    pub(super) const fn new() -> Self {
        Self { places: [const { Place::EMPTY }; PLACES], next: AtomicUsize::new(0) }
    }

    /// Returns whether another may have lain there.
    pub(super) fn record(&self, module: Module) -> bool {
        let what = module.frames ^ module.record.rotate_left(17);
        let mut replaces = false;
        for place in &self.places {
            let (start, end) = (place.start.load(Relaxed), place.end.load(Relaxed));
            if start >= module.end || end <= module.start {
                continue;
            }
            if (start, end, place.what.load(Relaxed)) == (module.start, module.end, what) {
                return replaces;
            }
            place.end.store(0, Relaxed);
            replaces = true;
        }
        let place = &self.places[self.next.fetch_add(1, Relaxed) % PLACES];
        replaces |= place.end.load(Relaxed) != 0;
        // Empty until complete.
        place.end.store(0, Relaxed);
        place.start.store(module.start, Relaxed);
        place.what.store(what, Relaxed);
        place.end.store(module.end, Relaxed);
        replaces
    }
}

#[cfg(test)]
mod tests;
