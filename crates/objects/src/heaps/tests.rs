use super::{BUILT_IN, Options, Place, Refused};
use crate::hints;
use crate::world::{World, world};
use craton_base::{HUGEPAGE_SIZE, PAGE_SIZE, Pages};
use craton_heap::size_class::{self, CLASSES, MAX_CLASSED};
use craton_heap::{Found, Misuse};
use craton_sim::{FaultRule, Rng};
use std::collections::HashSet;
use std::vec::Vec;

const PLAIN: Options<'static> = Options { name: b"", limit: 0, place: Place::Shared };

impl World {
    fn alloc(&self, heap: usize, size: usize) -> *mut u8 {
        self.own().alloc(heap, size, 1, false).unwrap()
    }

    fn free(&self, heap: usize, pointer: *mut u8) -> Result<(), Misuse> {
        let object = self.own().find_in(heap, pointer)?;
        // SAFETY: tests give up what they free.
        unsafe { self.own().free(object, pointer) }
    }
}

#[test]
fn h4_objects_of_all_sizes_and_heaps_are_distinct_and_keep_their_contents() {
    for place in [Place::Shared, Place::Apart, Place::Huge, Place::Small] {
        let w = world(96);
        let heaps: Vec<_> = (0..3).map(|_| w.heaps.create(Options { place, ..PLAIN }).unwrap()).collect();
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
                // SAFETY: ours, of `size` bytes.
                unsafe { object.write_bytes(round as u8, size) };
                out.push((heap, object, size, round as u8));
            } else {
                let (heap, object, size, fill) = out.swap_remove(rng.below(out.len() as u64) as usize);
                // SAFETY: ours until freed.
                unsafe { assert!((0..size).step_by(61).chain([size - 1]).all(|i| *object.add(i) == fill)) };
                w.free(heap, object).unwrap();
            }
        }
        let stats: Vec<_> = heaps.iter().map(|h| w.heaps.stats(*h).unwrap()).collect();
        assert_eq!(stats.iter().map(|s| s.objects).sum::<u64>(), out.len() as u64);
        for s in &stats {
            assert!(s.object_bytes <= s.used_bytes && s.used_bytes <= s.held_bytes, "{s:?}");
        }
        let held: u64 = stats.iter().map(|s| s.held_bytes).sum();
        assert_eq!(w.pages_in_use().bytes().0 as u64, held, "{place:?}");
        let spare: u64 = stats.iter().map(|s| s.held_bytes - s.used_bytes).sum();
        assert_eq!(w.heaps.spare().bytes().0 as u64, spare, "H5");
        heaps.iter().for_each(|h| w.own().destroy(*h).unwrap());
        assert_eq!((w.pages_in_use(), w.heaps.spare()), (Pages(0), Pages(0)));
    }
}

#[test]
fn a_destroyed_heap_gives_everything_back_and_its_objects_are_no_objects() {
    let w = world(32);
    let heap = w.heaps.create(PLAIN).unwrap();
    let objects: Vec<_> = (1..=CLASSES)
        .map(|c| w.alloc(heap, size_class::size_of_class(c)))
        .chain([w.alloc(heap, MAX_CLASSED + 1), w.alloc(heap, 3 * HUGEPAGE_SIZE)])
        .collect();
    assert!(objects.iter().all(|o| !o.is_null()));
    assert_eq!(objects.iter().collect::<HashSet<_>>().len(), objects.len());
    w.own().destroy(heap).unwrap();
    assert_eq!(w.pages_in_use(), Pages(0));
    for object in objects {
        let found = w.heap.find(object);
        assert!(matches!(found, Found::Bad(Misuse::Unallocated | Misuse::Freed { .. })), "{found:?}");
    }
    assert_eq!(w.own().destroy(heap), Err(Misuse::HeapDestroyed));
    assert_eq!(w.own().alloc(heap, 1, 1, false), Err(Misuse::HeapDestroyed));
    assert_eq!(w.heaps.stats(heap), Err(Misuse::HeapDestroyed));
    let next = w.heaps.create(PLAIN).unwrap();
    assert_ne!(next, heap, "the slot serves again, under another handle");
    assert_eq!(w.heaps.stats(heap), Err(Misuse::HeapDestroyed));
    assert!(!w.alloc(next, 100).is_null());
}

