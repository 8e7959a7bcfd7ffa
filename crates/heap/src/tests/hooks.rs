//! Each event and damage is reported.

use super::recorder::{METADATA, damage_of, events, keeping, refills, set_bound, set_keeps, spans, usage, watched};
use super::world::World;
use crate::Misuse;
use crate::hooks::{Damage, Event, Hooks, SpanEvent, Usage};
use crate::size_class;
use craton_base::{Density, HugePages, PageId, PageRange, Pages};
use craton_pages::{HugeBacking, PageHeapExt};
use craton_sim::{Rng, ThpMode};
use std::collections::BTreeMap;
use std::vec::Vec;

const MIB: usize = 1 << 20;

fn range<H: Hooks>(w: &World<H>, object: *mut u8, pages: u32) -> PageRange {
    PageRange::new(w.page(object), Pages(pages))
}

#[test]
fn a_span_is_reported_when_the_page_heap_gives_it_and_when_it_comes_back() {
    let w = watched(16);
    let object = w.large(300 << 10);
    let range = range(&w, object, 38);
    let density = Density::Sparse;
    assert_eq!(spans(), [SpanEvent::Alloc { range, align: Pages(1), density }]);
    w.give(object).unwrap();
    assert_eq!(spans(), [], "it waits in front of the page heap");
    assert_eq!(w.large(300 << 10), object);
    w.give(object).unwrap();
    assert_eq!(spans(), [], "and serves from there");
    w.heap.release(|| ());
    assert_eq!(spans(), [SpanEvent::Free { range, density }]);
}

#[test]
fn a_span_of_a_class_is_reported_with_its_alignment_and_density() {
    let w = watched(16);
    for class in [size_class::class_of(64), size_class::class_of(20 << 10), size_class::class_of(200 << 10)] {
        let g = size_class::geometry(class);
        let object = w.take(class);
        let range = range(&w, object, g.pages.0);
        assert_eq!(spans(), [SpanEvent::Alloc { range, align: g.align(), density: g.density() }]);
    }
}

#[test]
fn a_resize_is_reported_with_the_new_length_and_a_refused_one_is_not() {
    let w = watched(16);
    let object = w.large(300 << 10);
    spans();
    assert_eq!(w.heap.resize(object, w.heap.find(object), MIB), Some(object));
    assert_eq!(spans(), [SpanEvent::Resize { range: range(&w, object, 128) }]);
    w.heap.gate.set(None, Some(2 * MIB as u64));
    assert_eq!(w.heap.resize(object, w.heap.find(object), 3 * MIB), None);
    assert!(w.large(3 * MIB).is_null() && w.large(40 * MIB).is_null());
    assert_eq!((spans(), events()), (Vec::new(), std::vec![Event::LargeAllocs(1)]), "of the first object");
}

#[test]
fn spans_that_are_cut_anew_are_reported_as_freed_longer_shorter_and_new_ones() {
    let w = watched(4);
    let mut pages = w.heap.lock_pages();
    let both: Vec<_> = (0..2).map(|_| pages.alloc(Pages(1), Pages(1), Density::Dense).unwrap().range).collect();
    spans();
    let (first, second) = (both[0], both[1]);
    assert_eq!(first.end(), second.first);
    let joined = PageRange::new(first.first, Pages(2));
    pages.recut(joined, Pages(2), both.iter().copied()).unwrap();
    assert_eq!(
        spans(),
        [SpanEvent::Free { range: second, density: Density::Sparse }, SpanEvent::Resize { range: joined }]
    );
    pages.recut(joined, Pages(1), core::iter::once(joined)).unwrap();
    let new = SpanEvent::Alloc { range: second, align: Pages(1), density: Density::Sparse };
    assert_eq!(spans(), [SpanEvent::Resize { range: first }, new]);
    pages.free(second, Density::Dense).unwrap();
    spans();
    assert!(pages.alloc_at(second) && !pages.alloc_at(second));
    assert_eq!(spans(), [new], "only what was taken");
    both.into_iter().for_each(|range| pages.free(range, Density::Dense).unwrap());
}

