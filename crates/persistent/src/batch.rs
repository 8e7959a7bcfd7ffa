//! Changes that happen together.

use crate::error::Error;
use crate::heap::{PersistentHeap, slot_of};
use crate::persist::Persist;
use crate::pointer::{PPtr, Slot};
use crate::raw::Change;
use crate::reserved::Reserved;

/// [`PersistentHeap`]'s calls, done together or not at all, for one fence. Dropped, it changes
/// nothing.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use craton_persistent::{PersistentHeap, Slot};
///
/// let heap = PersistentHeap::create(folder.path().join("a.heap"))?;
/// let (a, b): (Slot<u64>, Slot<u64>) = (heap.add_root("a")?, heap.add_root("b")?);
/// heap.alloc_to(a, &1)?;
/// let mut batch = heap.batch();
/// batch.free(a); // The number moves from a to b.
/// batch.alloc(b, &1)?;
/// batch.commit()?;
/// assert!(heap.get(a)?.is_null());
/// assert_eq!(heap.get(heap.get(b)?)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// A map from numbers to texts, with chains of entries:
/// ```
/// use craton_persistent::{Error, PPtr, PersistentHeap, Slot, persist};
///
/// persist! {
///     struct Entry { next: PPtr<Entry>, text: PPtr<[u8]>, key: u64 }
/// }
/// type Table = [PPtr<Entry>];
///
/// /// The entry of a key, or the slot where its chain begins.
/// fn find(heap: &PersistentHeap, map: Slot<Table>, key: u64) -> Result<Result<PPtr<Entry>, Slot<Entry>>, Error> {
///     let table = heap.get(map)?;
///     let chain = heap.element(table, key % heap.len_of(table)?)?;
///     let mut at = heap.get(chain)?;
///     while !at.is_null() {
///         let entry = heap.get(at)?;
///         if entry.key == key {
///             return Ok(Ok(at));
///         }
///         at = entry.next;
///     }
///     Ok(Err(chain))
/// }
///
/// fn insert(heap: &PersistentHeap, map: Slot<Table>, key: u64, text: &str) -> Result<(), Error> {
///     match find(heap, map, key)? {
///         Ok(entry) => heap.replace_array(entry.field(Entry::text), text.as_bytes()).map(drop),
///         Err(chain) => {
///             // The entry's field has the text in the step in which the chain has the entry.
///             let mut batch = heap.batch();
///             let entry = batch.alloc(chain, &Entry { next: heap.get(chain)?, text: PPtr::NULL, key })?;
///             batch.publish(entry.field(Entry::text), heap.reserve_array(text.as_bytes())?);
///             batch.commit()
///         }
///     }
/// }
///
/// # let folder = tempfile::tempdir()?;
/// let heap = PersistentHeap::create(folder.path().join("map.heap"))?;
/// let map: Slot<Table> = heap.add_root("map")?;
/// heap.alloc_array_to(map, &[PPtr::NULL; 8])?;
/// for (key, text) in [(1, "one"), (9, "nine"), (17, "17"), (17, "seventeen")] {
///     insert(&heap, map, key, text)?;
/// }
/// let Ok(entry) = find(&heap, map, 17)? else { panic!("the key was inserted") };
/// assert_eq!(heap.values(heap.get(entry)?.text)?, b"seventeen");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batch<'a> {
    heap: &'a PersistentHeap,
    changes: Vec<Change<'a>>,
    /// The first refusal, for the commit.
    refused: Result<(), Error>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(heap: &'a PersistentHeap) -> Self {
        Self { heap, changes: Vec::new(), refused: Ok(()) }
    }

    pub fn alloc<T: Persist>(&mut self, slot: Slot<T>, value: &T) -> Result<PPtr<T>, Error> {
        let reserved = self.heap.reserve(value)?;
        Ok(self.publish(slot, reserved))
    }

    pub fn alloc_array<T: Persist>(&mut self, slot: Slot<[T]>, values: &[T]) -> Result<PPtr<[T]>, Error> {
        let reserved = self.heap.reserve_array(values)?;
        Ok(self.publish(slot, reserved))
    }

    /// Links an object of [`PersistentHeap::reserve`] or [`PersistentHeap::reserve_array`]. The
    /// commit refuses one of another heap.
    pub fn publish<T: ?Sized>(&mut self, slot: Slot<T>, reserved: Reserved<'a, T>) -> PPtr<T> {
        let (pointer, object) = (reserved.pointer(), reserved.into_object());
        match object.check_heap(self.heap.raw()) {
            Ok(()) => {
                // The range was written, so it lies in the heap.
                let _ = self.heap.raw().flush(object.at().0, object.size());
                self.changes.push(Change::Publish { slot: slot_of(slot), object });
            }
            Err(other) => self.refused = self.refused.and(Err(other)),
        }
        pointer
    }

    pub fn free<T: ?Sized>(&mut self, slot: Slot<T>) {
        self.free_and_link(slot, PPtr::NULL);
    }

    pub fn free_and_link<T: ?Sized>(&mut self, slot: Slot<T>, pointer: PPtr<T>) {
        self.changes.push(Change::Free { slot: slot_of(slot), value: pointer.offset() });
    }

    pub fn link<T: ?Sized>(&mut self, slot: Slot<T>, pointer: PPtr<T>) {
        self.changes.push(Change::Set { slot: slot_of(slot), value: pointer.offset() });
    }

    /// Refuses a slot or an object named twice, and more changes than a lane holds (at least 63 at
    /// first).
    pub fn commit(self) -> Result<(), Error> {
        self.refused?;
        self.heap.raw().commit(self.changes)
    }
}
