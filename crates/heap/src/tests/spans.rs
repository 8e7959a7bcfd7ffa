//! Kept spans serve before the heap grows, and a refusal changes nothing.

use super::recorder::{spans, watched};
use super::world::{World, for_each_refusal, hardened_world, holds, stamp, world};
use crate::hooks::SpanEvent;
use crate::size_class::{self, CLASSES};
use crate::spans::{Marked, NoSpans};
use craton_base::{Density, HUGEPAGE_SIZE, PageRange, Pages, SpanError, SpanSource};
use craton_pages::PageHeapExt;
use craton_sim::{Call, FaultRule};
use std::vec::Vec;

const MIB: usize = 1 << 20;
const PAGE: usize = 8192;

/// Leaves 16 pages of a hugepage.
fn nearly_full(w: &World) -> Vec<*mut u8> {
    let all: Vec<_> = (0..4).map(|_| w.large(60 * PAGE)).collect();
    assert!(all.iter().all(|object| !object.is_null()));
    assert_eq!(w.heap.in_use(), Pages(240));
    all
}

#[test]
fn a_kept_longer_span_is_cut_for_a_request_that_the_page_heap_has_no_memory_for() {
    let w = watched(1);
    let all: Vec<_> = (0..4).map(|_| w.large(60 * PAGE)).collect();
    w.give(all[1]).unwrap();
    assert_eq!((w.heap.large.pages(), w.heap.in_use()), (Pages(60), Pages(240)));
    spans();
    assert_eq!(w.large(40 * PAGE), all[1]);
    assert_eq!(spans(), [SpanEvent::Resize { range: PageRange::new(w.page(all[1]), Pages(40)) }]);
    assert_eq!((w.heap.large.pages(), w.heap.in_use()), (Pages(0), Pages(220)));
}

#[test]
fn a_kept_span_serves_large_objects_a_little_shorter_and_slabs_of_one_object_of_its_length() {
    let w = watched(8);
    let class = size_class::class_of(26 * PAGE);
    assert!(size_class::geometry(class).is_single());
    let first = w.large(60 * PAGE);
    let object = w.take(class);
    w.give_all([first, object]);
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    w.heap.drop_complete();
    spans();
    assert_eq!(w.heap.large.pages(), Pages(86));
    assert_eq!((w.large(54 * PAGE), w.usable(first)), (first, Ok(60 * PAGE)));
    assert_eq!(w.take(class), object);
    assert_eq!((spans(), w.heap.large.pages()), (Vec::new(), Pages(0)));
    w.give_all([first, object]);
    w.empty();
}

#[test]
fn kept_spans_go_back_and_join_for_a_request_that_is_longer_than_each() {
    let w = world(1, 0);
    let all = nearly_full(&w);
    w.give_all([all[0], all[1]]);
    assert!(w.heap.large.pages() > Pages(0));
    let long = w.large(120 * PAGE);
    assert!(!long.is_null());
    assert_eq!((w.heap.large.pages(), w.heap.in_use()), (Pages(0), Pages(240)));
    assert!(w.heap.take_large(Pages(60), Pages(1)).is_err());
    w.give_all([long, all[2], all[3]]);
    w.empty();
}

#[test]
fn freed_slabs_wait_in_front_and_serve_another_class_of_the_same_length() {
    let w = world(4, 0);
    let (one, other) = (size_class::class_of(64), size_class::class_of(128));
    let objects = w.take_all(one, 8);
    let page = w.page(objects[0]);
    w.give_all(objects);
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    w.heap.drop_complete();
    assert_eq!((w.heap.spans.pages(), w.heap.mark(page)), (Pages(1), 0));
    let before = w.heap.pages().stats();
    assert_eq!(w.page(w.take(other)), page);
    assert_eq!(w.heap.pages().stats(), before, "without the page heap's lock");
    assert_eq!((usize::from(w.heap.mark(page)), w.heap.length(page).pages()), (other, Pages(1)));
}

#[test]
fn the_page_map_names_a_span_while_a_classs_slabs_hold_it() {
    let w = world(8, 0);
    for class in [size_class::class_of(64), size_class::class_of(3000), size_class::class_of(100 << 10)] {
        let g = size_class::geometry(class);
        let page = w.page(w.take(class));
        let marks: Vec<usize> =
            (page.0..page.0 + g.pages.0).map(|p| w.heap.mark(craton_base::PageId(p)).into()).collect();
        let mut expected = std::vec![if g.is_single() { 0 } else { class }; marks.len()];
        expected[0] = class;
        assert_eq!(marks, expected, "class {class}");
        assert_eq!((w.heap.length(page).pages(), w.heap.record(page).owner()), (g.pages, 0));
    }
}

#[test]
fn sources_that_only_take_spans_back_refuse_others() {
    let w = world(1, 0);
    let range = PageRange::new(craton_base::PageId(0), Pages(1));
    let none = Err(SpanError::NoMemory);
    assert_eq!(NoSpans.alloc(Pages(1), Pages(1), Density::Dense).map(|_| ()), none);
    assert_eq!((NoSpans.free(range, Density::Dense), NoSpans.resize(range, Pages(2)).map(|_| ())), (none, none));
    let mut marked = Marked { heap: w.heap, home: 0, class: 1 };
    assert_eq!(marked.alloc(Pages(1), Pages(1), Density::Dense).map(|_| ()), none);
    assert_eq!(marked.resize(range, Pages(2)).map(|_| ()), none);
    assert_eq!(w.heap.pages().granted().0, 0);
}