fn fold(known: &mut BTreeMap<PageId, Pages>) {
    for event in spans() {
        match event {
            SpanEvent::Alloc { range, .. } => assert_eq!(known.insert(range.first, range.len), None),
            SpanEvent::Free { range, .. } => assert_eq!(known.remove(&range.first), Some(range.len)),
            SpanEvent::Resize { range } => assert!(known.insert(range.first, range.len).is_some()),
        }
    }
    let ends: Vec<_> = known.iter().map(|(first, len)| (first.0, first.0 + len.0)).collect();
    assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "two reported spans overlap");
}

#[test]
fn the_reported_spans_never_overlap_and_add_up_to_what_is_in_use() {
    let w = watched(64);
    let (mut rng, mut known, mut out) = (Rng::new(5), BTreeMap::new(), Vec::new());
    for round in 0..8000u32 {
        match rng.below(20) {
            0..3 => out.push(w.large((300 << 10) << rng.below(4))),
            3..11 => out.push(w.take(1 + rng.below(40) as usize)),
            11 if !out.is_empty() => {
                let object = out.swap_remove(rng.below(out.len() as u64) as usize);
                let size = (100 << 10) << rng.below(6);
                match w.heap.resize(object, w.heap.find(object), size) {
                    Some(now) => out.push(now),
                    None => w.give(object).unwrap(),
                }
            }
            _ if !out.is_empty() => w.give(out.swap_remove(rng.below(out.len() as u64) as usize)).unwrap(),
            _ => {}
        }
        if round % 100 == 0 {
            out.retain(|object| !object.is_null());
            fold(&mut known);
            assert_eq!(Pages(known.values().map(|len| len.0).sum()), w.heap.in_use());
        }
    }
    w.give_all(out.into_iter().filter(|object| !object.is_null()));
    w.empty();
    fold(&mut known);
    assert_eq!(known.len(), 0);
}

#[test]
fn usage_is_published_with_each_use_of_the_page_heap_and_not_without() {
    let w = watched(16);
    let object = w.large(300 << 10);
    let (last, n) = usage();
    let granted = w.heap.pages().granted();
    let metadata_bytes = (METADATA.0 + METADATA.1 * granted.0 as usize) as u64;
    let backed_bytes = w.heap.pages().backed_pages().bytes().0 as u64;
    let now = Usage { in_use: Pages(38), backed: HugePages(1), backed_bytes, metadata_bytes };
    assert_eq!((last, n), (Some((now, w.heap.releasable())), 1));
    assert_eq!(w.heap.used(), backed_bytes + metadata_bytes);
    w.give(object).unwrap();
    assert_eq!(usage(), (None, 0), "what waits in front is out to the page heap");
    w.heap.release(|| ());
    let (last, _) = usage();
    assert_eq!(
        last.map(|(usage, releasable)| (usage.in_use, usage.backed_bytes, releasable)),
        Some((Pages(0), 0, Pages(0)))
    );
}

#[test]
fn large_and_huge_objects_are_counted_where_they_begin_change_and_end() {
    let w = watched(16);
    let huge = 40 * MIB as u64;
    let (a, b) = (w.large(MIB), w.large(40 * MIB));
    assert_eq!(events(), [Event::LargeAllocs(1), Event::HugeBytes { more: huge, less: 0 }, Event::HugeAlloc]);
    let b = w.heap.resize(b, w.heap.find(b), 50 * MIB).unwrap();
    assert_eq!(events(), [Event::HugeBytes { more: 50 * MIB as u64, less: huge }]);
    w.give(b).unwrap();
    assert_eq!(events(), [Event::HugeBytes { more: 0, less: 50 * MIB as u64 }]);
    w.give(a).unwrap();
    assert!(w.large(MIB) == a && events() == [Event::LargeAllocs(1)], "also of one that lay at hand");
}

#[test]
fn passing_the_soft_limit_is_reported_until_it_is_armed_anew() {
    let w = watched(32);
    w.heap.gate.set(Some(10 * MIB as u64), None);
    let a = w.large(8 * MIB);
    assert!(!events().contains(&Event::LimitPassed));
    let b = w.large(4 * MIB);
    assert!(events().contains(&Event::LimitPassed));
    w.heap.gate.rearm_above(w.heap.used());
    let c = w.large(300 << 10);
    assert!(!events().contains(&Event::LimitPassed), "it has not grown by a step");
    w.give_all([b, c]);
    w.heap.release(|| ());
    assert!(!events().contains(&Event::LimitPassed), "below the limit it only counts anew");
    assert!(!w.large(4 * MIB).is_null());
    assert!(events().contains(&Event::LimitPassed));
    w.give(a).unwrap();
}

