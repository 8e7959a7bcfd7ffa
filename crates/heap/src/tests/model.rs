//! A heap of two shards for loom models. No two live objects may overlap.

use crate::heap::{Heap, Parts};
use crate::hooks::NoHooks;
use crate::length::SpanLength;
use crate::page_map::PageMap;
use crate::record::PageRecord;
use crate::size_class;
use crate::thread_cache::ThreadCache;
use craton_base::atomic::AtomicU32;
use craton_base::{Clock, HugePages, PageId, Pages, Platform, Table};
use craton_pages::{PageHeapExt, Tracker};
use craton_slab::Chain;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::vec::Vec;

/// Loom sees these pages before the threads begin.
const KNOWN: u32 = 8;

pub struct World<F: Platform, C: Clock> {
    heap: Box<Heap<F, C, NoHooks>>,
    /// Live objects: address and bytes.
    out: Mutex<BTreeMap<usize, usize>>,
    classes: Vec<usize>,
    _marks: Box<[AtomicU32]>,
    records: (*mut PageRecord, usize),
    lengths: (*mut SpanLength, usize),
    trackers: (*mut Tracker, usize),
}

// SAFETY: the heap, `Send` and `Sync`, owns the tables; loom runs one thread at a time.
unsafe impl<F: Platform<System: Default + Send + Sync> + Send, C: Clock + Clone + Send + Sync> Sync for World<F, C> {}
// SAFETY: as above.
unsafe impl<F: Platform<System: Default + Send + Sync> + Send, C: Clock + Clone + Send + Sync> Send for World<F, C> {}

impl<F: Platform<System: Default + Send + Sync> + Send, C: Clock + Clone + Send + Sync> World<F, C> {
    /// A floor of one hugepage at `base`; `empty` is any other.
    pub fn new(floor: F, base: *mut u8, empty: F, clock: C, classes: &[usize]) -> Self {
        let hugepages = 1;
        let pages = HugePages(hugepages).pages().0;
        let marks: Box<[AtomicU32]> = (0..pages).map(|_| AtomicU32::new(0)).collect();
        let records: &'static mut [PageRecord] = (0..pages).map(|_| PageRecord::default()).collect::<Vec<_>>().leak();
        let trackers: &'static mut [Tracker] = (0..hugepages).map(|_| Tracker::default()).collect::<Vec<_>>().leak();
        let lengths: &'static mut [SpanLength] = (0..pages).map(|_| SpanLength::default()).collect::<Vec<_>>().leak();
        records[..KNOWN as usize].iter().for_each(PageRecord::touch);
        lengths[..KNOWN as usize].iter().for_each(|length| _ = length.pages());
        // A model's thread has too small a stack.
        let heap = std::thread::scope(|s| {
            s.spawn(|| Box::new(Heap::new(empty, F::System::default(), clock.clone(), clock))).join()
        })
        .expect("there is memory");
        let (at_records, at_trackers) =
            ((records.as_mut_ptr(), records.len()), (trackers.as_mut_ptr(), trackers.len()));
        let at_lengths = (lengths.as_mut_ptr(), lengths.len());
        let parts = Parts {
            base: base as usize,
            // SAFETY: there is a zero entry for each page.
            map: unsafe { PageMap::new(marks.as_ptr()) },
            records: Table::from_slice(records),
            lengths: Table::from_slice(lengths),
            trackers: Table::from_slice(trackers),
            capacity: HugePages(hugepages),
            metadata_at_start: 0,
            metadata_per_hugepage: 0,
            frames: None,
            key: crate::mark::Key::new([0x1357_9bdf_0246_8acf, 0x0f1e_2d3c_4b5a_6978]),
            hardened: false,
        };
        // SAFETY: called once, with the floor's parts.
        unsafe { heap.install(floor, parts) };
        heap.use_shards(2);
        let world = Self {
            heap,
            out: Mutex::new(BTreeMap::new()),
            classes: classes.to_vec(),
            _marks: marks,
            records: at_records,
            lengths: at_lengths,
            trackers: at_trackers,
        };
        // Loom must see what threads may race on.
        (0..KNOWN).for_each(|page| assert_eq!(world.heap.mark(PageId(page)), 0));
        for (home, class) in (0..2).flat_map(|home| classes.iter().map(move |class| (home, *class))) {
            assert!(world.heap.passes_on(home, class));
            assert_eq!(world.heap.class_stats(class).slabs, 0);
        }
        world.heap.touch();
        world
    }

    pub fn hand(&self, home: usize) -> Hand {
        let cache = Box::into_raw(Box::<ThreadCache>::new_uninit()).cast::<ThreadCache>();
        // SAFETY: memory for one cache, ours.
        unsafe { ThreadCache::begin(cache, self.heap.view(), &self.heap.flush_requests, home, 0) };
        Hand { cache }
    }

