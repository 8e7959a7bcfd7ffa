//! Huge objects: kept, resized, moved, refused.

use super::recorder::keeping;
use super::world::{World, for_each_refusal, holds, stamp, world};
use crate::hooks::Hooks;
use crate::huge::HUGE_MIN;
use crate::{Found, Misuse};
use craton_base::{HUGEPAGE_SIZE, PageRange, Pages};
use craton_pages::{HugeBacking, PageHeapExt};
use craton_sim::{Call, FaultRule, ThpMode};
use std::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

const MIB: usize = 1 << 20;
const SECOND: u64 = 1_000_000_000;
/// The table's mapping, which stays.
const TABLE: usize = 4096;

/// Limits count all mappings but the table's and free addresses.
fn check_books<H: Hooks>(w: &World<H>) {
    let spare = w.heap.huge.lock().stretches.free_bytes();
    let mapped = w.system.mapped().saturating_sub(TABLE + spare);
    assert_eq!(mapped as u64, w.heap.gate.huge(), "what is mapped is what the limits count");
    let kept = w.heap.huge.lock().kept.bytes() as u64;
    assert_eq!(w.heap.gate.huge() - kept, w.heap.huge_bytes.load(Relaxed));
}

/// The last mapping is kept.
fn with_kept(bytes: usize) -> (World<super::recorder::Recorder>, *mut u8) {
    let w = keeping(16);
    w.give(w.large(bytes)).unwrap();
    let object = w.large(bytes);
    stamp(object, bytes);
    w.give(object).unwrap();
    assert_eq!(w.heap.huge.lock().kept.bytes(), bytes);
    check_books(&w);
    (w, object)
}

#[test]
fn a_kept_mapping_goes_back_after_a_second_and_not_before() {
    let (w, _) = with_kept(40 * MIB);
    w.clock.advance(SECOND - 1);
    assert!(w.heap.age_kept());
    assert_eq!(w.system.mapped(), TABLE + 40 * MIB);
    w.clock.advance(1);
    assert!(w.heap.age_kept(), "it was given back");
    assert_eq!((w.system.mapped(), w.heap.gate.huge()), (TABLE, 0));
    assert!(!w.heap.age_kept());
    // No request took it.
    w.clock.advance(2 * SECOND);
    w.give(w.large(40 * MIB)).unwrap();
    assert_eq!(w.system.mapped(), TABLE);
}

#[test]
fn a_kept_mapping_serves_the_next_request_without_the_system() {
    let (w, before) = with_kept(40 * MIB);
    w.faults.set_only(Call::Map, FaultRule::From(1));
    let object = w.large(40 * MIB);
    assert_eq!((object, w.usable(object), w.faults.calls()), (before, Ok(40 * MIB), 0));
    check_books(&w);
    assert_eq!(w.large(50 * MIB), core::ptr::null_mut(), "there is only one");
}

#[test]
fn relief_makes_a_kept_mapping_go() {
    let (w, _) = with_kept(40 * MIB);
    let before = w.system.mapped();
    w.heap.relieve(0);
    assert_eq!(w.system.mapped(), before - 40 * MIB);
    check_books(&w);
}

#[test]
fn a_kept_mapping_somewhat_longer_serves_whole_and_one_much_longer_is_cut() {
    for (asked, usable) in [(36 * MIB, 40 * MIB), (33 * MIB, 34 * MIB)] {
        let (w, before) = with_kept(40 * MIB);
        let object = w.large(asked);
        assert_eq!((object, w.usable(object)), (before, Ok(usable)));
        check_books(&w);
    }
}

#[test]
fn a_kept_mapping_too_short_grows_and_zeroed_requests_get_a_new_one() {
    let (w, _) = with_kept(40 * MIB);
    let object = w.large(44 * MIB);
    assert_eq!((object as usize % HUGEPAGE_SIZE, w.usable(object)), (0, Ok(44 * MIB)));
    assert!(holds(object, 40 * MIB), "its memory was moved");
    check_books(&w);
    let (w, _) = with_kept(40 * MIB);
    let object = w.heap.allocate_large(40 * MIB, 1, true);
    // SAFETY: the object is ours.
    assert!((0..40 * MIB).step_by(4096).all(|at| unsafe { object.add(at).read() } == 0));
    assert_eq!(w.heap.huge.lock().kept.bytes(), 0, "what nobody uses goes for what is new");
    check_books(&w);
}

#[test]
fn what_is_kept_goes_first_when_the_hard_limit_is_reached() {
    let (w, _) = with_kept(40 * MIB);
    w.heap.gate.set(None, Some(50 * MIB as u64));
    let object = w.large(20 * MIB);
    assert!(!object.is_null() && w.heap.used() <= 50 * MIB as u64);
    assert_eq!(w.heap.huge.lock().kept.bytes(), 0);
    assert!(w.large(45 * MIB).is_null());
    check_books(&w);
    let (w, _) = with_kept(40 * MIB);
    assert_eq!(w.heap.release(|| ()), 40 * MIB as u64, "a release gives it back, too");
    check_books(&w);
}