#[test]
fn huge_objects_pass_the_soft_limit_too() {
    let w = watched(16);
    w.heap.gate.set(Some(60 * MIB as u64), None);
    let a = w.large(40 * MIB);
    assert!(!events().contains(&Event::LimitPassed));
    let a = w.heap.resize(a, w.heap.find(a), 64 * MIB).unwrap();
    assert!(events().contains(&Event::LimitPassed));
    w.give(a).unwrap();
}

#[test]
fn reuse_of_complete_slabs_is_reported_once_in_so_many() {
    let w = watched(16);
    let class = size_class::class_of(64);
    let n = 40 * usize::from(size_class::geometry(class).capacity);
    (0..6).for_each(|_| w.give_all(w.take_all(class, n)));
    let reported = events().into_iter().filter(|event| *event == Event::SlabsReused).count();
    assert!((2..60).contains(&reported), "{reported} reports");
}

#[test]
fn the_first_refills_are_reported_one_by_one_with_their_objects() {
    let w = watched(16);
    let class = size_class::class_of(64);
    w.take_all(class, 16 + 1);
    let (mut objects, list) = (0, refills());
    assert_eq!(list.len(), 2);
    for event in list {
        let Event::Refills { chains: 1, objects: n } = event else { panic!("{event:?}") };
        objects += n;
    }
    assert_eq!(objects, w.heap.class_stats(class).objects_out);
}

#[test]
fn a_refill_fetches_no_more_than_the_hooks_bound() {
    let w = watched(16);
    set_bound(3);
    let class = size_class::class_of(64);
    for _ in 0..5 {
        w.take(class);
        assert_eq!(w.cache().bytes(), 2 * 64, "one went out");
        w.take_all(class, 2);
    }
}

#[test]
fn a_mapping_is_kept_only_where_the_hooks_say_that_it_goes_back_in_time() {
    let w = keeping(16);
    w.give(w.large(40 * MIB)).unwrap();
    let empty = w.system.mapped();
    let again = w.large(40 * MIB);
    assert!(events().contains(&Event::MappingKept), "from now on as much is kept");
    w.give(again).unwrap();
    assert_eq!(w.system.mapped(), empty + 40 * MIB);
    w.heap.drop_kept();
    let again = w.large(40 * MIB);
    set_keeps(false);
    w.give(again).unwrap();
    assert_eq!(w.system.mapped(), empty);
}

#[test]
fn a_list_that_handed_an_object_out_twice_ends_the_process_at_the_next_refill() {
    let w = watched(8);
    let class = size_class::class_of(64);
    w.take_all(class, 16);
    w.cache().set_miscount(class, 3);
    assert_eq!(damage_of(|| _ = w.take(class)), Damage::GivenTwice { class, objects: 3 });
}

#[test]
fn a_list_that_lost_objects_ends_the_process_at_the_next_refill() {
    let w = watched(8);
    let class = size_class::class_of(64);
    w.take_all(class, 16);
    w.cache().set_miscount(class, -5);
    assert_eq!(damage_of(|| _ = w.take(class)), Damage::Lost { class, objects: 5 });
}

#[test]
fn a_list_that_runs_in_a_circle_is_damage() {
    let w = watched(8);
    let class = size_class::class_of(64);
    let object = w.take(class);
    w.give(object).unwrap();
    // SAFETY: the object is readable and writable.
    unsafe { object.cast::<*mut u8>().write(object) };
    // SAFETY: the cache is ours.
    let damage = damage_of(|| unsafe { w.heap.empty_cache(w.cache) });
    assert_eq!(damage, Damage::GivenTwice { class, objects: 1 });
}

#[test]
fn a_link_to_a_place_that_never_was_an_object_is_damage_and_names_it() {
    let class = size_class::class_of(48);
    for shards in [1, 2] {
        let w = watched(8);
        w.heap.use_shards(shards);
        let object = w.take(class);
        w.give(object).unwrap();
        // SAFETY: an uncut place on the object's slab.
        let wild = unsafe { object.add(48 * 120) };
        // SAFETY: as above.
        unsafe { object.cast::<*mut u8>().write(wild) };
        // SAFETY: the cache is ours.
        let damage = damage_of(|| unsafe { w.heap.empty_cache(w.cache) });
        assert_eq!(damage, Damage::NotFree { class, at: wild });
    }
}

