use super::*;
use crate::testing::{Counting, trackers};
use craton_base::Huge64K;

const ONE: HugePages = HugePages(1);

struct World {
    cache: HugeCache<Huge64K>,
    trackers: Trackers<Huge64K>,
    floor: Counting,
}

impl World {
    fn new(capacity: u32) -> Self {
        let cache = HugeCache::new(HugePages(capacity));
        Self { cache, trackers: trackers(capacity), floor: Counting::new(capacity) }
    }

    fn alloc(&mut self, len: u32) -> Option<(u32, u32)> {
        let taken = self.cache.alloc(&mut self.trackers, &mut self.floor, HugePages(len), ONE, 0).ok()?;
        for i in taken.first.0..taken.first.0 + len {
            let t = &mut self.trackers[i as usize];
            t.reset();
            t.occupy(0, Huge64K::PAGES);
        }
        Some((taken.first.0, taken.missing.0))
    }

    fn put(&mut self, first: u32, len: u32) {
        self.cache.put(&mut self.trackers, HugePageId(first), HugePages(len));
    }

    fn release(&mut self, want: u32) -> u64 {
        self.cache.release(&mut self.trackers, &mut self.floor, HugePages(want))
    }
}

#[test]
fn what_has_memory_is_taken_first() {
    let mut w = World::new(16);
    assert_eq!(w.alloc(6), Some((0, 6)));
    w.put(2, 3);
    assert_eq!((w.cache.total(), w.cache.backed(), w.cache.out()), (HugePages(3), Pages(24), HugePages(3)));
    assert_eq!(w.alloc(2), Some((2, 0)));
    assert_eq!(w.alloc(2), Some((6, 2)), "one is left");
    assert_eq!(w.alloc(1), Some((4, 0)));
}

#[test]
fn neighbours_without_memory_make_a_range_long_enough() {
    let mut w = World::new(16);
    assert_eq!(w.alloc(10), Some((0, 10)));
    w.put(2, 4);
    assert_eq!(w.release(4), 32);
    w.put(6, 3);
    // 2..6 unbacked, 6..9 cached, 9 in use, 10..16 never backed.
    assert_eq!(w.alloc(5), Some((4, 2)));
    assert_eq!((w.cache.total(), w.cache.below().free().total()), (HugePages(0), HugePages(8)));
}

#[test]
fn a_request_that_nothing_else_serves_takes_both_kinds_in_any_order() {
    let mut w = World::new(8);
    assert_eq!(w.alloc(8), Some((0, 8)));
    w.put(1, 2);
    assert_eq!(w.release(2), 16);
    [(3, 2), (5, 2)].into_iter().for_each(|(first, len)| w.put(first, len));
    w.cache.alloc_at(&mut w.trackers, HugePageId(5), ONE);
    w.cache.put_unbacked(&mut w.trackers, HugePageId(5), ONE);
    // Two unbacked, two cached, one unbacked, one cached: no aligned window will do.
    let taken = w.cache.alloc(&mut w.trackers, &mut w.floor, HugePages(4), HugePages(2), 0).unwrap();
    assert_eq!((taken.first, taken.missing), (HugePageId(2), HugePages(4)), "all count as missing");
    assert_eq!((w.cache.total(), w.cache.below().free().total()), (ONE, ONE));
}

#[test]
fn short_ranges_lose_their_memory_first() {
    let mut w = World::new(16);
    assert_eq!(w.alloc(12), Some((0, 12)));
    [(0, 6), (8, 1)].into_iter().for_each(|(first, len)| w.put(first, len));
    assert_eq!(w.release(1), 8);
    assert_eq!(w.floor.unbacked, [Huge64K::range(HugePageId(8))]);
    assert_eq!((w.cache.total(), w.release(100), w.cache.total()), (HugePages(6), 48, HugePages(0)));
}

#[test]
fn memory_that_the_floor_keeps_stays_in_the_cache() {
    let mut w = World::new(16);
    assert_eq!(w.alloc(4), Some((0, 4)));
    w.put(0, 4);
    w.floor.keeps = true;
    assert_eq!((w.release(4), w.cache.total()), (0, HugePages(4)));
    assert_eq!(w.alloc(4), Some((0, 0)));
}

#[test]
fn free_hugepages_behind_a_place_may_have_to_be_granted() {
    let mut w = World::new(20);
    assert_eq!(w.alloc(2), Some((0, 2)));
    let World { cache, trackers, floor } = &mut w;
    assert!(cache.is_free(trackers, floor, HugePageId(2), HugePages(18)));
    assert!(!cache.is_free(trackers, floor, HugePageId(2), HugePages(19)));
    assert!(!cache.is_free(trackers, floor, HugePageId(1), HugePages(2)));
    assert_eq!(cache.below().granted(), HugePages(20));
}
