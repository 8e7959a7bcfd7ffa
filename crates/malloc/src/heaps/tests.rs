//! Heaps of their own over a simulated floor, which can refuse.

use super::{Options, Place, Refused};
use crate::route::{Found, Misuse};
use crate::size_class::{self, CLASSES, MAX_CLASSED};
use crate::tests::world::{World, world};
use craton_base::{HUGEPAGE_SIZE, PAGE_SIZE, Pages};
use craton_sim::{FaultRule, Rng};
use std::collections::HashSet;
use std::vec::Vec;

const PLAIN: Options<'static> = Options { name: b"", limit: 0, place: Place::Shared };

impl World {
    fn alloc(&self, heap: usize, size: usize) -> *mut u8 {
        self.heap.heaps.alloc(self.heap, heap, size, 1, false).unwrap()
    }

    fn free(&self, heap: usize, pointer: *mut u8) -> Result<(), Misuse> {
        let object = self.heap.heaps.find_in(self.heap, heap, pointer)?;
        // SAFETY: the object was looked up; tests give up what they free.
        unsafe { self.heap.heaps.free(self.heap, object, pointer) }
    }

    fn in_use(&self) -> Pages {
        self.heap.pages.lock().check().unwrap();
        self.heap.pages.lock().in_use()
    }
}

#[test]
fn h4_objects_of_all_sizes_and_heaps_are_distinct_and_keep_their_contents() {
    for place in [Place::Shared, Place::Apart, Place::Huge, Place::Small] {
        let w = world(96, 0);
        let heaps: Vec<_> = (0..3).map(|_| w.heap.heaps.create(Options { place, ..PLAIN }).unwrap()).collect();
        let mut rng = Rng::new(7);
        let mut out: Vec<(usize, *mut u8, usize, u8)> = Vec::new();
        for round in 0..4000u32 {
            if rng.below(100) < 60 || out.is_empty() {
                let most = if rng.below(50) == 0 { 400_000 } else { 3000 };
                let size = 1 + rng.below(most) as usize;
                let heap = heaps[rng.below(3) as usize];
                let object = w.alloc(heap, size);
                if object.is_null() {
                    continue;
                }
                // SAFETY: the object has so many bytes and is ours.
                unsafe { object.write_bytes(round as u8, size) };
                out.push((heap, object, size, round as u8));
            } else {
                let (heap, object, size, fill) = out.swap_remove(rng.below(out.len() as u64) as usize);
                // SAFETY: the object is ours until it is given back.
                unsafe { assert!((0..size).step_by(61).chain([size - 1]).all(|i| *object.add(i) == fill)) };
                w.free(heap, object).unwrap();
            }
        }
        let stats: Vec<_> = heaps.iter().map(|h| w.heap.heaps.stats(*h).unwrap()).collect();
        assert_eq!(stats.iter().map(|s| s.objects).sum::<u64>(), out.len() as u64);
        for s in &stats {
            assert!(s.object_bytes <= s.used_bytes && s.used_bytes <= s.held_bytes, "{s:?}");
        }
        let held: u64 = stats.iter().map(|s| s.held_bytes).sum();
        assert_eq!(w.in_use().bytes().0 as u64, held, "{place:?}");
        let spare: u64 = stats.iter().map(|s| s.held_bytes - s.used_bytes).sum();
        assert_eq!(w.heap.heaps.spare().bytes().0 as u64, spare, "H5");
        heaps.iter().for_each(|h| w.heap.heaps.destroy(w.heap, *h).unwrap());
        assert_eq!((w.in_use(), w.heap.heaps.spare()), (Pages(0), Pages(0)));
    }
}

