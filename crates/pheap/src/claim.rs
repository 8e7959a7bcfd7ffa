//! Claims: of two frees of one object at once, one succeeds. A free claims its object before it
//! commits a line, and then checks that the slot still holds it.
//!
//! **Limit.** On a medium without write-back, or in a gc heap, the first thread's last free without
//! a claim may meet a second thread's first free of the same object. The object's bit decides
//! between two `free_from`; a batch succeeds as well, and so do both in a gc heap, which has no
//! bits.

use crate::alloc::Found;
use crate::error::Error;
use crate::heap::{Heap, Slot};
use crate::layout::UNIT;
use crate::units::Claim;
use craton_base::{Medium, Space};

impl<M: Medium + Space> Heap<M> {
    /// A thread that is alone claims only where lines must be durable before bits are cleared: with
    /// write-back, and not in a gc heap, which has neither.
    #[inline]
    pub(crate) fn claims(&self) -> bool {
        M::FLUSHES && self.sup.model.is_logged() || self.seats.are_many()
    }

    /// If the object is still there.
    #[inline]
    pub(crate) fn claim(&self, slot: Slot, at: u64, found: &Found) -> Result<(), Error> {
        let claim = match found {
            Found::Large { .. } => None,
            _ => Some(self.units.claim(at).ok_or(Error::AlreadyFree { at })?),
        };
        let there = self.load(slot.0);
        let is_allocated = match found {
            Found::Small { object, .. } if object.is_guest() => {
                object.as_guest().is_allocated(&self.medium, at & !(UNIT - 1))
            }
            Found::Small { object, .. } if self.sup.model.is_logged() => {
                let (home, bit) = object.bit();
                self.load(home) & bit != 0
            }
            _ => true,
        };
        if there == at && is_allocated {
            return Ok(());
        }
        // The object may be free, and its slab another's.
        claim.into_iter().for_each(Claim::end);
        Err(if there == 0 { Error::Null { slot: slot.0 } } else { Error::AlreadyFree { at } })
    }

    /// Call before the object may serve again.
    #[inline]
    pub(crate) fn unclaim(&self, at: u64, found: &Found) {
        if !matches!(found, Found::Large { .. }) {
            self.units.unclaim(at);
        }
    }
}