#[test]
fn each_refusal_of_the_system_beside_a_kept_mapping_keeps_the_books() {
    for (asked, rest) in [(40, false), (44, false), (44, true), (33, false), (60, true)] {
        for_each_refusal(
            rest,
            || with_kept(40 * MIB).0,
            |w, n| {
                // So that at least one call can be refused.
                let (first, second) = (w.large(asked * MIB), w.large(34 * MIB));
                for (object, size) in [(first, asked * MIB), (second, 34 * MIB)] {
                    if !object.is_null() && size >= HUGE_MIN {
                        assert!(w.usable(object).unwrap() >= size, "refusal {n}");
                    }
                }
                if matches!(w.heap.find(first), Found::Huge(_)) || first.is_null() {
                    check_books(w);
                }
            },
        );
    }
}

/// 40 MiB with a pattern.
fn huge() -> (World, *mut u8) {
    let w = world(16, 0);
    let object = w.large(40 * MIB);
    stamp(object, 40 * MIB);
    (w, object)
}

#[test]
fn a_huge_object_shrinks_where_it_stands_and_moves_to_grow() {
    let (w, object) = huge();
    assert_eq!(w.heap.resize(object, w.heap.find(object), 10 * MIB + 1), Some(object));
    assert_eq!(w.usable(object), Ok(10 * MIB + 8192));
    check_books(&w);
    assert_eq!(w.heap.resize(object, w.heap.find(object), 3 * MIB), None, "so short it belongs into the region");
    let grown = w.heap.resize(object, w.heap.find(object), 50 * MIB - 5).unwrap();
    assert_eq!((w.usable(grown), grown as usize % HUGEPAGE_SIZE), (Ok(50 * MIB), 0), "on whole hugepages");
    assert!(holds(grown, 10 * MIB) && grown != object);
    assert_eq!(w.give(object), Err(Misuse::Freed { size: 10 * MIB + 8192 }), "where it was it is no more");
    check_books(&w);
    w.give(grown).unwrap();
    assert_eq!(w.system.mapped(), TABLE);
}

#[test]
fn a_huge_object_that_may_not_grow_stays_as_it_was_at_each_refusal() {
    for rest in [false, true] {
        for n in 1..20 {
            let (w, object) = huge();
            w.faults.set(if rest { FaultRule::From(n) } else { FaultRule::Nth(n) });
            let now = w.heap.resize(object, w.heap.find(object), 60 * MIB);
            let refused = w.faults.refused();
            w.faults.set(FaultRule::Never);
            let (at, bytes) = now.map_or((object, 40 * MIB), |at| (at, 60 * MIB));
            assert_eq!(w.usable(at), Ok(bytes), "refusal {n}");
            assert!(holds(at, 40 * MIB), "refusal {n}");
            check_books(&w);
            w.give(at).unwrap();
            assert_eq!(w.system.mapped(), TABLE);
            assert!(refused > 0 || now.is_some());
            assert!(!(rest && n == 1) || now.is_none(), "nothing was to be had");
            if refused == 0 {
                assert!(n > 1);
                break;
            }
        }
    }
}

/// 20 MiB with a pattern, in the region.
fn large() -> (World, *mut u8) {
    let w = world(32, 0);
    w.heap.pages().set_backing(HugeBacking::NEVER);
    let object = w.large(20 * MIB);
    stamp(object, 20 * MIB);
    (w, object)
}

#[test]
fn a_large_object_that_outgrows_the_region_is_moved_and_its_pages_are_free() {
    let (w, object) = large();
    let moved = w.heap.resize(object, w.heap.find(object), 33 * MIB).unwrap();
    assert_eq!(w.usable(moved), Ok(33 * MIB));
    assert!(holds(moved, 20 * MIB));
    assert_eq!((w.heap.in_use(), w.give(object)), (Pages(0), Err(Misuse::Freed { size: 20 * MIB })));
    assert_eq!(w.heap.pages().backed_pages(), Pages(0), "its memory went along");
    check_books(&w);
    w.heap.pages().check().unwrap();
    let again = w.large(20 * MIB);
    // SAFETY: the object is ours; moved pages read as zeros.
    assert!((0..20 * MIB).step_by(4096).all(|at| unsafe { again.add(at).read() } == 0));
}

