//! The heap with types.

use crate::batch::Batch;
use crate::error::Error;
use crate::options::HeapOptions;
use crate::persist::{Object, Persist, bytes_of, with_buffer};
use crate::pointer::{PPtr, Slot};
use crate::raw::{Change, RawHeap};
use crate::reserved::Reserved;
use crate::transaction::Transaction;
use craton_base::Promise;
use craton_pheap::{Report, Root, Stats};
use std::path::Path;

/// A heap in a file or on a device. All calls but `close` take `&self`, from any thread.
///
/// A list:
/// ```
/// use craton_persistent::{PPtr, PersistentHeap, Slot, persist};
///
/// persist! {
///     struct Node { next: PPtr<Node>, value: u64 }
/// }
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("list.heap");
/// let heap = PersistentHeap::create(&path)?;
/// let list: Slot<Node> = heap.add_root("list")?;
/// for value in 1..=3 {
///     let next = heap.get(list)?;
///     heap.alloc_to(list, &Node { next, value })?;
/// }
/// drop(heap); // As in a crash.
///
/// let (heap, report) = PersistentHeap::open(&path)?;
/// assert!(!report.clean);
/// let list: Slot<Node> = heap.root("list")?;
/// let first = heap.get(heap.get(list)?)?;
/// heap.free_and_link(list, first.next)?; // Pops the first node.
/// let mut values = Vec::new();
/// let mut at = heap.get(list)?;
/// while !at.is_null() {
///     let node = heap.get(at)?;
///     values.push(node.value);
///     at = node.next;
/// }
/// assert_eq!(values, [2, 1]);
/// heap.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Dropped without [`close`](Self::close), the heap is as after a crash: the next opening repairs
/// it. With sync points, changes since the last one are lost.
pub struct PersistentHeap {
    raw: RawHeap,
}

pub(crate) fn slot_of<T: ?Sized>(slot: Slot<T>) -> craton_pheap::Slot {
    craton_pheap::Slot(slot.offset())
}

impl HeapOptions {
    /// In a new file, or on a device without a heap.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<PersistentHeap, Error> {
        Ok(PersistentHeap::new(RawHeap::create(path.as_ref(), self)?.0))
    }

    /// Repairs a heap that was not closed. [`FileError::InUse`](crate::FileError): it is open
    /// in another process, or the kernel is still ending a killed one: try again. A heap cannot be
    /// opened to be read alone.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<(PersistentHeap, Report), Error> {
        let (raw, report) = RawHeap::open(path.as_ref(), self)?;
        Ok((PersistentHeap::new(raw), report))
    }

    /// Reports a new heap as clean.
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<(PersistentHeap, Report), Error> {
        let (raw, report) = RawHeap::open_or_create(path.as_ref(), self)?;
        Ok((PersistentHeap::new(raw), report))
    }
}

