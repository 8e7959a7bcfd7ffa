//! Batches of free objects on their way from one thread's cache to another's.
//!
//! **What.** Where threads hand objects to each other, one cache overflows with what another lacks. A slot keeps one full batch of a
//! class, so that a batch changes hands in one exchange, whatever its length, and without a lock. To the slabs its objects are out.
//!
//! **From.** TEMERAIRE §3 (the transfer cache). Slots of single batches rather than an array under a lock: nobody waits, and a fork
//! finds nothing half done.
//!
//! **State.** For each class four slots in half a cache line: the first object of a batch, or null. Its objects are linked, and
//! marked as free.
//!
//! **Invariants.** M4: a batch is in one slot at most, since a slot is emptied by exchange and filled only when empty.
//!
//! **Units.** Objects; a batch is [`size_class::batch`] of them.
//!
//! **Not here.** Classes of more than 32 KiB: a batch of those is one object, which the slabs hand out as fast.
//!
//! **Unsafe.** Turns a batch into its first object's address and back.

use crate::size_class::{self, CLASSES};
use core::ptr::null_mut;
use craton_base::atomic::{AtomicPtr, Ordering};
use craton_slab::Chain;

/// Batches of one class that are kept.
const SLOTS: usize = 4;
/// Largest object that is kept.
const MAX_OBJECT: usize = 32 << 10;

/// One class's batches.
#[repr(align(32))]
struct Slots([AtomicPtr<u8>; SLOTS]);

/// Batches of all classes. All zeros are an empty one.
pub struct Transfer {
    classes: [Slots; CLASSES],
}

impl Transfer {
    /// Bytes from one class to the next and slots of each, for those who read the memory of another process.
    pub const SHAPE: [usize; 2] = [size_of::<Slots>(), SLOTS];

    /// No batches.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub const EMPTY: Self = Self { classes: [const { Slots([const { AtomicPtr::new(null_mut()) }; SLOTS]) }; CLASSES] };

    /// Whether batches of a class are kept at all.
    pub fn keeps(class: usize) -> bool {
        size_class::size_of_class(class) <= MAX_OBJECT
    }

    /// Whether there may be room for a batch of a class.
    pub fn has_room(&self, class: usize) -> bool {
        Self::keeps(class) && self.classes[class - 1].0.iter().any(|slot| slot.load(Ordering::Relaxed).is_null())
    }

    /// Keeps a full batch of a class; gives it back when it is not full, too large, or one too many.
    pub fn put(&self, class: usize, batch: Chain) -> Result<(), Chain> {
        if batch.len() != size_class::batch(class) || !Self::keeps(class) {
            return Err(batch);
        }
        let head = batch.head();
        for slot in &self.classes[class - 1].0 {
            // ORDERING: Release pairs with the Acquire in `take`: who takes the batch sees its links and marks.
            if slot.load(Ordering::Relaxed).is_null()
                && slot.compare_exchange(null_mut(), head, Ordering::Release, Ordering::Relaxed).is_ok()
            {
                // The slot owns the objects from here on.
                let _ = batch.into_raw();
                return Ok(());
            }
        }
        Err(batch)
    }

    /// Takes a batch of a class: its first object, and how many there are.
    pub fn take(&self, class: usize) -> Option<Chain> {
        self.classes[class - 1].0.iter().find_map(|slot| {
            if slot.load(Ordering::Relaxed).is_null() {
                return None;
            }
            // ORDERING: Acquire pairs with the Release in `put`.
            let head = slot.swap(null_mut(), Ordering::Acquire);
            // SAFETY: the slot held a batch, linked and ended by null, and it is ours now.
            (!head.is_null()).then(|| unsafe { Chain::from_head(head, size_class::batch(class)) })
        })
    }

    /// Takes every batch out.
    pub fn drain(&self, mut give: impl FnMut(usize, Chain)) {
        for class in 1..=CLASSES {
            while let Some(batch) = self.take(class) {
                give(class, batch);
            }
        }
    }

    /// Bytes of the objects that are kept, as far as can be seen while others use it.
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
