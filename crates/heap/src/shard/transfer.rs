//! The transfer cache: batches of free objects between threads' caches.
//!
//! **What.** Where threads pass objects on, one cache overflows with what another lacks. A slot
//! keeps one full batch of a class, so a batch changes hands in one lock-free exchange. To the
//! slabs its objects are live.
//!
//! **From.** TEMERAIRE §3 (transfer cache). Slots of one batch instead of an array under a lock: no
//! thread waits, and a fork finds a consistent state.
//!
//! **State.** Four slots for each class in half a cache line: a batch's first object, or null.
//!
//! **Invariants.** M4: a batch is in at most one slot: an exchange empties it before it is filled.
//!
//! **Not here.** Classes above 32 KiB: their batch is one object, which slabs serve as fast.
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
    /// Stride of classes in bytes, and slots of each, for readers of another process's memory.
    pub const SHAPE: [usize; 2] = [size_of::<Slots>(), SLOTS];

    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub const EMPTY: Self = Self { classes: [const { Slots([const { AtomicPtr::new(null_mut()) }; SLOTS]) }; CLASSES] };

    pub fn keeps(class: usize) -> bool {
        size_class::size_of_class(class) <= MAX_OBJECT
    }

    pub fn has_room(&self, class: usize) -> bool {
        Self::keeps(class) && self.classes[class - 1].0.iter().any(|slot| slot.load(Ordering::Relaxed).is_null())
    }

    /// Returns the batch if not full, too large, or without a slot.
    pub fn put(&self, class: usize, batch: Chain) -> Result<(), Chain> {
        if batch.len() != size_class::batch(class) || !Self::keeps(class) {
            return Err(batch);
        }
        let head = batch.head();
        for slot in &self.classes[class - 1].0 {
            // ORDERING: Release pairs with the Acquire in `take`, publishing links and marks.
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
            // SAFETY: the slot held a linked, null-terminated batch, and it is ours now.
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