#[test]
fn an_odd_end_of_a_moved_object_is_copied() {
    let w = world(32, 0);
    w.heap.pages().set_backing(HugeBacking::NEVER);
    let bytes = 20 * MIB + 300 * 1024;
    let object = w.large(bytes);
    stamp(object, bytes);
    let moved = w.heap.resize(object, w.heap.find(object), 40 * MIB).unwrap();
    assert!(holds(moved, bytes));
    assert_eq!(w.heap.in_use(), Pages(0));
    w.heap.pages().check().unwrap();
}

#[test]
fn an_object_that_cannot_be_moved_out_stays_as_it_was_at_each_refusal() {
    for rest in [false, true] {
        for n in 1..20 {
            let (w, object) = large();
            let (found, in_use) = (w.heap.find(object), w.heap.in_use());
            w.faults.set(if rest { FaultRule::From(n) } else { FaultRule::Nth(n) });
            let now = w.heap.resize(object, found, 40 * MIB);
            let refused = w.faults.refused();
            w.faults.set(FaultRule::Never);
            assert!(holds(now.unwrap_or(object), 20 * MIB), "refusal {n}");
            check_books(&w);
            if now.is_none() {
                assert_eq!((w.heap.find(object), w.heap.in_use()), (found, in_use), "refusal {n}");
                assert_eq!(w.heap.huge.lock().len(), 0);
            }
            w.heap.pages().check().unwrap();
            w.give(now.unwrap_or(object)).unwrap();
            if refused == 0 {
                assert!(n > 1 && now.is_some());
                break;
            }
        }
    }
}

#[test]
fn an_object_of_one_hugepage_is_not_worth_a_move() {
    let w = world(32, 0);
    let object = w.large(2 * MIB);
    assert_eq!(w.heap.move_out(w.page(object), Pages(256), 40 * MIB), None);
    let object = w.large(8 * MIB);
    assert_eq!(w.heap.move_out(w.page(object), Pages(1024), 4 * MIB), None, "nor is one that shall be shorter");
    assert_eq!(w.system.mapped(), 0);
}

#[test]
fn the_table_grows_with_its_objects_and_without_memory_nothing_is_forgotten() {
    let w = world(4, 0);
    let mut all: Vec<_> = (0..128).map(|_| w.heap.allocate_huge(8192, 1, false)).collect();
    assert!(all.iter().all(|object| !object.is_null()));
    w.faults.set_only(Call::Map, FaultRule::Nth(1));
    assert!(w.heap.allocate_huge(8192, 1, false).is_null(), "the table is half full and cannot grow");
    assert_eq!(w.heap.gate.huge(), 128 * 8192);
    all.push(w.heap.allocate_huge(8192, 1, false));
    assert!(all.iter().all(|object| w.usable(*object) == Ok(8192)));
    w.give_all(all);
    assert_eq!((w.system.mapped(), w.heap.huge.lock().len()), (2 * TABLE, 0));
}

#[test]
fn two_threads_that_free_one_huge_object_are_told_apart() {
    let (w, object) = huge();
    assert_eq!(w.heap.free_huge(object as usize), Ok(()));
    assert_eq!(w.heap.free_huge(object as usize), Err(Misuse::Freed { size: 40 * MIB }));
    assert_eq!(w.heap.free_huge(object as usize + MIB), Err(Misuse::Unallocated));
    assert_eq!(w.heap.gate.huge(), 0);
}

#[test]
fn of_many_huge_objects_the_later_ones_are_whole_hugepages() {
    let w = world(16, 0);
    let objects: Vec<_> = (0..1030).map(|_| w.large(33 * MIB + 1)).collect();
    assert_eq!((w.usable(objects[1000]), w.usable(objects[1029])), (Ok(33 * MIB + 8192), Ok(34 * MIB)));
    objects.into_iter().for_each(|object| w.give(object).unwrap());
    assert_eq!(w.heap.gate.huge(), 0);
}

fn sparse_world() -> World {
    let w = world(512, 0);
    w.floor.sim().set_thp(ThpMode::Madvise);
    w
}

/// 6 MiB objects, until one is outside of the region.
fn until_apart(w: &World, touched: Pages) -> Option<*mut u8> {
    (0..60).map(|_| w.large(6 * MIB)).find(|object| {
        let page = w.heap.page_of(*object as usize);
        page.inspect(|page| w.floor.sim().touch(PageRange::new(*page, touched)));
        page.is_none()
    })
}