#[test]
fn what_is_no_handle_is_no_heap() {
    let w = world(4);
    assert_eq!(w.heaps.stats(0), Err(Misuse::NoHeap));
    let heap = w.heaps.create(PLAIN).unwrap();
    for bad in [0, 1, 4096, heap + (1 << 40), heap ^ (1 << 63), usize::MAX] {
        assert_eq!(w.heaps.stats(bad), Err(Misuse::NoHeap), "{bad:#x}");
    }
    assert_eq!(w.heaps.stats(heap + 1), Err(Misuse::HeapDestroyed), "another generation of it");
}

#[test]
fn objects_are_of_one_heap() {
    let w = world(8);
    let (a, b) = (w.heaps.create(PLAIN).unwrap(), w.heaps.create(PLAIN).unwrap());
    for size in [48, 100_000, 300_000] {
        let object = w.alloc(a, size);
        assert_eq!(w.free(b, object), Err(Misuse::OtherHeap));
        // SAFETY: in the object.
        let inside = unsafe { object.add(16) };
        assert!(w.free(a, inside).is_err());
        w.free(a, object).unwrap();
        assert!(matches!(w.free(a, object), Err(Misuse::Freed { .. } | Misuse::Unallocated)), "{size}");
    }
}

#[test]
fn a_limit_counts_slabs_and_large_objects_and_is_kept() {
    let w = world(16);
    let limit = 40 * PAGE_SIZE;
    let heap = w.heaps.create(Options { limit, ..PLAIN }).unwrap();
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
    let stats = w.heaps.stats(heap).unwrap();
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
    let w = world(64);
    let hugepage = |o: *mut u8| o as usize / HUGEPAGE_SIZE;
    let apart = w.heaps.create(Options { place: Place::Apart, ..PLAIN }).unwrap();
    let shared = w.heaps.create(PLAIN).unwrap();
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
    let w = world(32);
    let heap = w.heaps.create(PLAIN).unwrap();
    for align in (0..=21).map(|n| 1usize << n) {
        for size in [1, 100, 5000, 300_000] {
            let object = w.own().alloc(heap, size, align, true).unwrap();
            assert!(!object.is_null() && (object as usize).is_multiple_of(align), "{size} at {align}");
            w.free(heap, object).unwrap();
        }
    }
    assert!(w.own().alloc(heap, 1, 4 << 20, false).unwrap().is_null());
    assert!(w.alloc(heap, usize::MAX / 2).is_null());
}

#[test]
fn a_heap_without_objects_keeps_a_chunk_until_memory_is_released() {
    for place in [Place::Shared, Place::Small] {
        let w = world(32);
        let heap = w.heaps.create(Options { place, ..PLAIN }).unwrap();
        let objects: Vec<_> = (0..5000).map(|_| w.alloc(heap, 1000)).collect();
        objects.into_iter().for_each(|o| w.free(heap, o).unwrap());
        let stats = w.heaps.stats(heap).unwrap();
        assert_eq!((stats.objects, stats.used_bytes), (0, 0));
        assert!((1..=HUGEPAGE_SIZE as u64).contains(&stats.held_bytes), "{stats:?}");
        w.own().trim();
        assert_eq!((w.pages_in_use(), w.heaps.stats(heap).unwrap().held_bytes), (Pages(0), 0));
        assert!(!w.alloc(heap, 1000).is_null());
    }
}

#[test]
fn names_are_short_and_printable() {
    let w = world(4);
    let create = |name| w.heaps.create(Options { name, ..PLAIN });
    let heap = create(b"a name of exactly 31 bytes is 31").map(|_| ());
    assert_eq!(heap, Err(Refused::Name), "32 bytes");
    for bad in [b"a\"b".as_slice(), b"a\\b", b"a\n", b"\xc3\xa4"] {
        assert_eq!(create(bad), Err(Refused::Name));
    }
    let heap = create(b"requests of shard 7, in flight.").unwrap();
    assert_eq!(&w.heaps.stats(heap).unwrap().name, b"requests of shard 7, in flight.\0");
}