#[test]
fn a_destroyed_heap_gives_everything_back_and_its_objects_are_no_objects() {
    let w = world(32, 0);
    let heap = w.heap.heaps.create(PLAIN).unwrap();
    let objects: Vec<_> = (1..=CLASSES)
        .map(|c| w.alloc(heap, size_class::size_of_class(c)))
        .chain([w.alloc(heap, MAX_CLASSED + 1), w.alloc(heap, 3 * HUGEPAGE_SIZE)])
        .collect();
    assert!(objects.iter().all(|o| !o.is_null()));
    assert_eq!(objects.iter().collect::<HashSet<_>>().len(), objects.len());
    w.heap.heaps.destroy(w.heap, heap).unwrap();
    assert_eq!(w.in_use(), Pages(0));
    for object in objects {
        let found = w.heap.find(object);
        assert!(matches!(found, Found::Bad(Misuse::Unallocated | Misuse::Freed { .. })), "{found:?}");
    }
    assert_eq!(w.heap.heaps.destroy(w.heap, heap), Err(Misuse::HeapDestroyed));
    assert_eq!(w.heap.heaps.alloc(w.heap, heap, 1, 1, false), Err(Misuse::HeapDestroyed));
    assert_eq!(w.heap.heaps.stats(heap), Err(Misuse::HeapDestroyed));
    let next = w.heap.heaps.create(PLAIN).unwrap();
    assert_ne!(next, heap, "the slot serves again, under another handle");
    assert_eq!(w.heap.heaps.stats(heap), Err(Misuse::HeapDestroyed));
    assert!(!w.alloc(next, 100).is_null());
}

#[test]
fn what_is_no_handle_is_no_heap() {
    let w = world(4, 0);
    assert_eq!(w.heap.heaps.stats(0), Err(Misuse::NoHeap));
    let heap = w.heap.heaps.create(PLAIN).unwrap();
    for bad in [0, 1, 4096, heap + (1 << 40), heap ^ (1 << 63), usize::MAX] {
        assert_eq!(w.heap.heaps.stats(bad), Err(Misuse::NoHeap), "{bad:#x}");
    }
    assert_eq!(w.heap.heaps.stats(heap + 1), Err(Misuse::HeapDestroyed), "another generation of it");
}

#[test]
fn objects_are_of_one_heap() {
    let w = world(8, 0);
    let (a, b) = (w.heap.heaps.create(PLAIN).unwrap(), w.heap.heaps.create(PLAIN).unwrap());
    for size in [48, 100_000, 300_000] {
        let object = w.alloc(a, size);
        assert_eq!(w.free(b, object), Err(Misuse::OtherHeap));
        // SAFETY: the places lie in the object.
        let inside = unsafe { object.add(16) };
        assert!(w.free(a, inside).is_err());
        w.free(a, object).unwrap();
        assert!(matches!(w.free(a, object), Err(Misuse::Freed { .. } | Misuse::Unallocated)), "{size}");
    }
}

#[test]
fn a_limit_counts_slabs_and_large_objects_and_is_kept() {
    let w = world(16, 0);
    let limit = 40 * PAGE_SIZE;
    let heap = w.heap.heaps.create(Options { limit, ..PLAIN }).unwrap();
    let large = w.alloc(heap, 33 * PAGE_SIZE);
    assert!(!large.is_null());
    let mut small = Vec::new();
    loop {
        let object = w.alloc(heap, 1000);
        if object.is_null() {
            break;
        }
        small.push(object);
    }
    let stats = w.heap.heaps.stats(heap).unwrap();
    assert!(stats.used_bytes <= limit as u64 && stats.used_bytes + 8 * PAGE_SIZE as u64 > limit as u64);
    assert_eq!((stats.refused, stats.objects), (1, 1 + small.len() as u64));
    assert!(w.alloc(heap, 33 * PAGE_SIZE).is_null());
    w.free(heap, small.pop().unwrap()).unwrap();
    assert!(!w.alloc(heap, 1000).is_null());
    w.free(heap, large).unwrap();
    assert!(!w.alloc(heap, 33 * PAGE_SIZE).is_null());
}

#[test]
fn hugepages_of_a_heap_that_lies_apart_are_shared_with_nobody() {
    let w = world(64, 0);
    let hugepage = |o: *mut u8| o as usize / HUGEPAGE_SIZE;
    let apart = w.heap.heaps.create(Options { place: Place::Apart, ..PLAIN }).unwrap();
    let shared = w.heap.heaps.create(PLAIN).unwrap();
    let mut sets = [HashSet::new(), HashSet::new()];
    for i in 0..3000 {
        let size = if i % 100 == 0 { 300_000 } else { 100 + i };
        sets[0].insert(hugepage(w.alloc(apart, size)));
        sets[1].insert(hugepage(w.alloc(shared, size)));
    }
    assert!(sets[0].is_disjoint(&sets[1]));
}

