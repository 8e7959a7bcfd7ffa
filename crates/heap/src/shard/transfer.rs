//! The transfer cache: batches of free objects between threads' caches (TEMERAIRE §3).
//!
//! A batch changes hands in one lock-free exchange: no thread waits, and a fork finds a consistent
//! state. Above 32 KiB a batch is one object, which slabs serve as fast.
//!
//! **Invariants.** M4: an exchange empties a slot before it is filled.
//!
//! **Unsafe.** Turns a batch into its first object's address and back.

use crate::size_class::{self, CLASSES};
use core::ptr::null_mut;
use craton_base::atomic::{AtomicPtr, Ordering};
use craton_slab::Chain;

const SLOTS: usize = 4;
const MAX_OBJECT: usize = 32 << 10;

#[repr(align(32))]
struct Slots([AtomicPtr<u8>; SLOTS]);

pub struct Transfer {
    classes: [Slots; CLASSES],
}

impl Transfer {
    /// A class's bytes and slots.
    pub const SHAPE: [usize; 2] = [size_of::<Slots>(), SLOTS];

    #[allow(clippy::declare_interior_mutable_const)] // Each use makes a new one.
    pub const EMPTY: Self = Self { classes: [const { Slots([const { AtomicPtr::new(null_mut()) }; SLOTS]) }; CLASSES] };

    pub fn keeps(class: usize) -> bool {
        size_class::size_of_class(class) <= MAX_OBJECT
    }

    pub fn has_room(&self, class: usize) -> bool {
        Self::keeps(class) && self.classes[class - 1].0.iter().any(|slot| slot.load(Ordering::Relaxed).is_null())
    }

    /// Returns a batch that is not full, is too large, or finds no slot.
    pub fn put(&self, class: usize, batch: Chain) -> Result<(), Chain> {
        if batch.len() != size_class::batch(class) || !Self::keeps(class) {
            return Err(batch);
        }
        let head = batch.head();
        for slot in &self.classes[class - 1].0 {
            // ORDERING: Release pairs with the Acquire in `take`, for links and marks.
            if slot.load(Ordering::Relaxed).is_null()
                && slot.compare_exchange(null_mut(), head, Ordering::Release, Ordering::Relaxed).is_ok()
            {
                // The slot owns the objects now.
                let _ = batch.into_raw();
                return Ok(());
            }
        }
        Err(batch)
    }

    pub fn take(&self, class: usize) -> Option<Chain> {
        self.classes[class - 1].0.iter().find_map(|slot| {
            if slot.load(Ordering::Relaxed).is_null() {
                return None;
            }
            // ORDERING: Acquire pairs with the Release in `put`.
            let head = slot.swap(null_mut(), Ordering::Acquire);
            // SAFETY: the slot held a linked batch, and it is ours now.
            (!head.is_null()).then(|| unsafe { Chain::from_head(head, size_class::batch(class)) })
        })
    }

    pub fn drain(&self, mut give: impl FnMut(usize, Chain)) {
        for class in 1..=CLASSES {
            while let Some(batch) = self.take(class) {
                give(class, batch);
            }
        }
    }

    /// Approximate while other threads run.
    pub fn bytes(&self) -> usize {
        (1..=CLASSES)
            .map(|class| {
                let held = self.classes[class - 1].0.iter().filter(|s| !s.load(Ordering::Relaxed).is_null()).count();
                held * size_class::batch(class) as usize * size_class::size_of_class(class)
            })
            .sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