#[test]
fn when_the_floor_refuses_the_heap_is_as_before() {
    let sizes = [100, 5000, 200_000, 300_000];
    for nth in 1..40 {
        let w = world(6);
        let heap = w.heaps.create(PLAIN).unwrap();
        w.faults.set(FaultRule::From(nth));
        let mut out = Vec::new();
        for i in 0..200 {
            let (before, pages) = (w.heaps.stats(heap).unwrap(), w.pages_in_use());
            let object = w.alloc(heap, sizes[i % 4]);
            if object.is_null() {
                let after = w.heaps.stats(heap).unwrap();
                assert_eq!((after.refused, after.objects), (before.refused + 1, before.objects));
                assert_eq!((after.used_bytes, after.held_bytes), (before.used_bytes, before.held_bytes));
                assert_eq!(w.pages_in_use(), pages);
            } else {
                out.push(object);
            }
        }
        out.drain(..).for_each(|o| w.free(heap, o).unwrap());
        assert_eq!(w.heaps.stats(heap).unwrap().objects, 0);
        w.own().destroy(heap).unwrap();
        assert_eq!(w.pages_in_use(), Pages(0));
    }
}

#[test]
fn many_heaps_come_and_go() {
    let w = world(64);
    let mut handles = HashSet::new();
    for round in 0..50 {
        let heaps: Vec<_> = (0..100).map(|_| w.heaps.create(PLAIN).unwrap()).collect();
        for heap in &heaps {
            assert!(handles.insert(*heap), "a handle of round {round} was there before");
            assert!(!w.alloc(*heap, 64).is_null());
        }
        heaps.iter().for_each(|h| w.own().destroy(*h).unwrap());
    }
    assert_eq!(w.pages_in_use(), Pages(0));
}

#[test]
fn each_hint_has_one_heap_which_stays() {
    let w = world(64);
    assert!(hints::are_valid(0) && !hints::are_valid(3) && !hints::are_valid(16));
    assert_eq!(w.heaps.of_hint(0), None);
    let mut all = HashSet::new();
    for hint in [hints::COLD, hints::HOT, hints::DENSE, hints::SHORT_LIVED] {
        assert!(hints::are_valid(hint));
        let heap = w.heaps.of_hint(hint).unwrap();
        assert!(all.insert(heap));
        assert_eq!(w.heaps.of_hint(hint), Some(heap), "made once");
        assert!(!w.alloc(heap, 100).is_null());
        assert_eq!(w.own().destroy(heap), Err(Misuse::HeapStays));
    }
    assert_eq!(all.len(), BUILT_IN);
    let mut names = Vec::new();
    w.heaps.each(|stats| names.push((stats.objects, stats.name[0])));
    assert_eq!(names, [(1, b'c'), (1, b'h'), (1, b'd'), (1, b's')]);
}

#[test]
fn threads_that_ask_for_a_hint_at_once_get_one_heap() {
    for _ in 0..50 {
        let w = world(2);
        let heaps = w.heaps;
        let handles: HashSet<_> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..3).map(|_| s.spawn(|| heaps.of_hint(hints::HOT).unwrap())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut living = 0;
        heaps.each(|_| living += 1);
        assert_eq!((handles.len(), living), (1, 1), "the heap of a thread that came second is gone");
    }
}

#[test]
fn large_objects_grow_and_shrink_where_they_stand_and_the_counts_follow() {
    let w = world(32);
    let heap = w.heaps.create(Options { limit: 128 * PAGE_SIZE, ..PLAIN }).unwrap();
    let object = w.alloc(heap, 50 * PAGE_SIZE);
    let resize = |size: usize| w.own().resize(w.own().find_in(heap, object).unwrap(), size);
    assert!(resize(50 * PAGE_SIZE - 1), "the same pages");
    assert!(resize(90 * PAGE_SIZE) && resize(40 * PAGE_SIZE));
    let stats = w.heaps.stats(heap).unwrap();
    assert_eq!((stats.used_bytes, stats.object_bytes), (40 * PAGE_SIZE as u64, 40 * PAGE_SIZE as u64));
    assert!(!resize(129 * PAGE_SIZE), "the limit");
    assert!(!resize(100), "a class serves that better");
    assert!(!resize(usize::MAX));
    assert_eq!(w.own().find_in(heap, object).unwrap().bytes, 40 * PAGE_SIZE, "a refusal changes nothing");
    w.free(heap, object).unwrap();
    assert_eq!((w.pages_in_use(), w.heaps.stats(heap).unwrap().held_bytes), (Pages(0), 0));
}