    /// From slabs, without a cache.
    pub fn take_batch(&self, home: usize, class: usize, n: u32) -> Vec<usize> {
        let mut chain = self.heap.take(home, class, n);
        let mut objects = Vec::new();
        while let Some(object) = chain.pop() {
            self.heap.wipe_mark(class, object);
            self.note_out(object, class);
            objects.push(object as usize);
        }
        objects
    }

    /// Bypasses all caches.
    pub fn give_batch(&self, class: usize, objects: &[usize]) {
        let mut chain = Chain::EMPTY;
        for object in objects {
            self.note_back(*object);
            // SAFETY: the object is given up.
            unsafe {
                self.heap.set_mark(class, *object as *mut u8);
                chain.push(*object as *mut u8);
            }
        }
        // SAFETY: as above.
        unsafe { self.heap.give(class, chain) };
    }

    pub fn look_at(&self, shard: usize, class: usize) {
        self.heap.search.look_at(shard, class);
    }

    fn note_out(&self, object: *mut u8, class: usize) {
        let (start, bytes) = (object as usize, size_class::size_of_class(class));
        let mut out = self.out.lock().unwrap();
        let before = out.range(..start + bytes).next_back();
        assert!(before.is_none_or(|(at, len)| at + len <= start), "two objects that are out overlap");
        out.insert(start, bytes);
    }

    fn note_back(&self, object: usize) {
        assert!(self.out.lock().unwrap().remove(&object).is_some(), "it was not out");
    }

    pub fn size_of(&self, object: usize) -> usize {
        self.heap.find(object as *mut u8).usable().expect("it is out")
    }

    pub fn is_morphed(&self, object: usize) -> bool {
        self.heap.page_of(object).is_some_and(|page| self.heap.mark(page) == size_class::MORPHED)
    }

    pub fn morphed(&self, class: usize) -> (u32, u32) {
        let stats = self.heap.class_stats(class);
        (stats.morphed, stats.settled)
    }

    /// All objects are freed, and no other thread runs.
    pub fn check_empty(&self) {
        assert!(self.out.lock().unwrap().is_empty(), "the model gave all back");
        self.heap.release(|| ());
        assert_eq!(self.heap.morphs.lock().slabs(), 0, "slabs of two classes are left");
        for class in &self.classes {
            let stats = self.heap.class_stats(*class);
            assert_eq!((stats.slabs, stats.objects_out), (0, 0), "objects are lost");
        }
        let pages = self.heap.pages.lock();
        assert_eq!(pages.in_use(), Pages(0), "pages are lost");
        pages.check().unwrap();
    }
}

impl<F: Platform, C: Clock> Drop for World<F, C> {
    fn drop(&mut self) {
        let (records, lengths, trackers) = (self.records, self.lengths, self.trackers);
        // SAFETY: made as slices of these lengths, and no longer used.
        unsafe {
            drop(Box::from_raw(core::ptr::slice_from_raw_parts_mut(records.0, records.1)));
            drop(Box::from_raw(core::ptr::slice_from_raw_parts_mut(lengths.0, lengths.1)));
            drop(Box::from_raw(core::ptr::slice_from_raw_parts_mut(trackers.0, trackers.1)));
        }
    }
}

pub struct Hand {
    cache: *mut ThreadCache,
}

// SAFETY: used by one thread at a time.
unsafe impl Send for Hand {}

impl Hand {
    pub fn take<F: Platform<System: Default + Send + Sync> + Send, C: Clock + Clone + Send + Sync>(
        &self,
        world: &World<F, C>,
        class: usize,
    ) -> usize {
        // SAFETY: the cache is ours, and of this heap.
        let object = unsafe {
            let object = ThreadCache::pop(self.cache, class);
            if object.is_null() { world.heap.refill(self.cache, class) } else { object }
        };
        assert!(!object.is_null(), "there is memory");
        world.note_out(object, class);
        object as usize
    }

    pub fn give<F: Platform<System: Default + Send + Sync> + Send, C: Clock + Clone + Send + Sync>(
        &self,
        world: &World<F, C>,
        object: usize,
    ) {
        world.note_back(object);
        // SAFETY: the cache is ours, and the object is given up.
        let given = unsafe {
            let object = object as *mut u8;
            let found = world.heap.recognise_morphed(object, ThreadCache::pages(self.cache));
            let on_morphed = |(class, mark)| ThreadCache::push_marked(self.cache, class, object, mark);
            if ThreadCache::push(self.cache, object) || found.is_some_and(on_morphed) {
                Ok(())
            } else {
                world.heap.take_back(Some(self.cache), object).map(|_| ())
            }
        };
        assert_eq!(given, Ok(()), "an object that is out");
    }

    pub fn empty<F: Platform<System: Default + Send + Sync> + Send, C: Clock + Clone + Send + Sync>(
        &self,
        world: &World<F, C>,
    ) {
        // SAFETY: the cache is ours.
        unsafe { world.heap.empty_cache(self.cache) };
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // SAFETY: made by `hand`, from a box of this type.
        drop(unsafe { Box::from_raw(self.cache.cast::<core::mem::MaybeUninit<ThreadCache>>()) });
    }
}
