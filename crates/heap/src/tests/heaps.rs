//! Objects return, misuse is detected, refusals change nothing.

use super::world::{World, world};
use crate::size_class::{self, CLASSES};
use crate::{Found, Misuse};
use craton_base::Pages;
use craton_pages::PageHeapExt;
use craton_sim::{FaultRule, Rng};
use std::sync::Mutex;
use std::vec::Vec;

#[test]
fn m1_objects_of_all_classes_are_distinct_writable_and_come_back() {
    let w = world(64, 2 << 20);
    let mut rng = Rng::new(3);
    let mut out: Vec<(*mut u8, usize, u8)> = Vec::new();
    let mut bytes = 0;
    for round in 0..60_000u32 {
        if rng.below(100) < 55 && bytes < 48 << 20 {
            let class = 1 + rng.below(CLASSES as u64) as usize;
            let (object, size) = (w.take(class), size_class::size_of_class(class));
            assert!(!object.is_null());
            // Its slab may have changed class.
            assert!([Found::Small { class }, Found::Old { class }].contains(&w.heap.find(object)));
            // SAFETY: the object has this size, and is the test's.
            unsafe { object.write_bytes(round as u8, size) };
            out.push((object, size, round as u8));
            bytes += size;
        } else if !out.is_empty() {
            let (object, size, fill) = out.swap_remove(rng.below(out.len() as u64) as usize);
            // SAFETY: the object is still ours.
            unsafe { assert!((0..size).step_by(61).chain([size - 1]).all(|i| *object.add(i) == fill)) };
            w.give(object).unwrap();
            bytes -= size;
        }
    }
    for (object, _, _) in out {
        w.give(object).unwrap();
    }
    w.empty();
    assert_eq!(w.heap.pages.lock().in_use(), Pages(0));
    assert_eq!(w.heap.bytes_out(), 0);
}

#[test]
fn a_second_free_is_seen_wherever_the_object_went() {
    let w = world(8, 2 << 20);
    for class in 1..=CLASSES {
        let size = size_class::size_of_class(class);
        let objects: Vec<_> = (0..40).map(|_| w.take(class)).filter(|o| !o.is_null()).collect();
        for o in &objects {
            w.give(*o).unwrap();
        }
        // They are in the cache, on slabs, or their slabs are gone.
        for o in &objects {
            let misuse = w.give(*o).unwrap_err();
            assert!(misuse == Misuse::Freed { size } || misuse == Misuse::Unallocated, "{misuse:?} for class {class}");
        }
        w.empty();
    }
}

#[test]
fn a_pointer_into_an_object_is_seen_before_anything_changes() {
    let w = world(16, 2 << 20);
    for class in 1..=CLASSES {
        let (object, size) = (w.take(class), size_class::size_of_class(class));
        for offset in [1, 8, 15, size / 2 + 1, size - 1] {
            // SAFETY: stays inside the object.
            let misuse = w.give(unsafe { object.add(offset) }).unwrap_err();
            let inside = matches!(misuse, Misuse::Inside { offset: o, size: s } if (o, s) == (offset, size))
                || matches!(misuse, Misuse::InsideLarge { start, .. } if start == object as usize);
            assert!(inside, "{misuse:?} for class {class} + {offset}");
        }
        w.give(object).unwrap();
    }
}

#[test]
fn the_divisibility_test_is_exact_for_every_offset_of_every_class() {
    for class in 1..=CLASSES {
        let g = size_class::geometry(class);
        if g.is_single() {
            continue;
        }
        // The slab has never been another class's.
        let w = world(1, 2 << 20);
        // Each place has been an object.
        let objects: Vec<_> = (0..g.capacity).map(|_| w.take(class)).collect();
        let slab = objects[0] as usize & !(g.align().bytes().0 - 1);
        for offset in (0..g.pages.bytes().0).step_by(if g.pages.0 > 4 { 16 } else { 1 }) {
            let is_start = offset % g.object as usize == 0 && offset / (g.object as usize) < g.capacity as usize;
            let found = w.heap.find((slab + offset) as *mut u8);
            assert_eq!(matches!(found, Found::Small { .. }), is_start, "class {class} offset {offset}");
        }
        objects.into_iter().for_each(|o| w.give(o).unwrap());
    }
}

#[test]
fn large_objects_grow_shrink_and_come_back() {
    let w = world(64, 0);
    let object = w.heap.allocate_large(300 << 10, 1, true);
    assert!(!object.is_null());
    let found = w.heap.find(object);
    assert!(matches!(found, Found::Large { pages: Pages(38), .. }));
    assert_eq!(w.heap.resize(object, found, 3 << 20), Some(object));
    assert_eq!(w.heap.find(object).usable(), Ok(3 << 20));
    let found = w.heap.find(object);
    assert_eq!(w.heap.resize(object, found, 400 << 10), Some(object));
    // SAFETY: stays inside the object.
    let inside = unsafe { object.add(8192) };
    assert_eq!(w.give(inside), Err(Misuse::InsideLarge { start: object as usize, size: 50 * 8192 }));
    w.give(object).unwrap();
    assert_eq!(w.give(object), Err(Misuse::Freed { size: 50 * 8192 }));
    assert_eq!(w.give(inside), Err(Misuse::Unallocated));
    assert_eq!(w.give(&raw const w as *mut u8), Err(Misuse::Foreign));
    w.empty();
}