#[test]
fn small_objects_stay_while_their_class_serves_and_large_ones_apart_never_grow() {
    let w = world(32);
    let (plain, apart) = (w.heaps.create(PLAIN).unwrap(), w.heaps.create(Options { place: Place::Apart, ..PLAIN }));
    let (small, large) = (w.alloc(plain, 100), w.alloc(apart.unwrap(), 300_000));
    let owned = |heap, object| w.own().find_in(heap, object).unwrap();
    assert!(w.own().resize(owned(plain, small), 110) && !w.own().resize(owned(plain, small), 1000));
    assert!(w.own().resize(owned(apart.unwrap(), large), HUGEPAGE_SIZE), "it has the whole hugepage");
    assert!(!w.own().resize(owned(apart.unwrap(), large), HUGEPAGE_SIZE + 1));
    let beside = w.own().alloc_beside(owned(plain, small), 5000);
    assert_eq!(owned(plain, beside).heap, owned(plain, small).heap);
    assert_eq!(w.own().find_in(apart.unwrap(), beside), Err(Misuse::OtherHeap));
}

#[test]
fn an_object_that_two_threads_free_is_freed_once() {
    let w = world(8);
    let heap = w.heaps.create(PLAIN).unwrap();
    for size in [48, 5000, 300_000] {
        let object = w.alloc(heap, size);
        let owned = w.own().find_in(heap, object).unwrap();
        // SAFETY: both found the object; the heap has to notice.
        let (first, second) = unsafe { (w.own().free(owned, object), w.own().free(owned, object)) };
        assert_eq!(first, Ok(()));
        assert!(matches!(second, Err(Misuse::Freed { .. } | Misuse::Unallocated)), "{second:?} for {size}");
    }
    let object = w.alloc(heap, 48);
    let owned = w.own().find_in(heap, object).unwrap();
    w.own().destroy(heap).unwrap();
    // SAFETY: as above; the heap has gone.
    assert_eq!(unsafe { w.own().free(owned, object) }, Err(Misuse::Unallocated));
    assert!(w.own().alloc_beside(owned, 1).is_null() && !w.own().resize(owned, 48));
}

#[test]
fn counts_of_a_class_are_those_of_its_heap() {
    let w = world(8);
    let (a, b) = (w.heaps.create(PLAIN).unwrap(), w.heaps.create(PLAIN).unwrap());
    let class = size_class::class_of(64);
    (0..5).for_each(|_| _ = w.alloc(b, 64));
    let out = |id| w.heaps.class_stats(id, class).map(|s| s.objects_out);
    assert_eq!((out(0), out(1), out(2), out(u16::MAX)), (Some(0), Some(5), None, None));
    w.own().destroy(a).unwrap();
    assert_eq!((out(0), out(1)), (None, Some(5)));
    w.own().trim();
    assert_eq!(w.heaps.stats(b).unwrap().objects, 5, "objects stay");
}

#[test]
fn zeroed_objects_are_zeroed_also_on_used_memory() {
    let w = world(8);
    let heap = w.heaps.create(PLAIN).unwrap();
    for size in [64, 5000, 300_000] {
        for _ in 0..3 {
            let object = w.own().alloc(heap, size, 1, true).unwrap();
            // SAFETY: ours, of `size` bytes.
            unsafe {
                assert!((0..size).all(|i| *object.add(i) == 0), "{size}");
                object.write_bytes(1, size);
            }
            w.free(heap, object).unwrap();
        }
    }
}

#[test]
fn a_fork_holds_the_locks_of_all_heaps() {
    let w = world(4);
    let heap = w.heaps.create(PLAIN).unwrap();
    w.heaps.lock_for_fork(false);
    let heaps = w.heaps;
    let waits = std::thread::spawn(move || heaps.stats(heap).unwrap().objects);
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert!(!waits.is_finished(), "the heap is locked");
    // SAFETY: taken just now.
    unsafe { w.heaps.release_after_fork() };
    assert_eq!(waits.join().unwrap(), 0);
}