#[test]
fn objects_that_are_hardly_touched_become_mappings_where_the_heap_would_grow() {
    let w = sparse_world();
    let in_region = w.large(6 * MIB);
    let object = until_apart(&w, Pages(1)).expect("they are sparse");
    let is_whole = |object: *mut u8| (object as usize).is_multiple_of(HUGEPAGE_SIZE);
    assert!(is_whole(object) && w.usable(object) == Ok(6 * MIB));
    let granted = w.heap.pages.lock().granted();
    let other = w.large(5 * MIB);
    assert!(is_whole(other) && w.usable(other) == Ok(6 * MIB), "whole hugepages");
    assert_eq!(w.heap.pages.lock().granted(), granted);
    check_books(&w);
    assert!(w.heap.page_of(w.large(3 * MIB) as usize).is_some(), "too short");
    assert!(w.heap.page_of(w.large(9 * MIB) as usize).is_some(), "of that length nothing is known");
    w.give(in_region).unwrap();
    assert!(w.heap.page_of(w.large(6 * MIB) as usize).is_none(), "what it had went back");
    // Here mappings look dense.
    let back = (0..60).map(|_| w.large(6 * MIB)).find(|object| w.heap.page_of(*object as usize).is_some());
    assert!(back.is_some());
    w.give(object).unwrap();
    assert_eq!(w.heap.find(object), Found::Bad(Misuse::Freed { size: 6 * MIB }));
    check_books(&w);
}

#[test]
fn objects_that_are_touched_densely_stay_in_the_region_and_so_do_all_when_a_mapping_is_refused() {
    let w = sparse_world();
    assert_eq!(until_apart(&w, Pages(6 << 7)), None);
    let w = sparse_world();
    w.faults.set_only(Call::Map, FaultRule::From(1));
    assert_eq!(until_apart(&w, Pages(1)), None);
}

fn is_clear(object: *mut u8, bytes: usize) -> bool {
    // SAFETY: the object is the test's, and has that length.
    (0..bytes).step_by(4096).all(|at| unsafe { object.add(at).read() } == 0)
}

#[test]
fn sparse_objects_use_addresses_again_and_read_as_zeros() {
    let w = sparse_world();
    let (a, b) = (w.heap.allocate_sparse(5 * MIB, 1), w.heap.allocate_sparse(6 * MIB, 1));
    assert_eq!((w.usable(a), w.usable(b)), (Ok(6 * MIB), Ok(6 * MIB)));
    stamp(a, 6 * MIB);
    stamp(b, 6 * MIB);
    w.give(a).unwrap();
    assert_eq!(w.heap.find(a), Found::Bad(Misuse::Freed { size: 6 * MIB }));
    assert_eq!(w.give(a), Err(Misuse::Freed { size: 6 * MIB }));
    check_books(&w);
    w.faults.set_only(Call::Map, FaultRule::From(1));
    let c = w.heap.allocate_sparse(4 * MIB, 1);
    assert!(c == a && is_clear(c, 4 * MIB) && holds(b, 6 * MIB));
    check_books(&w);
}

#[test]
fn a_sparse_object_grows_in_place_or_moves_and_shrinks_in_place() {
    let w = sparse_world();
    let resize = |object, size| w.heap.resize(object, w.heap.find(object), size);
    let (a, b) = (w.heap.allocate_sparse(6 * MIB, 1), w.heap.allocate_sparse(8 * MIB, 1));
    stamp(a, 6 * MIB);
    stamp(b, 8 * MIB);
    assert_eq!(resize(b, 9 * MIB), Some(b));
    assert_eq!(w.usable(b), Ok(10 * MIB));
    check_books(&w);
    assert_eq!(resize(b, 5 * MIB), Some(b));
    assert_eq!((w.usable(b), holds(b, 6 * MIB)), (Ok(6 * MIB), true));
    check_books(&w);
    let next = w.heap.allocate_sparse(4 * MIB, 1);
    assert!(next as usize == b as usize + 6 * MIB && is_clear(next, 4 * MIB));
    let moved = resize(a, 12 * MIB).expect("it moves");
    assert!(moved != a && w.usable(moved) == Ok(12 * MIB) && holds(moved, 6 * MIB));
    assert_eq!(w.heap.find(a), Found::Bad(Misuse::Freed { size: 6 * MIB }));
    check_books(&w);
    assert_eq!(w.heap.allocate_sparse(6 * MIB, 1), a, "its addresses are free");
    assert!(is_clear(a, 6 * MIB));
}

#[test]
fn a_refused_step_leaves_a_sparse_object_as_it_was() {
    for n in 1.. {
        let w = sparse_world();
        let (a, _b) = (w.heap.allocate_sparse(6 * MIB, 1), w.heap.allocate_sparse(6 * MIB, 1));
        stamp(a, 6 * MIB);
        w.faults.set(FaultRule::Nth(n));
        let now = w.heap.resize(a, w.heap.find(a), 20 * MIB);
        let refused = w.faults.refused();
        w.faults.set(FaultRule::Never);
        assert!(holds(now.unwrap_or(a), 6 * MIB), "refusal {n}");
        check_books(&w);
        w.give(now.unwrap_or(a)).unwrap();
        check_books(&w);
        if refused == 0 {
            assert!(n > 1 && now.is_some());
            break;
        }
    }
}