#[test]
fn alignments_up_to_a_hugepage_are_kept_and_larger_ones_refused() {
    let w = world(32, 0);
    let heap = w.heap.heaps.create(PLAIN).unwrap();
    for align in (0..=21).map(|n| 1usize << n) {
        for size in [1, 100, 5000, 300_000] {
            let object = w.heap.heaps.alloc(w.heap, heap, size, align, true).unwrap();
            assert!(!object.is_null() && (object as usize).is_multiple_of(align), "{size} at {align}");
            w.free(heap, object).unwrap();
        }
    }
    assert!(w.heap.heaps.alloc(w.heap, heap, 1, 4 << 20, false).unwrap().is_null());
    assert!(w.alloc(heap, usize::MAX / 2).is_null());
}

#[test]
fn a_heap_without_objects_keeps_a_chunk_until_memory_is_released() {
    for place in [Place::Shared, Place::Small] {
        let w = world(32, 0);
        let heap = w.heap.heaps.create(Options { place, ..PLAIN }).unwrap();
        let objects: Vec<_> = (0..5000).map(|_| w.alloc(heap, 1000)).collect();
        objects.into_iter().for_each(|o| w.free(heap, o).unwrap());
        let stats = w.heap.heaps.stats(heap).unwrap();
        assert_eq!((stats.objects, stats.used_bytes), (0, 0));
        assert!((1..=HUGEPAGE_SIZE as u64).contains(&stats.held_bytes), "{stats:?}");
        w.heap.release();
        assert_eq!((w.in_use(), w.heap.heaps.stats(heap).unwrap().held_bytes), (Pages(0), 0));
        assert!(!w.alloc(heap, 1000).is_null());
    }
}

#[test]
fn names_are_short_and_printable() {
    let w = world(4, 0);
    let create = |name| w.heap.heaps.create(Options { name, ..PLAIN });
    let heap = create(b"a name of exactly 31 bytes is 31").map(|_| ());
    assert_eq!(heap, Err(Refused::Name), "32 bytes");
    for bad in [b"a\"b".as_slice(), b"a\\b", b"a\n", b"\xc3\xa4"] {
        assert_eq!(create(bad), Err(Refused::Name));
    }
    let heap = create(b"requests of shard 7, in flight.").unwrap();
    assert_eq!(&w.heap.heaps.stats(heap).unwrap().name, b"requests of shard 7, in flight.\0");
}

#[test]
fn when_the_floor_refuses_the_heap_is_as_before() {
    let sizes = [100, 5000, 200_000, 300_000];
    for nth in 1..40 {
        let w = world(6, 0);
        let heap = w.heap.heaps.create(PLAIN).unwrap();
        w.faults.set(FaultRule::From(nth));
        let mut out = Vec::new();
        for i in 0..200 {
            let (before, pages) = (w.heap.heaps.stats(heap).unwrap(), w.in_use());
            let object = w.alloc(heap, sizes[i % 4]);
            if object.is_null() {
                let after = w.heap.heaps.stats(heap).unwrap();
                assert_eq!((after.refused, after.objects), (before.refused + 1, before.objects));
                assert_eq!((after.used_bytes, after.held_bytes), (before.used_bytes, before.held_bytes));
                assert_eq!(w.in_use(), pages);
            } else {
                out.push(object);
            }
        }
        out.drain(..).for_each(|o| w.free(heap, o).unwrap());
        assert_eq!(w.heap.heaps.stats(heap).unwrap().objects, 0);
        w.heap.heaps.destroy(w.heap, heap).unwrap();
        assert_eq!(w.in_use(), Pages(0));
    }
}

#[test]
fn many_heaps_come_and_go() {
    let w = world(64, 0);
    let mut handles = HashSet::new();
    for round in 0..50 {
        let heaps: Vec<_> = (0..100).map(|_| w.heap.heaps.create(PLAIN).unwrap()).collect();
        for heap in &heaps {
            assert!(handles.insert(*heap), "a handle of round {round} was there before");
            assert!(!w.alloc(*heap, 64).is_null());
        }
        heaps.iter().for_each(|h| w.heap.heaps.destroy(w.heap, *h).unwrap());
    }
    assert_eq!(w.in_use(), Pages(0));
}
