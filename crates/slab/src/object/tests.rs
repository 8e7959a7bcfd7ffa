extern crate std;
use super::*;
use craton_base::PAGE_SIZE;
use std::vec::Vec;

#[repr(align(8192))]
#[derive(Clone)]
struct Page(#[expect(dead_code)] [u8; PAGE_SIZE]);

fn with_pages(n: usize, test: impl FnOnce(&mut BufferPages)) {
    let mut memory = std::vec![Page([0xa5; PAGE_SIZE]); n];
    let mut map = std::vec![0; n.div_ceil(64)];
    // SAFETY: the memory outlives the supplier.
    let mut pages = unsafe { BufferPages::new(memory.as_mut_ptr().cast(), n * PAGE_SIZE, &mut map) };
    test(&mut pages);
    assert_eq!(pages.used(), 0, "pages are lost");
}

#[test]
fn what_comes_back_constructed_is_handed_out_constructed() {
    for size in [8, 24, 64, 100, 640, 1024, 5000, 40_000] {
        with_pages(300, |pages| {
            let layout = ObjectLayout::of(size, 0, true).unwrap();
            let mut slabs = ObjectSlabs::new(layout);
            // SAFETY: the same supplier.
            unsafe {
                let object = match slabs.alloc(pages) {
                    Some(Taken::Raw(object)) => object,
                    other => panic!("{other:?}"),
                };
                object.write_bytes(7, size);
                slabs.free(object, true).unwrap();
                assert_eq!(slabs.free(object, true), Err(BadObject::Free));
                assert_eq!(slabs.alloc(pages), Some(Taken::Constructed(object)));
                assert!(std::slice::from_raw_parts(object, size).iter().all(|b| *b == 7));
                slabs.free(object, false).unwrap();
                assert_eq!(slabs.alloc(pages), Some(Taken::Raw(object)));
                assert_eq!(slabs.destroy(pages, |_| ()), Err(StillOut(1)));
                slabs.free(object, true).unwrap();
                let mut destroyed = Vec::new();
                slabs.destroy(pages, |o| destroyed.push(o)).unwrap();
                assert_eq!(destroyed, [object]);
            }
        });
    }
}

#[test]
fn what_is_unset_is_all_zeros_and_refuses() {
    // SAFETY: integers, pointers and options of pointers.
    let (slabs, depot): (ObjectSlabs, Depot) = unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
    assert_eq!(std::format!("{slabs:?}{depot:?}"), std::format!("{:?}{:?}", ObjectSlabs::UNSET, Depot::UNSET));
    with_pages(4, |pages| {
        let mut slabs = ObjectSlabs::UNSET;
        // SAFETY: the same supplier.
        unsafe {
            assert_eq!((slabs.is_unset(), slabs.alloc(pages)), (true, None));
            assert_eq!(slabs.free(8192 as *mut u8, false), Err(BadObject::Foreign));
        }
        slabs.check().unwrap();
    });
}

#[test]
fn pointers_into_the_record_the_tail_and_before_the_first_object_are_of_no_object() {
    with_pages(10, |pages| {
        let layout = ObjectLayout::of(500, 0, false).unwrap();
        let mut slabs = ObjectSlabs::new(layout);
        // SAFETY: the same supplier.
        unsafe {
            let all: Vec<_> = (0..layout.capacity() * 2).map(|_| slabs.alloc(pages).unwrap().object()).collect();
            // The second slab has the second colour.
            let second = all[layout.capacity()];
            assert_eq!(second as usize % PAGE_SIZE, layout.colour_step() as usize);
            for at in [second.sub(1), second.sub(64), second.add(layout.capacity() * layout.stride()), all[0].add(8191)]
            {
                assert_eq!(slabs.free(at, false), Err(BadObject::Between));
                assert_eq!(slabs.place_of(at), None);
            }
            for at in [core::ptr::null_mut(), usize::MAX as *mut u8, all[0].sub(1).wrapping_sub(PAGE_SIZE)] {
                assert_eq!((slabs.free(at, false), slabs.place_of(at)), (Err(BadObject::Foreign), None));
            }
            all.iter().for_each(|o| slabs.free(*o, false).unwrap());
            assert!(all.iter().all(|o| slabs.free(*o, false) == Err(BadObject::Free)));
            slabs.check().unwrap();
            slabs.destroy(pages, |_| ()).unwrap();
        }
    });
}

#[test]
fn complete_slabs_that_nobody_needed_for_an_interval_are_idle() {
    with_pages(10, |pages| {
        let mut slabs = ObjectSlabs::new(ObjectLayout::of(8192, 0, false).unwrap());
        // SAFETY: the same supplier.
        unsafe {
            let mut swing = |n: usize, slabs: &mut ObjectSlabs| {
                let out: Vec<_> = (0..n).map(|_| slabs.alloc(pages).unwrap().object()).collect();
                out.iter().for_each(|o| slabs.free(*o, false).unwrap());
            };
            swing(6, &mut slabs);
            assert_eq!((slabs.complete(), slabs.idle()), (6, 0));
            slabs.turn();
            swing(2, &mut slabs);
            slabs.turn();
            assert_eq!((slabs.complete(), slabs.idle()), (6, 4));
            let keep = slabs.complete() - slabs.idle();
            assert_eq!(slabs.reap(keep, pages, |_| ()), 4 * PAGE_SIZE);
            assert_eq!((slabs.complete(), slabs.idle()), (2, 0));
            slabs.turn();
            assert_eq!(slabs.idle(), 2, "nobody has used them since");
            slabs.destroy(pages, |_| ()).unwrap();
        }
    });
}

#[test]
fn a_detached_slab_can_be_destroyed_while_the_cache_goes_on() {
    with_pages(10, |pages| {
        let mut slabs = ObjectSlabs::new(ObjectLayout::of(2048, 0, true).unwrap());
        // SAFETY: the same supplier.
        unsafe {
            let out: Vec<_> = (0..8).map(|_| slabs.alloc(pages).unwrap().object()).collect();
            out.iter().for_each(|o| slabs.free(*o, true).unwrap());
            let detached = slabs.detach().unwrap();
            slabs.check().unwrap();
            let mut destroyed = Vec::new();
            detached.for_each_constructed(|object| {
                destroyed.push(object);
                assert!(slabs.alloc(pages).is_some());
            });
            assert_eq!(destroyed.len(), 4);
            assert!(slabs.release(detached, pages) >= PAGE_SIZE);
            slabs.check().unwrap();
            let mut live = Vec::new();
            slabs.for_each_out(|object| live.push(object));
            assert!(live.len() == 4 && live.iter().all(|o| !destroyed.contains(o)));
            live.iter().for_each(|o| slabs.free(*o, false).unwrap());
            slabs.destroy(pages, |_| ()).unwrap();
        }
    });
}
