use craton_slab::object::{BadObject, BufferPages, ObjectLayout, ObjectSlabs, PageSupplier, Taken};
use std::collections::{BTreeMap, HashMap};

/// Fills pages with rubbish; can refuse.
pub struct Supplier<'a> {
    pages: BufferPages<'a>,
    out: BTreeMap<usize, usize>,
    pub requests: u32,
    pub refuse: Option<u32>,
    pub from_then_on: bool,
}

// SAFETY: the buffer's pages.
unsafe impl PageSupplier for Supplier<'_> {
    fn get(&mut self, bytes: usize, align: usize) -> Option<*mut u8> {
        self.requests += 1;
        let past = |n| if self.from_then_on { self.requests > n } else { self.requests == n + 1 };
        if self.refuse.is_some_and(past) {
            return None;
        }
        let first = self.pages.get(bytes, align)?;
        // SAFETY: ours.
        unsafe { first.write_bytes(0xa5, bytes) };
        self.out.insert(first as usize, bytes);
        Some(first)
    }

    unsafe fn put(&mut self, first: *mut u8, bytes: usize) {
        assert_eq!(self.out.remove(&(first as usize)), Some(bytes), "not as it was given");
        // SAFETY: ours again.
        unsafe {
            first.write_bytes(0x5a, bytes);
            self.pages.put(first, bytes);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub at: *mut u8,
    stamp: u8,
}

pub struct World<'a> {
    pub slabs: ObjectSlabs,
    pub supplier: Supplier<'a>,
    pub out: Vec<Object>,
    built: HashMap<usize, u8>,
    stamp: u8,
}

/// All pages must be free at the end.
pub fn with_world(layout: ObjectLayout, pages: usize, test: impl FnOnce(&mut World)) {
    let page = layout.page_bytes();
    let mut memory = vec![0u8; (pages + 1) * page];
    let mut map = vec![0; pages.div_ceil(64)];
    // SAFETY: the memory outlives the supplier.
    let pages = unsafe { BufferPages::with_pages(memory.as_mut_ptr(), memory.len(), page, &mut map) };
    let supplier = Supplier { pages, out: BTreeMap::new(), requests: 0, refuse: None, from_then_on: false };
    let mut world =
        World { slabs: ObjectSlabs::new(layout), supplier, out: Vec::new(), built: HashMap::new(), stamp: 0 };
    test(&mut world);
    world.drain();
}

impl World<'_> {
    pub fn alloc(&mut self) -> bool {
        // SAFETY: the supplier is the same.
        let taken = unsafe { self.slabs.alloc(&mut self.supplier) };
        let took = taken.is_some();
        if let Some(taken) = taken {
            self.took(taken);
        }
        self.check();
        took
    }

    pub fn alloc_many(&mut self, n: usize) -> usize {
        (0..n).take_while(|_| self.alloc()).count()
    }

    fn took(&mut self, taken: Taken) {
        let (at, size) = (taken.object(), self.slabs.layout().size());
        assert!((at as usize).is_multiple_of(self.slabs.layout().align()));
        match (taken, self.built.remove(&(at as usize))) {
            (Taken::Constructed(_), Some(stamp)) => self.assert_is(Object { at, stamp }),
            (Taken::Raw(_), None) => (),
            (taken, built) => panic!("{taken:?}, and the model says {built:?}"),
        }
        self.stamp = self.stamp.wrapping_add(1);
        // SAFETY: ours.
        unsafe { at.write_bytes(self.stamp, size) };
        self.out.push(Object { at, stamp: self.stamp });
    }

    fn assert_is(&self, object: Object) {
        // SAFETY: ours, or kept as it was.
        let bytes = unsafe { std::slice::from_raw_parts(object.at, self.slabs.layout().size()) };
        assert!(bytes.iter().all(|b| *b == object.stamp), "{object:?} was written to");
    }

    pub fn free(&mut self, i: usize, constructed: bool) {
        let (layout, object) = (*self.slabs.layout(), self.out.swap_remove(i));
        self.assert_is(object);
        let inside = layout.size() / 2;
        // SAFETY: the object is given up.
        unsafe {
            if inside > 0 {
                let error = BadObject::Inside { start: object.at, offset: inside };
                assert_eq!(self.slabs.free(object.at.add(inside), constructed), Err(error));
            }
            self.slabs.free(object.at, constructed).unwrap();
            assert_eq!(self.slabs.free(object.at, constructed), Err(BadObject::Free));
            assert_eq!(self.slabs.free((&raw const inside).cast_mut().cast(), constructed), Err(BadObject::Foreign));
        }
        if constructed && layout.is_constructed() {
            self.built.insert(object.at as usize, object.stamp);
        }
        self.check();
    }

    pub fn reap(&mut self, keep: u32) {
        let (before, mut destroyed) = (self.slabs.bytes(), Vec::new());
        // SAFETY: the supplier is the same.
        let went = unsafe { self.slabs.reap(keep, &mut self.supplier, |object| destroyed.push(object)) };
        assert_eq!(before - went, self.slabs.bytes());
        for object in destroyed {
            self.built.remove(&(object as usize)).expect("a constructed object is destroyed once");
        }
        assert!(self.slabs.complete() <= keep);
        self.check();
    }

    pub fn check(&self) {
        self.slabs.check().unwrap();
        assert_eq!(self.slabs.in_use(), self.out.len() as u64);
        assert!(self.slabs.partial() + self.slabs.complete() <= self.slabs.stats().slabs);
        assert_eq!(self.slabs.bytes(), self.supplier.out.values().sum::<usize>());
        assert!(self.slabs.total() >= self.slabs.in_use() + self.built.len() as u64);
        let mut places: Vec<usize> = self.out.iter().map(|o| o.at as usize).collect();
        places.sort_unstable();
        let size = self.slabs.layout().size();
        assert!(places.windows(2).all(|w| w[1] - w[0] >= size), "two objects overlap");
        let mut listed = Vec::new();
        self.slabs.for_each_out(|object| listed.push(object as usize));
        listed.sort_unstable();
        assert_eq!(listed, places);
        if let Some(object) = self.out.last() {
            let place = self.slabs.place_of(object.at.wrapping_add(size - 1)).unwrap();
            assert_eq!((place.start, place.offset, place.out), (object.at, size - 1, true));
        }
    }

    pub fn drain(&mut self) {
        while let Some(i) = self.out.len().checked_sub(1) {
            // SAFETY: the supplier is the same.
            assert!(unsafe { self.slabs.destroy(&mut self.supplier, |_| ()) }.is_err());
            self.free(i, i % 3 > 0);
        }
        let built = &mut self.built;
        // SAFETY: the supplier is the same.
        let went = unsafe {
            self.slabs.destroy(&mut self.supplier, |object| {
                built.remove(&(object as usize)).expect("a constructed object is destroyed once");
            })
        };
        assert!(went.is_ok() && self.built.is_empty(), "objects were not destroyed");
        self.check();
        assert!(self.supplier.out.is_empty(), "pages are lost");
    }
}
