use super::{RawHeap, Reserved};
use crate::error::Error;
use crate::media::each;
use craton_base::Medium;
use craton_pheap::Slot;

#[derive(Debug)]
pub enum Change<'a> {
    /// Publishes a durable object. The slot's old offset is lost.
    Publish { slot: Slot, object: Reserved<'a> },
    /// Frees the slot's object and stores a value: the next of a list, or 0.
    Free { slot: Slot, value: u64 },
    /// Stores a value.
    Set { slot: Slot, value: u64 },
}

impl Change<'_> {
    fn check_heap(&self, heap: &RawHeap) -> Result<(), Error> {
        if let Self::Publish { object, .. } = self { object.check_heap(heap) } else { Ok(()) }
    }
}

impl RawHeap {
    /// Makes all changes, or none after a refusal or a crash. Objects' contents must be flushed
    /// before; after an error the objects of all `Publish` are free.
    pub fn commit(&self, changes: Vec<Change<'_>>) -> Result<(), Error> {
        // Objects are dropped without the lock, which their own heap takes again.
        changes.iter().try_for_each(|change| change.check_heap(self))?;
        let _storing = self.storing()?;
        each!(AnyHeap, &self.heap, heap => {
            heap.medium().fence();
            let mut batch = heap.batch();
            for change in changes {
                match change {
                    Change::Publish { slot, object } => batch.publish(slot, object.take_for(self)?),
                    Change::Free { slot, value } => batch.free_and_set(slot, value),
                    Change::Set { slot, value } => batch.set(slot, value),
                }
            }
            Ok(batch.commit()?)
        })
    }
}
