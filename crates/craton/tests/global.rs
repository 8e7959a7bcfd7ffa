//! The harness, its threads and output included, on Craton.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;

#[global_allocator]
static ALLOCATOR: craton::Craton = craton::Craton;

fn refills() -> u64 {
    craton_malloc::SEGMENT.refills.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn collections_and_threads_live_on_craton() {
    let before = refills();
    let sums: Vec<u64> = (0..8)
        .map(|t| {
            std::thread::spawn(move || {
                let map: HashMap<u64, String> = (0..5_000).map(|i| (i, format!("{t}-{i}"))).collect();
                map.values().map(|v| v.len() as u64).sum()
            })
        })
        .collect::<Vec<_>>()
        .into_iter()
        .map(|t| t.join().unwrap())
        .collect();
    assert!(sums.iter().all(|s| *s == sums[0]));
    assert!(refills() > before + 100, "somebody else served this program");
}

#[test]
fn layouts_of_any_alignment_are_kept_by_realloc() {
    for align in [1, 16, 64, 4096, 8192, 1 << 16, 1 << 21, 1 << 22] {
        let layout = Layout::from_size_align(100, align).unwrap();
        // SAFETY: no size is 0; pointers are used within their size and freed with their layout.
        unsafe {
            let first = ALLOCATOR.alloc_zeroed(layout);
            assert_eq!(first as usize % align, 0);
            assert!((0..100).all(|i| *first.add(i) == 0));
            first.write_bytes(7, 100);
            let second = ALLOCATOR.realloc(first, layout, 1 << 20);
            assert_eq!(second as usize % align, 0);
            assert!((0..100).all(|i| *second.add(i) == 7));
            ALLOCATOR.dealloc(second, Layout::from_size_align(1 << 20, align).unwrap());
        }
    }
}

#[test]
fn small_objects_that_were_resized_are_freed_into_the_class_of_their_layout() {
    let layout = |size| Layout::from_size_align(size, 8).unwrap();
    let sizes = [1, 16, 17, 60, 100, 112, 113, 600, 1000, 1024, 1025, 1500, 2048, 40_000, 300_000];
    // SAFETY: as above.
    unsafe {
        for from in sizes {
            for to in sizes {
                let old = ALLOCATOR.alloc(layout(from));
                old.write_bytes(from as u8, from);
                let new = ALLOCATOR.realloc(old, layout(from), to);
                assert!((0..from.min(to)).all(|i| *new.add(i) == from as u8), "{from} to {to}");
                ALLOCATOR.dealloc(new, layout(to));
                // Every object of a class's list has the class's size.
                let objects: Vec<*mut u8> = (0..40).map(|_| ALLOCATOR.alloc(layout(to))).collect();
                for object in &objects {
                    assert!(craton_malloc::front::usable_size(*object).unwrap() >= to, "{from} to {to}");
                    object.write_bytes(0xff, to);
                }
                objects.into_iter().for_each(|o| ALLOCATOR.dealloc(o, layout(to)));
            }
        }
    }
}

#[test]
fn heaps_are_shared_by_threads_and_leave_nothing_behind() {
    let heap = craton::HeapOptions::new().name("shared").create().unwrap();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let heap = &heap;
            scope.spawn(move || {
                let mut values: Vec<_> = (0..2000).map(|i| heap.alloc_value(vec![t, i]).unwrap()).collect();
                values.retain(|v| v[1] % 3 == 0);
                assert!(values.iter().all(|v| v[0] == t));
                let last = values.pop().unwrap().into_inner();
                assert_eq!(last, [t, 1998]);
            });
        }
    });
    assert_eq!(heap.stats().objects, 0);
    for i in 0..1000 {
        *heap.alloc_ref(i).unwrap() += 1;
        assert_eq!(heap.alloc_slice(&[i; 100]).unwrap()[99], i);
    }
    assert_eq!((heap.stats().objects, heap.stats().name()), (2000, "shared"));
    assert_eq!(format!("{heap:?}"), "Heap { name: \"shared\", objects: 2000, .. }");
}

#[test]
fn a_boxs_value_is_dropped_once_and_a_leaked_one_never() {
    let (heap, witness) = (craton::Heap::new().unwrap(), std::rc::Rc::new(()));
    let value = heap.alloc_value(witness.clone()).unwrap();
    assert_eq!(std::rc::Rc::strong_count(&witness), 2);
    drop(value);
    assert_eq!(std::rc::Rc::strong_count(&witness), 1);
    let inner = heap.alloc_value(witness.clone()).unwrap().into_inner();
    drop(inner);
    assert_eq!(std::rc::Rc::strong_count(&witness), 1);
    heap.alloc_value(witness.clone()).unwrap().leak();
    drop(heap);
    assert_eq!(std::rc::Rc::strong_count(&witness), 2);
}

#[test]
fn a_limit_of_a_heap_is_an_error_that_changes_nothing() {
    let heap = craton::HeapOptions::new().limit(64 << 10).create().unwrap();
    let mut count = 0;
    while heap.alloc_ref([0u64; 16]).is_ok() {
        count += 1;
    }
    assert!((64 << 10) / 128 >= count && count > 400, "{count}");
    assert_eq!((heap.stats().objects, heap.stats().refused), (count, 1));
    assert_eq!(craton::HeapOptions::new().name("a\nb").create().unwrap_err(), craton::Error::Name);
    assert_eq!(heap.alloc(Layout::from_size_align(1, 4 << 20).unwrap()), Err(craton::Error::NoMemory));
    // SAFETY: the heap's memory; moved objects are no longer used.
    unsafe {
        let other = craton::Heap::new().unwrap();
        let raw = other.alloc_zeroed(Layout::new::<[u8; 50]>()).unwrap();
        raw.write(7);
        let grown = other.realloc(raw, 5000).unwrap();
        assert_eq!((grown.read(), grown.add(49).read()), (7, 0));
        other.dealloc(grown);
        assert_eq!(other.stats().objects, 0);
    }
}

#[test]
fn batches_have_any_alignment() {
    for align in [1, 16, 64, 4096] {
        let mut objects = [std::ptr::null_mut(); 100];
        assert_eq!(ALLOCATOR.alloc_batch(Layout::from_size_align(40, align).unwrap(), &mut objects), 100);
        assert!(objects.iter().all(|o| (*o as usize).is_multiple_of(align)));
        // SAFETY: ours, freed once.
        unsafe { ALLOCATOR.free_batch(&objects) };
    }
}

#[test]
fn the_kit_is_not_turned_on_in_a_program_that_frees_by_sizes_alone() {
    drop(vec![1u8; 40]);
    for value in ["all", "audit:64"] {
        assert!(ALLOCATOR.set_option("debug", value).is_err(), "{value}");
    }
    assert_eq!(ALLOCATOR.option("debug", &mut [0; 64]), Some("none"));
    ALLOCATOR.set_option("debug", "none").unwrap();
    drop(vec![1u8; 40]);
}
