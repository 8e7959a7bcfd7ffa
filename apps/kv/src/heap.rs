//! The crash-consistent heap as the tree's store.

use crate::store::{Change, Reservation, Store, StoreError};
use craton_base::atomic::Ordering;
use craton_base::{LINE_BYTES, Medium, Space};
use craton_pheap::{Error, Heap, Model, Reserved, Slot};

const ROOT: &[u8] = b"craton-kv";
const TAG: u64 = u64::from_le_bytes(*b"CRATONKV");

pub struct HeapStore<M: Medium + Space>(Heap<M>);

impl<M: Medium + Space> HeapStore<M> {
    /// Also returns the tree's slot.
    pub fn new(heap: Heap<M>) -> Result<(Self, u64), Error> {
        let slot = match heap.root(ROOT) {
            Ok(root) if root.tag == TAG => root.slot,
            Ok(root) => return Err(Error::RootExists { slot: root.slot.0 }),
            Err(Error::NoRoot) => heap.add_root(ROOT, TAG)?,
            Err(error) => return Err(error),
        };
        // Readers follow offsets of freed objects.
        heap.keep_length();
        Ok((Self(heap), slot.0))
    }

    pub fn heap(&self) -> &Heap<M> {
        &self.0
    }

    pub fn into_heap(self) -> Heap<M> {
        self.0
    }
}

impl Reservation for Reserved {
    fn at(&self) -> u64 {
        Reserved::at(self).0
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::NoMemory => Self::NoMemory,
            Error::TooLarge { size, .. } => Self::TooLarge(size),
            Error::NotASlot { at }
            | Error::Null { slot: at }
            | Error::NotAnObject { at }
            | Error::AlreadyFree { at }
            | Error::Twice { at }
            | Error::OutOfRange { at, .. }
            | Error::Damaged { at, .. } => Self::Damaged(at),
            // The tree's requests do not fail otherwise.
            _ => Self::Damaged(0),
        }
    }
}

impl<M: Medium + Space> Store for HeapStore<M> {
    type Reserved = Reserved;

    #[inline]
    fn load(&self, at: u64) -> Option<u64> {
        let medium = self.0.medium();
        let is_there = at.is_multiple_of(8) && at < medium.len();
        // ORDERING: pairs with the release of `Medium::store`.
        is_there.then(|| medium.word(at).load(Ordering::Acquire))
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        self.0.medium().store(at, value);
    }

    fn reserve(&self, bytes: u64) -> Result<Reserved, StoreError> {
        Ok(self.0.reserve(bytes)?)
    }

    fn cancel(&self, object: Reserved) {
        self.0.cancel(object);
    }

    #[inline]
    fn fill(&self, object: &mut Reserved, words: impl Iterator<Item = u64>) {
        self.0.fill(object, words);
    }

    fn persist(&self, at: u64, bytes: u64) {
        if M::FLUSHES {
            let first = at / LINE_BYTES * LINE_BYTES;
            (first..at + bytes).step_by(LINE_BYTES as usize).for_each(|line| self.0.medium().flush(line));
        }
    }

    fn maintain(&self, now_ms: u64) {
        self.0.maintain(now_ms);
    }

    fn commit<I: IntoIterator<Item = Change<Reserved>>>(&self, changes: I) -> Result<(), StoreError> {
        let mut changes = changes.into_iter();
        let Some(first) = changes.next() else { return Ok(()) };
        let first = match first {
            Change::Link { slot, object, word, value } => {
                debug_assert!(changes.next().is_none());
                return Ok(self.0.publish_fixed(Slot(slot), object, Slot(word), value)?);
            }
            Change::Replace { slot, object } => {
                debug_assert!(changes.next().is_none());
                return Ok(self.0.replace(Slot(slot), object)?);
            }
            first => first,
        };
        let second = changes.next();
        // A heap without lines would not make the slot durable.
        if let (Change::Free { slot }, None, true) = (&first, &second, self.0.model() != Model::Gc) {
            return Ok(self.0.free_from(Slot(*slot))?);
        }
        // Objects must be durable before a redo line names them.
        self.0.medium().fence();
        let mut batch = self.0.batch();
        for change in [first].into_iter().chain(second).chain(changes) {
            match change {
                Change::Attach { slot, object } => batch.publish(Slot(slot), object),
                Change::Free { slot } => batch.free(Slot(slot)),
                Change::Set { slot, value } => batch.set(Slot(slot), value),
                Change::Replace { .. } | Change::Link { .. } => unreachable!("it is the only change"),
            }
        }
        Ok(batch.commit()?)
    }
}
