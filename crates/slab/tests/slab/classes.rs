//! A slab cache over real bytes, against a list of live objects.

mod model;
mod morph;
mod pair;
mod small;

use craton_base::{HugePages, Pages, Table};
use craton_sim::{BumpSpans, Checked, FaultPlan, Faulty, RealMemory};
use craton_slab::{Chain, Geometry, SlabCache, SlabRecord};
use std::collections::BTreeSet;

pub struct World {
    pub cache: SlabCache,
    memory: RealMemory,
    records: Table<SlabRecord>,
    source: Checked<Faulty<BumpSpans>>,
    pub out: Vec<usize>,
}

impl World {
    pub fn new(geometry: Geometry, faults: FaultPlan) -> Self {
        Self::keeping(geometry, 0, faults)
    }

    pub fn keeping(geometry: Geometry, most: u16, faults: FaultPlan) -> Self {
        let hugepages = HugePages(4);
        let records: Vec<SlabRecord> = (0..hugepages.pages().0).map(|_| SlabRecord::default()).collect();
        Self {
            cache: SlabCache::keeping(geometry, most),
            memory: RealMemory::new(hugepages),
            records: Table::from_slice(records.leak()),
            source: Checked::new(Faulty::new(BumpSpans::new(hugepages.pages()), faults)),
            out: Vec::new(),
        }
    }

    /// Returns how many there are.
    pub fn alloc(&mut self, want: u32) -> usize {
        // SAFETY: base, records and source are this cache's.
        let mut chain =
            unsafe { self.cache.alloc(want, self.memory.base(), &self.records, &mut self.source, |_| ()) }.unwrap();
        let mut got = 0;
        while let Some(object) = chain.pop() {
            assert_eq!(object as usize % 16, 0);
            // SAFETY: live, of this size.
            unsafe { object.write_bytes(0xa5, self.cache.geometry().object as usize) };
            self.out.push(object as usize);
            got += 1;
        }
        assert!(got <= want as usize);
        self.check();
        got
    }

    pub fn free(&mut self, places: impl Iterator<Item = usize>) {
        let places: BTreeSet<usize> = places.filter(|i| *i < self.out.len()).collect();
        let mut chain = Chain::EMPTY;
        for i in places.into_iter().rev() {
            // SAFETY: given up.
            unsafe { chain.push(self.out.remove(i) as *mut u8) };
        }
        // SAFETY: as in `alloc`; this cache's objects.
        unsafe { self.cache.free(chain, self.memory.base(), &self.records, &mut self.source, |_| ()) }.unwrap();
        self.check();
    }

    /// Whether freeing a place `objects` behind the last live one was refused.
    pub fn free_place_behind(&mut self, objects: usize) -> bool {
        let place = self.out[self.out.len() - 1] + objects * self.cache.geometry().object as usize;
        let mut chain = Chain::EMPTY;
        // SAFETY: the place lies on the slab.
        unsafe {
            chain.push(place as *mut u8);
            self.cache.free(chain, self.memory.base(), &self.records, &mut self.source, |_| ()) == Err(place as *mut u8)
        }
    }

    pub fn free_first_twice(&mut self) -> bool {
        let object = self.out[0] as *mut u8;
        let mut chain = Chain::EMPTY;
        // SAFETY: out; the chain ends after two, wherever links lead.
        unsafe {
            chain.push(object);
            chain.push(object);
            self.cache.free(chain, self.memory.base(), &self.records, &mut self.source, |_| ()) == Err(object)
        }
    }

    pub fn check(&self) {
        let g = self.cache.geometry();
        let mut sorted = self.out.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|w| w[1] - w[0] >= g.object as usize), "two objects overlap");
        let full: Vec<_> = self.source.spans().map(|s| s.first).filter(|p| self.is_full(p.0)).collect();
        // SAFETY: as in `alloc`.
        unsafe { self.cache.check(self.memory.base(), &self.records, &full) }.unwrap();
        assert_eq!(self.cache.stats().objects_out, self.out.len() as u64);
        assert_eq!(self.cache.stats().slabs * g.pages.0, self.source.live().0);
    }

    fn is_full(&self, page: u32) -> bool {
        let g = self.cache.geometry();
        let start = self.memory.base() as usize + page as usize * 8192;
        let end = start + g.pages.bytes().0;
        self.out.iter().filter(|o| (start..end).contains(*o)).count() == g.capacity as usize
    }

    pub fn drain(&mut self) {
        self.free(0..self.out.len());
        self.free_complete(u32::MAX);
        assert_eq!((self.cache.stats().slabs, self.source.live()), (0, Pages(0)));
        self.check();
    }

    pub fn free_complete(&mut self, most: u32) -> u32 {
        let before = (self.cache.complete(), self.cache.stats().slabs);
        self.cache.free_complete(most, &self.records, &mut self.source);
        let went = before.0 - self.cache.complete();
        assert_eq!(before.1 - self.cache.stats().slabs, went);
        self.check();
        went
    }

    pub fn free_idle(&mut self) {
        self.cache.free_idle(&self.records, &mut self.source);
        self.check();
    }

    pub fn refuse(&mut self, want: u32) -> usize {
        let before = (self.source.live(), self.cache.stats().slabs);
        let got = self.alloc(want);
        assert_eq!((self.source.live(), self.cache.stats().slabs), before);
        got
    }
}