#[test]
fn a_calloc_of_reused_pages_reads_as_zeros() {
    let w = world(16, 0);
    for _ in 0..3 {
        let object = w.heap.allocate_large(5 << 20, 1, true);
        // SAFETY: the object is ours.
        unsafe {
            assert!((0..5 << 20).step_by(509).all(|i| *object.add(i) == 0));
            object.write_bytes(1, 5 << 20);
        }
        w.give(object).unwrap();
    }
}

#[test]
fn every_refused_floor_call_is_null_and_leaves_the_heap_usable() {
    for n in 1..40 {
        let w = world(24, 1 << 20);
        w.faults.set(FaultRule::From(n));
        let mut out = Vec::new();
        let mut rng = Rng::new(n);
        for _ in 0..4000 {
            let class = 1 + rng.below(CLASSES as u64) as usize;
            let object = w.take(class);
            if object.is_null() {
                break;
            }
            out.push(object);
        }
        w.heap.pages.lock().check().unwrap();
        out.drain(..).for_each(|o| w.give(o).unwrap());
        w.faults.set(FaultRule::Never);
        assert!(!w.take(1).is_null() && !w.take(CLASSES).is_null());
        w.heap.pages.lock().check().unwrap();
    }
}

#[test]
fn t1_a_list_never_holds_more_than_its_bound_and_the_budget_is_kept() {
    let (w, budget) = (world(32, 256 << 10), 256 << 10);
    let class = size_class::class_of(64);
    for _ in 0..50 {
        let objects: Vec<_> = (0..20_000).map(|_| w.take(class)).collect();
        objects.into_iter().for_each(|o| w.give(o).unwrap());
    }
    // SAFETY: the cache is ours.
    let bytes = unsafe { (*w.cache).bytes() };
    let first = CLASSES * (4 << 10);
    assert!(bytes <= budget + first, "{bytes} bytes in a cache with a budget of {budget}");
}

#[test]
fn a_mark_that_was_copied_along_with_unwritten_bytes_does_not_condemn_its_new_place() {
    let w = world(8, 2 << 20);
    let (small, large) = (w.take(1), w.take(size_class::class_of(64)));
    w.give(small).unwrap();
    // SAFETY: both objects are readable; the large one is ours.
    unsafe { large.copy_from_nonoverlapping(small, 16) };
    w.give(large).unwrap();
}

#[test]
fn a_place_that_was_never_handed_out_is_no_object() {
    let w = world(8, 2 << 20);
    let class = size_class::class_of(48);
    let object = w.take(class);
    // SAFETY: both places lie on the object's slab.
    let (next, far) = unsafe { (object.add(48), object.add(48 * 120)) };
    assert_eq!(w.give(next), Err(Misuse::Freed { size: 48 }), "cut with the batch, and waiting in the cache");
    assert_eq!(w.heap.find(far), Found::Bad(Misuse::Unallocated));
    w.give(object).unwrap();
}

#[test]
fn m5_every_object_goes_back_to_the_shard_of_its_slab_whoever_frees_it() {
    const THREADS: usize = 4;
    let w = world(64, 1 << 20);
    w.heap.use_shards(THREADS);
    let heap = w.heap;
    let letters: Vec<Mutex<Vec<usize>>> = (0..THREADS).map(|_| Mutex::new(Vec::new())).collect();
    std::thread::scope(|scope| {
        for me in 0..THREADS {
            let letters = &letters;
            scope.spawn(move || {
                let own = World::over(heap, heap.home(me));
                let mut rng = Rng::new(me as u64 + 1);
                for round in 0..300 {
                    for _ in 0..100 {
                        let class = 1 + rng.below(40) as usize;
                        let object = own.take(class);
                        // SAFETY: the object is ours, and has 16 bytes.
                        unsafe { object.write_bytes(me as u8, 16) };
                        letters[rng.below(THREADS as u64) as usize].lock().unwrap().push(object as usize);
                    }
                    if round % 3 == me % 3 {
                        let read: Vec<usize> = letters[me].lock().unwrap().drain(..).collect();
                        read.into_iter().for_each(|o| own.give(o as *mut u8).unwrap());
                    }
                }
                // SAFETY: the cache is ours.
                unsafe { heap.empty_cache(own.cache) };
            });
        }
    });
    assert!(w.heap.slabs_in_shards().iter().filter(|slabs| **slabs > 0).count() > 1, "threads have slabs of their own");
    letters.into_iter().flat_map(|l| l.into_inner().unwrap()).for_each(|o| w.give(o as *mut u8).unwrap());
    w.empty();
    assert_eq!(w.heap.slabs_in_shards(), [0; THREADS]);
    assert_eq!((w.heap.bytes_out(), w.heap.pages.lock().in_use()), (0, Pages(0)));
}
