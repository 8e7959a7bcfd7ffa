use super::{Count, Heap, ROOTS, Refused};
use craton_base::{Medium, Space};
use craton_kv::heap::HeapStore;
use craton_kv::{Change, Store, StoreError};
use craton_pheap::{self as pheap, Error, Offset, Slot};
use std::sync::{Mutex, PoisonError};

/// For objects.
const SLAB_BYTES: f64 = 64_512.0;

pub struct Craton<M: Medium + Space> {
    store: HeapStore<M>,
    tree: u64,
    roots: Vec<Slot>,
    count: Option<fn(&M) -> &dyn Count>,
    why: Mutex<String>,
}

impl<M: Medium + Space> Craton<M> {
    /// `count`: of its medium.
    pub fn new(heap: pheap::Heap<M>, count: Option<fn(&M) -> &dyn Count>) -> Result<Self, Error> {
        let there = heap.roots()?;
        let root = |number: u64| {
            let name = number.to_le_bytes();
            let found = there.iter().find(|root| root.name() == name).map(|root| root.slot);
            found.map_or_else(|| heap.add_root(&name, 0), Ok)
        };
        let roots = (0..ROOTS).map(root).collect::<Result<_, _>>()?;
        let (store, tree) = HeapStore::new(heap)?;
        Ok(Self { store, tree, roots, count, why: Mutex::default() })
    }

    pub fn heap(&self) -> &pheap::Heap<M> {
        self.store.heap()
    }

    #[cold]
    fn refused(&self, error: Error) -> Refused {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
        Refused
    }
}

impl<M: Medium + Space> Heap for Craton<M> {
    const SLOT_BYTES: u64 = 8;

    fn table(&self, number: u64, bytes: u64) -> Result<u64, Refused> {
        let zero = |heap: &pheap::Heap<M>, at: Offset| (0..bytes / 8).for_each(|word| heap.write(at, 8 * word, 0));
        let made = self.heap().alloc_with(Slot(self.root(number)), bytes, zero);
        made.map(|at| at.0).map_err(|error| self.refused(error))
    }

    fn root(&self, number: u64) -> u64 {
        self.roots[number as usize].0
    }

    #[inline]
    fn alloc(&self, slot: u64, bytes: u64) -> Result<u64, Refused> {
        match self.heap().alloc_to(Slot(slot), bytes) {
            Ok(at) => Ok(at.0),
            Err(error) => Err(self.refused(error)),
        }
    }

    #[inline]
    fn free(&self, slot: u64) -> Result<(), Refused> {
        match self.heap().free_from(Slot(slot)) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.refused(error)),
        }
    }

    #[inline]
    fn holds(&self, slot: u64) -> u64 {
        self.heap().read(slot)
    }

    fn tree_slot(&self) -> u64 {
        self.tree
    }

    fn count(&self) -> Option<&dyn Count> {
        self.count.map(|of| of(self.heap().medium()))
    }

    fn slabs(&self) -> Vec<f64> {
        self.heap().slabs().iter().map(|slab| slab.live_bytes as f64 / SLAB_BYTES).collect()
    }

    fn why(&self) -> String {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<M: Medium + Space> Store for Craton<M> {
    type Reserved = pheap::Reserved;

    #[inline]
    fn load(&self, at: u64) -> Option<u64> {
        self.store.load(at)
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        self.store.store(at, value);
    }

    fn reserve(&self, bytes: u64) -> Result<Self::Reserved, StoreError> {
        self.store.reserve(bytes)
    }

    fn cancel(&self, object: Self::Reserved) {
        self.store.cancel(object);
    }

    #[inline]
    fn fill(&self, object: &mut Self::Reserved, words: impl Iterator<Item = u64>) {
        self.store.fill(object, words);
    }

    fn persist(&self, at: u64, bytes: u64) {
        self.store.persist(at, bytes);
    }

    fn maintain(&self, now_ms: u64) {
        self.store.maintain(now_ms);
    }

    fn commit<I: IntoIterator<Item = Change<Self::Reserved>>>(&self, changes: I) -> Result<(), StoreError> {
        self.store.commit(changes)
    }
}