/// Overwrites a link on a slab's list.
fn damage_on_slab(word: impl Fn(*mut u8) -> usize) -> (Damage, *mut u8) {
    let w = watched(8);
    let class = size_class::class_of(48);
    let objects = w.take_all(class, 100);
    let keeps_slab = w.take(class);
    w.give_all(objects.iter().copied());
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    // The list begins with the objects freed last.
    let first = w.take(class);
    assert!(objects.contains(&first) && first != keeps_slab);
    w.give(first).unwrap();
    // SAFETY: as above.
    unsafe { w.heap.empty_cache(w.cache) };
    let first = w.heap.record(w.page(first)).as_ref().first_free();
    // SAFETY: the object is readable and writable.
    unsafe { first.cast::<usize>().write(word(first)) };
    (damage_of(|| _ = w.heap.take(0, class, 16)), first)
}

#[test]
fn a_link_of_a_slab_that_leads_elsewhere_or_back_is_damage_when_it_is_followed() {
    let class = size_class::class_of(48);
    for word in [0, 16, usize::MAX & !15] {
        assert_eq!(damage_on_slab(|_| word).0, Damage::NotFree { class, at: word as *mut u8 });
    }
    let (damage, first) = damage_on_slab(|first| first as usize);
    assert_eq!(damage, Damage::NotFree { class, at: first });
    let (damage, first) = damage_on_slab(|first| first as usize + 16);
    assert_eq!(damage, Damage::NotFree { class, at: first.wrapping_add(16) });
}

#[test]
fn an_unchecked_free_of_a_place_that_never_was_an_object_is_found_on_its_way_to_the_slab() {
    let w = watched(8);
    let class = size_class::class_of(48);
    let place = w.take(class).wrapping_add(48 * 100);
    // SAFETY: the place lies on a slab of the class.
    let damage = damage_of(|| unsafe { w.heap.give_one(class, place) });
    assert_eq!(damage, Damage::Object { object: place, misuse: Misuse::Unallocated });
}

#[test]
fn a_list_that_begins_outside_of_the_region_is_damage_before_it_is_followed() {
    let w = watched(8);
    w.heap.use_shards(2);
    let mut foreign = [0usize; 2];
    let (class, wild) = (size_class::class_of(48), foreign.as_mut_ptr().cast::<u8>());
    // SAFETY: the memory is writable.
    let damage = damage_of(|| unsafe { w.heap.give_marked(class, wild) });
    assert_eq!(damage, Damage::NotFree { class, at: wild });
}

#[test]
fn a_large_object_that_another_thread_freed_first_is_damage() {
    let w = watched(8);
    let object = w.large(MIB);
    let first = w.page(object);
    assert_eq!(w.heap.large_at(object as usize), Some(first));
    // Both threads have found the object.
    let freed = w.heap.give_large(first);
    let damage = damage_of(|| _ = w.heap.give_large(first));
    assert_eq!(damage, Damage::Object { object, misuse: Misuse::Freed { size: MIB } });
    freed.into_iter().for_each(|span| w.heap.give_span(span));
    let damage = damage_of(|| w.heap.give_span(PageRange::new(first, Pages(3))));
    assert_eq!(damage, Damage::Object { object, misuse: Misuse::Unallocated });
}

#[test]
fn dense_memory_on_small_pages_calls_for_the_thread_until_its_round_begins() {
    let w = watched(512);
    w.floor.sim().set_thp(ThpMode::Madvise);
    w.heap.pages().set_backing(HugeBacking::AUTO);
    // One hugepage in 16 stays small, to be looked at.
    let take = |touched: u32| {
        let object = w.large(700 << 10);
        w.floor.sim().touch(range(&w, object, touched));
        events().contains(&Event::DenseSmall)
    };
    assert!((0..200).all(|_| !take(1)), "sparse memory is worth no thread");
    let first = (0..500).position(|_| take(87)).expect("16 MiB were dense");
    assert!(first > 16 && take(87), "{first}: it goes on until a round");
    while !w.heap.collapse_is_due() {}
    assert!((0..16).all(|_| !take(87)));
}
