//! Objects of a hardened heap that wait where no thread cache keeps them.
//!
//! A freed object takes the place of the one that has waited longest, by one exchange. To the slabs
//! both are live; they bear the mark of free ones.

use crate::size_class::{self, CLASSES};
use core::ptr::null_mut;
use craton_base::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Fewer are used where objects are large.
const PLACES: usize = 32;
const BYTES: usize = 8 << 10;

struct Ring {
    frees: AtomicU32,
    places: [AtomicPtr<u8>; PLACES],
}

pub struct Waiting([Ring; CLASSES]);

const fn places(class: usize) -> usize {
    match BYTES / size_class::size_of_class(class) {
        0 => 1,
        n if n > PLACES => PLACES,
        n => n,
    }
}

impl Waiting {
    /// A class's bytes, and the offset and number of its places.
    pub const SHAPE: [usize; 3] = [size_of::<Ring>(), core::mem::offset_of!(Ring, places), PLACES];

    #[allow(clippy::declare_interior_mutable_const)] // Each use makes a new one.
    pub const EMPTY: Self = Self(
        [const { Ring { frees: AtomicU32::new(0), places: [const { AtomicPtr::new(null_mut()) }; PLACES] } }; CLASSES],
    );

    /// Takes a marked object; returns one that has waited, or null.
    pub fn exchange(&self, class: usize, object: *mut u8) -> *mut u8 {
        let ring = &self.0[class - 1];
        let turn = ring.frees.fetch_add(1, Ordering::Relaxed) as usize;
        // ORDERING: pairs with itself: the object's link and mark go with it.
        ring.places[turn % places(class)].swap(object, Ordering::AcqRel)
    }

    pub fn drain(&self, mut give: impl FnMut(usize, *mut u8)) {
        for class in 1..=CLASSES {
            for place in self.0[class - 1].places.iter().take(places(class)) {
                if place.load(Ordering::Relaxed).is_null() {
                    continue;
                }
                // ORDERING: Acquire pairs with the Release in `exchange`.
                let object = place.swap(null_mut(), Ordering::Acquire);
                if !object.is_null() {
                    give(class, object);
                }
            }
        }
    }

    /// Approximate while other threads run.
    pub fn bytes(&self) -> usize {
        (1..=CLASSES)
            .map(|class| {
                let held = self.0[class - 1].places.iter().filter(|p| !p.load(Ordering::Relaxed).is_null()).count();
                held * size_class::size_of_class(class)
            })
            .sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