impl PersistentHeap {
    pub(crate) fn new(raw: RawHeap) -> Self {
        Self { raw }
    }

    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        HeapOptions::new().create(path)
    }

    pub fn open(path: impl AsRef<Path>) -> Result<(Self, Report), Error> {
        HeapOptions::new().open(path)
    }

    /// Makes all changes durable as far as the file promises, and shortens the file by free memory
    /// at its end that [`maintain`](Self::maintain) has returned. If a full disk refuses, the last
    /// sync point stands.
    pub fn close(self) -> Result<(), Error> {
        self.raw.close()
    }

    /// The heap without types.
    pub fn raw(&self) -> &RawHeap {
        &self.raw
    }

    /// The root was made for the same type: its values have the same fields, at any depth, and so
    /// have the values that pointers in them lead to. Of what those point to, the names are the
    /// same.
    pub fn root<T: Object + ?Sized>(&self, name: &str) -> Result<Slot<T>, Error> {
        let root = self.raw.root(name.as_bytes())?;
        match root.tag == T::TAG || root.tag == T::OLD_TAG {
            true => Ok(PPtr::at_offset(root.slot.0)),
            false => Err(Error::RootType { found: root.tag, expected: T::TAG }),
        }
    }

    /// Durable, with an empty slot.
    pub fn add_root<T: Object + ?Sized>(&self, name: &str) -> Result<Slot<T>, Error> {
        Ok(PPtr::at_offset(self.raw.add_root(name.as_bytes(), T::TAG)?.0))
    }

    pub fn root_or_add<T: Object + ?Sized>(&self, name: &str) -> Result<Slot<T>, Error> {
        match self.root(name) {
            Err(Error::Heap(craton_pheap::Error::NoRoot)) => match self.add_root(name) {
                // Another thread was first.
                Err(Error::Heap(craton_pheap::Error::RootExists { .. })) => self.root(name),
                other => other,
            },
            other => other,
        }
    }

    /// Its slot is empty.
    pub fn remove_root(&self, name: &str) -> Result<(), Error> {
        self.raw.remove_root(name.as_bytes())
    }

    pub fn roots(&self) -> Result<Vec<Root>, Error> {
        self.raw.roots()
    }

    /// A value of more than 8 bytes may mix old and new words of a concurrent change.
    #[inline]
    pub fn get<T: Persist>(&self, at: PPtr<T>) -> Result<T, Error> {
        with_buffer::<T, _>(|buffer| {
            self.raw.read(at.offset(), buffer)?;
            Ok(T::decode(buffer))
        })
    }

    /// Durable; the value has no pointers. A crash may tear more than 8 bytes: use
    /// [`replace`](Self::replace) or a [transaction](Self::transaction).
    pub fn set<T: Persist>(&self, at: PPtr<T>, value: &T) -> Result<(), Error> {
        const { assert!(!T::HAS_POINTERS, "`link` changes a pointer, `replace` a whole object") };
        self.write(at, value)?;
        self.raw.persist(at.offset(), T::BYTES)
    }

    #[inline]
    pub(crate) fn write<T: Persist>(&self, at: PPtr<T>, value: &T) -> Result<(), Error> {
        with_buffer::<T, _>(|buffer| {
            value.encode(buffer);
            self.raw.write(at.offset(), buffer)
        })
    }

    /// A crash leaves both object and pointer, or neither. The slot's old pointer is lost.
    pub fn alloc_to<T: Persist>(&self, slot: Slot<T>, value: &T) -> Result<PPtr<T>, Error> {
        self.reserve(value)?.publish(slot)
    }

    /// Frees the slot's object and makes the slot null.
    pub fn free_from<T: ?Sized>(&self, slot: Slot<T>) -> Result<(), Error> {
        self.raw.free_from(slot_of(slot))
    }

    /// Frees the slot's object in the same step.
    pub fn replace<T: Persist>(&self, slot: Slot<T>, value: &T) -> Result<PPtr<T>, Error> {
        self.reserve(value)?.replace(slot)
    }

    /// The slot's old pointer is lost.
    pub fn link<T: ?Sized>(&self, slot: Slot<T>, pointer: PPtr<T>) -> Result<(), Error> {
        self.raw.set(slot_of(slot), pointer.offset())
    }

    /// The object is freed in the same step.
    pub fn free_and_link<T: ?Sized>(&self, slot: Slot<T>, pointer: PPtr<T>) -> Result<(), Error> {
        self.raw.commit(vec![Change::Free { slot: slot_of(slot), value: pointer.offset() }])
    }

    /// Makes an object that no crash keeps until it is published.
    pub fn reserve<T: Persist>(&self, value: &T) -> Result<Reserved<'_, T>, Error> {
        let reserved = Reserved::new(self, bytes_of::<T>())?;
        self.write(PPtr::at_offset(reserved.at()), value)?;
        Ok(reserved)
    }

    /// Begins changes that happen together.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Calls `f` and commits its changes. An error, a panic, a refused commit or a crash undoes
    /// all.
    /// ```
    /// use craton_persistent::{PersistentHeap, Slot};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let heap = PersistentHeap::create(folder.path().join("accounts.heap"))?;
    /// let accounts: Slot<[i64]> = heap.add_root("accounts")?;
    /// let accounts = heap.alloc_array_to(accounts, &[100, 0])?;
    /// let transfer = |amount| -> Result<(), Box<dyn std::error::Error>> {
    ///     let (from, to) = (heap.element(accounts, 0)?, heap.element(accounts, 1)?);
    ///     heap.transaction(|tx| {
    ///         tx.set(from, &(heap.get(from)? - amount))?;
    ///         tx.set(to, &(heap.get(to)? + amount))?;
    ///         // Refused: what was set comes back.
    ///         if heap.get(from)? < 0 { Err("too little".into()) } else { Ok(()) }
    ///     })
    /// };
    /// transfer(60)?;
    /// assert!(transfer(60).is_err());
    /// assert_eq!(heap.values(accounts)?, [40, 60]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Objects with texts:
    /// ```
    /// use craton_persistent::{Error, PPtr, PersistentHeap, Slot, persist};
    ///
    /// persist! {
    ///     struct Node { next: PPtr<Node>, name: PPtr<[u8]> }
    /// }
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let heap = PersistentHeap::create(folder.path().join("names.heap"))?;
    /// let list: Slot<Node> = heap.add_root("list")?;
    /// heap.transaction(|tx| -> Result<(), Error> {
    ///     let node = tx.alloc_to(list, &Node { next: heap.get(list)?, name: PPtr::NULL })?;
    ///     tx.publish(node.field(Node::name), heap.reserve_array(b"x")?);
    ///     Ok(())
    /// })?;
    /// assert_eq!(heap.values(heap.get(heap.get(list)?)?.name)?, b"x");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Transactions that change the same values need a lock of the program's.
    pub fn transaction<'a, R, E: From<Error>>(
        &'a self,
        f: impl FnOnce(&mut Transaction<'a>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut transaction = Transaction::begin(self)?;
        let result = f(&mut transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Makes all changes up to now durable, all or none, with
    /// [`Durability::SyncPoints`](crate::Durability).
    pub fn sync(&self) -> Result<(), Error> {
        self.raw.sync()
    }

    /// Returns free memory to the system. Call it every 50 ms or so. The file keeps its length
    /// until [`close`](Self::close): stale pointers lead into it.
    pub fn maintain(&self) {
        self.raw.maintain();
    }

    pub fn promise(&self) -> Promise {
        self.raw.promise()
    }

    /// In a heap at rest.
    pub fn stats(&self) -> Stats {
        self.raw.stats()
    }

    /// Checks every invariant, and the roots' targets, in a heap at rest.
    pub fn check(&self) -> Result<(), Error> {
        self.raw.check()
    }
}

#[cfg(test)]
mod tests;