/// A refused request must not change these.
fn figures(w: &World) -> (Pages, u64, u64, Vec<u32>) {
    let slabs = (1..=CLASSES).map(|class| w.heap.class_stats(class).slabs).collect();
    (w.heap.in_use(), w.heap.bytes_out(), w.heap.gate.huge(), slabs)
}

#[test]
fn a_refused_object_of_any_kind_leaves_the_heap_as_it_was() {
    let small = size_class::class_of(64);
    let kinds: [fn(&World) -> *mut u8; 5] = [
        |w| w.heap.take_one(size_class::class_of(64)),
        |w| w.heap.take_one(size_class::class_of(30_000)),
        |w| w.heap.take_one(CLASSES),
        |w| w.large(3 << 20),
        |w| w.large(40 << 20),
    ];
    for (kind, rest) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for_each_refusal(
            rest,
            || world(24, 0),
            |w, n| {
                w.faults.set(FaultRule::Never);
                let old = w.heap.take_one(small);
                stamp(old, 64);
                // The next object needs more granted memory.
                let full = usize::from(size_class::geometry(small).capacity);
                (1..full).for_each(|_| _ = w.heap.take_one(small));
                while w.heap.in_use() < w.heap.pages().granted().pages() {
                    w.heap.take_own(Pages(1), Pages(1), Density::Dense).unwrap();
                }
                let before = figures(w);
                w.faults.set(if rest { FaultRule::From(n) } else { FaultRule::Nth(n) });
                let object = kind(w);
                assert!(w.faults.refused() > 0 || !object.is_null(), "null without a refusal");
                if object.is_null() {
                    assert_eq!(figures(w), before, "refusal {n}");
                }
                assert!(holds(old, 64));
            },
        );
    }
}

/// 12 MiB in use and 4 MiB free, under a hard limit of 20 MiB.
fn limited() -> (World, *mut u8) {
    let w = world(32, 0);
    let (kept, gone) = (w.large(12 * MIB), w.large(4 * MIB));
    stamp(kept, 12 * MIB);
    w.give(gone).unwrap();
    w.heap.gate.set(None, Some(20 * MIB as u64));
    (w, kept)
}

#[test]
fn l1_l2_under_a_hard_limit_each_refusal_below_leaves_contents_and_figures() {
    for rest in [false, true] {
        // With a release of free memory, and never.
        for (size, fits) in [(7 * MIB, true), (9 * MIB, false)] {
            let mut n = 0;
            loop {
                n += 1;
                let (w, kept) = limited();
                let before = figures(&w);
                w.faults.set(if rest { FaultRule::From(n) } else { FaultRule::Nth(n) });
                let object = w.large(size);
                let refused = w.faults.refused();
                assert!(object.is_null() || fits);
                assert!(w.heap.used() <= 20 * MIB as u64, "L1 at refusal {n}");
                if object.is_null() {
                    assert_eq!(figures(&w), before, "L2 at refusal {n}");
                }
                assert!(holds(kept, 12 * MIB));
                w.faults.set(FaultRule::Never);
                w.heap.pages().check().unwrap();
                assert_eq!(!w.large(7 * MIB).is_null(), object.is_null(), "as soon as the system gives again");
                if refused == 0 {
                    assert_eq!(!object.is_null(), fits);
                    break;
                }
                assert!(n < 60);
            }
        }
    }
}

#[test]
fn l2_a_resize_that_the_hard_limit_refuses_or_the_system_leaves_the_object_as_long_as_it_was() {
    let (w, kept) = limited();
    let before = figures(&w);
    let first = w.page(kept);
    assert_eq!(w.heap.resize_large(first, Pages(21 * 128)), Err(SpanError::NoMemory));
    assert_eq!((figures(&w), w.usable(kept)), (before.clone(), Ok(12 * MIB)));
    w.faults.set_only(Call::Unback, FaultRule::From(1));
    let grown = w.heap.resize_large(first, Pages(19 * 128));
    assert_eq!(w.usable(kept), Ok(if grown.is_ok() { 19 * MIB } else { 12 * MIB }));
    assert!(grown.is_ok() || figures(&w) == before);
    w.faults.set(FaultRule::Never);
    w.heap.relieve(20 * MIB as u64);
    assert!(w.heap.used() <= 20 * MIB as u64, "as soon as the system takes free memory");
    assert!(holds(kept, 12 * MIB));
    assert_eq!(w.heap.resize_large(first, Pages(128)), Ok(()), "shorter it becomes whatever the limits");
    w.heap.pages().check().unwrap();
}

/// Small objects may fill the region to its end.
fn the_last_bytes_are_an_object_like_others(w: &World) {
    let class = size_class::class_of(16);
    let mut objects: Vec<*mut u8> = Vec::new();
    loop {
        let object = w.take(class);
        if object.is_null() {
            break;
        }
        objects.push(object);
    }
    let last = *objects.iter().max().unwrap();
    assert_eq!((last as usize + 16) % HUGEPAGE_SIZE, 0);
    // A list of the thread has it, a slab, and a list again.
    for _ in 0..3 {
        w.give_all(objects.iter().copied());
        w.empty();
        objects = w.take_all(class, objects.len());
        assert!(objects.contains(&last));
    }
    w.give_all(objects);
    w.empty();
}

#[test]
fn the_last_bytes_of_the_region_are_an_object_like_others() {
    the_last_bytes_are_an_object_like_others(&world(4, 1 << 16));
    the_last_bytes_are_an_object_like_others(&hardened_world(4));
}
