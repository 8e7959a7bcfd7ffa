//! Which requests become samples of the profile.

mod ahead;

use super::recorder::{Recorder, damage_of, ended, forgone, hardened_watched, set_handlers};
use super::recorder::{set_sample, watched};
use super::world::World;
use crate::hooks::{Countdown, Damage, Hooks};
use crate::misuse::Misuse;
use crate::size_class;
use crate::thread_cache::{Slow, ThreadCache};
use craton_base::PAGE_SIZE;
use craton_sim::Rng;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

const SIZE: usize = 64;

/// A request as of malloc; what it stands for, if it is a sample.
fn request<H: Hooks>(w: &World<H>, class: usize) -> (*mut u8, Option<u64>) {
    // SAFETY: the cache is ours.
    unsafe {
        let object = ThreadCache::pop(w.cache, class);
        if !object.is_null() {
            return (object, None);
        }
        match ThreadCache::slow::<H>(w.cache, class) {
            Slow::Usual => refilled(w, class, 0),
            Slow::Served(object) => (object, None),
            Slow::Sample(object, bytes) if object.is_null() => refilled(w, class, bytes),
            Slow::Sample(object, bytes) => (object, Some(bytes)),
        }
    }
}

/// A request of an empty list, which stands for these bytes and perhaps more.
fn refilled<H: Hooks>(w: &World<H>, class: usize, bytes: u64) -> (*mut u8, Option<u64>) {
    // SAFETY: the cache is ours.
    let object = unsafe {
        match w.heap.turn_for(w.cache, class) {
            object if object.is_null() => w.heap.refill(w.cache, class),
            object => object,
        }
    };
    let bytes = bytes + w.cache().take_refill_sample();
    (object, (bytes > 0).then_some(bytes))
}

fn set_countdown<H: Hooks>(w: &World<H>, left: i64) {
    w.cache().set_countdown(Countdown { left, bytes: 0 });
}

/// Makes the `nth` request of a class after the one that is returned the sample, which stands for
/// `bytes`.
fn await_sample<H: Hooks>(w: &World<H>, class: usize, nth: u32, bytes: i64) -> *mut u8 {
    set_sample(nth);
    let requested = 1 + w.cache().miscount(class).0 as usize;
    set_countdown(w, (requested * size_class::size_of_class(class)) as i64 - bytes);
    let object = w.take(class);
    assert!(w.cache().awaits(class));
    object
}

/// Of each `period` requests one stays, and the others end after `lag` more.
fn the_nth_request_is_the_sample<H: Hooks>(w: &World<H>, size: usize, period: usize, lag: usize) {
    let class = size_class::class_of(size);
    for nth in [1, 2, 7, 16, 31, 100, 511] {
        let mut kept = vec![await_sample(w, class, nth, 1000)];
        let mut brief = VecDeque::new();
        for n in 1..=nth as usize + 50 {
            let (object, sample) = request(w, class);
            assert_eq!(sample, (n == nth as usize).then_some(1000), "request {n} of {nth}");
            assert!(!object.is_null() && w.usable(object) == Ok(size));
            if n % period == 0 {
                kept.push(object)
            } else {
                brief.push_back(object)
            }
            if brief.len() > lag {
                w.give(brief.pop_front().unwrap()).unwrap();
            }
        }
        assert!(!w.cache().awaits(class));
        kept.extend(brief);
        let mut sorted = kept.clone();
        sorted.sort();
        assert!(sorted.windows(2).all(|two| two[0] != two[1]), "none went out twice");
        w.give_all(kept);
        w.empty();
        assert_eq!(w.cache().miscount(class).1, 0);
        // SAFETY: the cache is ours.
        assert_eq!(unsafe { (*w.cache).bytes() }, 0);
    }
}

#[test]
fn neither_frees_nor_the_place_in_a_pattern_decide_which_request_is_the_sample() {
    for (period, lag) in [(1, 0), (2, 0), (20, 0), (20, 3), (usize::MAX, 0), (usize::MAX, 90)] {
        the_nth_request_is_the_sample(&watched(8), SIZE, period, lag);
        the_nth_request_is_the_sample(&hardened_watched(8), SIZE, period, lag);
    }
    the_nth_request_is_the_sample(&watched(8), 2048, 5, 1);
}

#[test]
fn requests_on_the_way_to_a_sample_are_fast_and_so_are_frees() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    let [smaller, larger] = [SIZE - 16, SIZE + 1].map(|size| w.take(size_class::class_of(size)));
    w.give_all([smaller, larger]);
    let mut objects = w.take_all(class, 100);
    w.give_all(objects.drain(..20));
    objects.push(w.take(class));
    set_sample(8);
    set_countdown(&w, -1);
    w.cache().count_down::<Recorder>(class, 1, 80);
    assert!(matches!(request(&w, class), (object, None) if { objects.push(object); true }), "the first is slow");
    let slow_sizes = || -> Vec<usize> {
        // SAFETY: the cache is ours; the objects go back.
        let is_slow = |size: &usize| unsafe {
            let object = ThreadCache::pop_quick(w.cache, *size);
            object.is_null() || !ThreadCache::push(w.cache, object)
        };
        (SIZE - 20..SIZE + 5).filter(is_slow).collect()
    };
    for n in 2..8 {
        // SAFETY: the cache is ours; the object is given up.
        unsafe {
            let object = ThreadCache::pop_quick(w.cache, SIZE - 3);
            assert!(!object.is_null(), "request {n}");
            assert!(ThreadCache::push(w.cache, object), "request {n}");
        }
    }
    assert_eq!(slow_sizes(), (SIZE - 15..=SIZE).collect::<Vec<_>>(), "the class's requests, and no others");
    let (sample, bytes) = request(&w, class);
    assert!(bytes.is_some() && slow_sizes().is_empty());
    objects.push(sample);
    w.give_all(objects);
    w.empty();
}

#[test]
fn where_handlers_allocate_each_request_on_the_way_is_slow() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    set_handlers();
    let mut objects = vec![await_sample(&w, class, 5, 700)];
    for n in 1..=5 {
        // SAFETY: the cache is ours.
        assert!(unsafe { ThreadCache::pop_quick(w.cache, SIZE) }.is_null(), "request {n}");
        let (object, sample) = request(&w, class);
        assert_eq!(sample, (n == 5).then_some(700));
        objects.push(object);
    }
    w.give_all(objects);
    w.empty();
}

#[test]
fn chance_chooses_among_as_many_requests_as_there_were() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    let among = |requests, ready| {
        set_countdown(&w, -1);
        w.cache().count_down::<Recorder>(class, requests, ready);
        ended()[..] == [(class, requests)]
    };
    assert!(among(1, 30) && among(20, 30) && among(480, 30));
    let of_size = |size: usize, requests, ready| {
        let class = size_class::class_of(size);
        set_countdown(&w, -1);
        w.cache().count_down::<Recorder>(class, requests, ready);
        ended()[0].1
    };
    assert_eq!(of_size(SIZE, 481, 30), 480, "16 for each object that is ready");
    assert_eq!(of_size(SIZE, 10_000, 1000), 512);
    assert_eq!(of_size(SIZE, 10_000, 0), 32);
    assert_eq!(of_size(1024, 10_000, 1000), 256, "256 KiB");
    assert_eq!(of_size(100_000, 10_000, 1000), 32);
}

#[test]
fn a_list_without_memory_still_waits_and_a_flush_ends_the_wait() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    let first = await_sample(&w, class, 100, 700);
    let some: Vec<*mut u8> = (0..5).map(|_| request(&w, class).0).collect();
    // SAFETY: the cache is ours.
    let held = unsafe { (*w.cache).bytes() };
    assert!(held >= SIZE, "its list's objects count");
    w.empty();
    assert!(!w.cache().awaits(class) && forgone() == [(class, 700)]);
    // SAFETY: as above.
    assert_eq!(unsafe { (*w.cache).bytes() }, 0, "its list's objects went back");
    w.give(first).unwrap();
    w.give_all(some);
    w.empty();
}

#[test]
fn a_refill_beside_the_wait_ends_it() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    let mut objects = vec![await_sample(&w, class, 2, 700)];
    objects.push(request(&w, class).0);
    w.give(objects.pop().unwrap()).unwrap();
    assert!(w.cache().awaits(class));
    objects.push(w.take(class));
    assert!(!w.cache().awaits(class) && forgone() == [(class, 700)]);
    w.give_all(objects);
    w.empty();
}

#[test]
fn a_class_that_never_sees_its_sample_makes_way_for_others() {
    let w = watched(16);
    let (classes, last) = (1..=50, 50);
    let firsts: Vec<*mut u8> = classes.clone().map(|class| await_sample(&w, class, 9, 700)).collect();
    let awaited = classes.filter(|class| w.cache().awaits(*class)).count();
    assert_eq!((awaited, forgone().len()), (44, 6));
    assert!(w.cache().awaits(last));
    let mut more: Vec<*mut u8> = (1..9).map(|_| request(&w, last).0).collect();
    let (sample, bytes) = request(&w, last);
    assert_eq!(bytes, Some(700));
    more.push(sample);
    w.give_all(firsts.into_iter().chain(more));
    w.empty();
}

#[test]
fn a_second_end_of_the_countdown_counts_for_the_same_sample() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    let mut objects = vec![await_sample(&w, class, 3, 700)];
    set_countdown(&w, -300);
    w.cache().count_down::<Recorder>(class, 0, 0);
    let samples: Vec<Option<u64>> = (0..3)
        .map(|_| {
            let (object, sample) = request(&w, class);
            objects.push(object);
            sample
        })
        .collect();
    assert_eq!(samples, [None, None, Some(1000)]);
    w.give_all(objects);
    w.empty();
}

fn objects_that_come_back_are_counted<H: Hooks>(w: &World<H>) {
    let class = size_class::class_of(SIZE);
    let mut objects = vec![w.take(class)];
    while w.cache().len(class) < 14 {
        objects.push(w.take(class));
    }
    set_sample(12);
    set_countdown(w, -1);
    w.cache().count_down::<H>(class, 0, 0);
    objects.push(request(w, class).0);
    let flush = |most| {
        let chain = w.cache().drain::<H>(class, most);
        assert!(!chain.is_empty());
        // SAFETY: the chain's objects are the heap's.
        unsafe { w.heap.give(class, chain) };
    };
    // The pops are counted while the awaited list has objects.
    flush(u32::MAX);
    assert!(w.cache().miscount(class).1 == 0 && w.cache().is_empty(class));
    w.cache().forgo::<H>(class);
    assert_eq!(forgone().len(), 1);
    flush(w.cache().len(class) as u32 - 2);
    while !w.cache().is_empty(class) {
        objects.push(w.take(class));
    }
    assert_eq!(w.cache().miscount(class).1, 0);
    w.give_all(objects);
    w.empty();
}

#[test]
fn t1_holds_when_objects_of_an_awaited_list_come_back_and_are_flushed() {
    objects_that_come_back_are_counted(&watched(8));
    objects_that_come_back_are_counted(&hardened_watched(8));
}

/// Requests, frees, flushes and waits of six classes in any order.
fn in_any_order<H: Hooks>(w: &World<H>, seed: u64) {
    let classes = [16, 48, 64, 176, 400, 2000].map(size_class::class_of);
    let mut held: Vec<*mut u8> = Vec::new();
    let mut random = Rng::new(seed);
    let mut below = |n| random.below(n) as usize;
    for step in 0..100_000 {
        let class = classes[below(6)];
        match below(1000) {
            0..10 => {
                set_sample(1 + below(300) as u32);
                set_countdown(w, -1);
                w.cache().count_down::<H>(class, 0, 0);
            }
            10..12 => held.push(w.take(class)),
            // SAFETY: the cache is ours.
            12 if below(10) == 0 => unsafe { w.heap.empty_cache(w.cache) },
            // Phases in which much is requested, or freed.
            13.. if held.is_empty() || below(100) < 30 + step / 4000 % 2 * 40 => held.push(request(w, class).0),
            _ if !held.is_empty() => w.give(held.swap_remove(below(held.len() as u64))).unwrap(),
            _ => (),
        }
        set_sample(0);
        assert!(held.last().is_none_or(|object| !object.is_null()));
    }
    let mut sorted = held.clone();
    sorted.sort();
    assert!(sorted.windows(2).all(|two| two[0] != two[1]), "none went out twice");
    w.give_all(held);
    w.empty();
    for class in classes {
        assert_eq!(w.cache().miscount(class).1, 0);
    }
    // SAFETY: the cache is ours.
    assert_eq!(unsafe { (*w.cache).bytes() }, 0);
}

#[test]
fn t1_and_t5_hold_whatever_happens_while_classes_await_their_samples() {
    for seed in 1..=8 {
        in_any_order(&watched(16), seed);
        in_any_order(&hardened_watched(16), seed);
    }
}

#[test]
fn t5_an_object_of_the_awaited_list_that_was_written_to_is_damage() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    await_sample(&w, class, 100, 700);
    let object = request(&w, class).0;
    let (next, _) = request(&w, class);
    // SAFETY: the cache is ours; a program's stray write.
    let at = unsafe {
        assert!(ThreadCache::push(w.cache, next) && ThreadCache::push(w.cache, object));
        let at = w.cache().awaited_head(class);
        at.cast::<usize>().add(1).write(1);
        at
    };
    // SAFETY: as above.
    let damage = damage_of(|| _ = unsafe { ThreadCache::slow::<Recorder>(w.cache, class) });
    assert_eq!(damage, Damage::NotFree { class, at });
}

#[test]
fn t5_an_object_that_left_the_awaited_list_twice_is_damage() {
    for lost in [false, true] {
        let (w, class) = (watched(8), size_class::class_of(SIZE));
        await_sample(&w, class, 4, 700);
        let [first, second, third] = [(); 3].map(|()| request(&w, class).0);
        // A signal handler that interrupts a pop takes the same object, or its push is lost.
        w.cache().miscount_awaited(class, if lost { -1 } else { 1 });
        // SAFETY: the cache is ours.
        let damage = damage_of(|| _ = unsafe { ThreadCache::slow::<Recorder>(w.cache, class) });
        let expected = match lost {
            true => Damage::Lost { class, objects: 1 },
            false => Damage::GivenTwice { class, objects: 1 },
        };
        assert_eq!(damage, expected);
        assert!(first != second && second != third);
    }
}

#[test]
fn requests_are_counted_when_the_list_is_refilled() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    set_countdown(&w, 1000 * SIZE as i64 - 1);
    let requests = (1..2000).find(|_| {
        w.take(class);
        !ended().is_empty()
    });
    assert!(requests.is_some_and(|n| (1000..1100).contains(&n)), "{requests:?}");
}

#[test]
fn a_hardened_cache_counts_the_requests_of_its_turns() {
    let (w, class) = (hardened_watched(8), size_class::class_of(SIZE));
    let first = w.take(class);
    set_countdown(&w, 1000 * SIZE as i64 - 1);
    let requests = (1..3000).find(|_| {
        let object = w.take(class);
        w.give(object).unwrap();
        !ended().is_empty()
    });
    assert!(requests.is_some_and(|n| (900..2200).contains(&n)), "{requests:?}");
    w.give(first).unwrap();
    w.empty();
}

#[test]
fn a_hardened_cache_that_keeps_every_other_object_counts_its_turns_too() {
    let (w, class) = (hardened_watched(16), size_class::class_of(SIZE));
    let mut kept = vec![w.take(class)];
    set_countdown(&w, 10_000 * SIZE as i64);
    let requests = (1..20_000).find(|n| {
        // As malloc does before a refill.
        // SAFETY: the cache is ours.
        let turned = unsafe {
            let object = ThreadCache::pop(w.cache, class);
            if object.is_null() { w.heap.turn_for(w.cache, class) } else { object }
        };
        let object = if turned.is_null() { w.take(class) } else { turned };
        if n % 2 == 0 {
            kept.push(object)
        } else {
            w.give(object).unwrap()
        }
        !ended().is_empty()
    });
    assert!(requests.is_some_and(|n| (9_000..12_000).contains(&n)), "{requests:?}");
    w.give_all(kept);
    w.empty();
}

#[test]
fn a_flush_of_the_cache_counts_its_pops() {
    for (left, ends) in [(10 * SIZE as i64, false), (10 * SIZE as i64 - 1, true)] {
        let (w, class) = (watched(8), size_class::class_of(SIZE));
        let mut objects = w.take_all(class, 10);
        assert!(!w.cache().is_empty(class));
        set_countdown(&w, left);
        // SAFETY: the cache is ours.
        unsafe { w.heap.empty_cache(w.cache) };
        assert_eq!(w.cache().miscount(class), (0, 0));
        objects.push(w.take(class));
        assert_eq!(!ended().is_empty(), ends, "nine pops, and a refill");
        w.give_all(objects);
        w.empty();
    }
}

#[test]
fn m8_frees_behind_a_sample_leave_the_fast_path_until_it_ends_and_others_do_not() {
    let (w, class) = (watched(16), size_class::class_of(SIZE));
    let mut objects = w.take_all(class, 20);
    objects.sort();
    let page = |object: *mut u8| w.heap.page_of(object as usize);
    let sample = objects[7];
    assert!(w.heap.begin_sample(sample));
    assert!(!w.heap.begin_sample(objects[8]) && !w.heap.begin_sample(objects[3]), "one on a page");
    assert!(!w.heap.end_sample(objects[8]) && !w.heap.end_sample(objects[3]), "not the sample");
    // Further places of the page are cut meanwhile.
    let more = w.take_all(class, 200);
    let behind = *more.iter().find(|object| page(**object) == page(sample)).unwrap();
    let beyond = *more.iter().find(|object| page(**object) != page(sample)).unwrap();
    let pages = w.heap.view().pages;
    let class_of = |found: Option<(usize, usize)>| found.map(|(class, _)| class);
    let is_behind = |object: *mut u8| class_of(w.heap.recognise_behind_sample(object, pages)).is_some();
    // SAFETY: the cache is ours; what it takes is given up.
    let push = |object: *mut u8| unsafe { ThreadCache::push(w.cache, object) };
    for object in [sample, objects[8], behind] {
        assert!(!push(object));
        assert_eq!(is_behind(object), object != sample);
        let from = |object: *mut u8| class_of(w.heap.recognise_from_sample(object, pages));
        assert_eq!((from(object), w.heap.recognise(object)), (Some(class), Some(class)));
        assert_eq!((from(object.wrapping_add(16)), w.heap.recognise(object.wrapping_add(16))), (None, None));
        assert_eq!(w.usable(object), Ok(SIZE));
    }
    for object in [objects[6], beyond] {
        assert!(!is_behind(object) && w.heap.recognise(object) == Some(class));
        assert!(push(object), "its free is fast");
    }
    w.take_all(class, 2);
    w.give(behind).unwrap();
    assert_eq!(w.give(behind), Err(Misuse::Freed { size: SIZE }));
    let again = w.take(class);
    assert!(w.heap.end_sample(sample) && !w.heap.end_sample(sample));
    assert_eq!((is_behind(sample), w.heap.recognise(sample)), (false, Some(class)));
    assert!(push(sample) && push(again), "fast again, also for places that were cut meanwhile");
    w.give_all(objects.into_iter().filter(|object| *object != sample));
    w.give_all(more.into_iter().filter(|object| *object != behind));
    w.empty();
}

/// The places of `object`'s page that lie behind it.
fn behind<H: Hooks>(w: &World<H>, object: *mut u8, class: usize) -> usize {
    let (page, geometry) = (w.heap.page_of(object as usize).unwrap(), size_class::geometry(class));
    let slab = w.heap.address(geometry.slab_of(page)) as usize;
    let end = w.heap.address(page) as usize + PAGE_SIZE - slab;
    let (size, capacity) = (geometry.object as usize, geometry.capacity.into());
    end.div_ceil(size).min(capacity) - (object as usize - slab) / size - 1
}

#[test]
fn a_samples_place_is_the_last_of_its_page_where_places_are_still_to_be_cut() {
    for size in [16, 64, 208, 1024] {
        let (w, class) = (watched(16), size_class::class_of(size));
        let object = w.take(class);
        // SAFETY: the cache is ours; the object is new.
        let sample = unsafe { w.heap.place_sample(w.cache, object) };
        assert!(behind(&w, sample, class) * size < PAGE_SIZE / 64, "{size}: {}", behind(&w, sample, class));
        assert!(w.heap.begin_sample(sample));
        let others = w.take_all(class, 2 * PAGE_SIZE / size);
        assert!(others.contains(&object) && !others.contains(&sample), "they changed places");
        let near = |object: *mut u8| w.heap.page_of(object as usize) == w.heap.page_of(sample as usize);
        let before = others.iter().filter(|object| near(**object) && **object < sample);
        // SAFETY: the cache is ours.
        let is_known = |object: *mut u8| unsafe { ThreadCache::recognise(w.cache, object) }.is_some();
        assert!(before.clone().count() > 0 && before.clone().all(|object| is_known(*object)), "their frees are fast");
        assert!(!is_known(sample));
        w.give_all(others);
        assert!(w.heap.end_sample(sample));
        w.give(sample).unwrap();
        w.empty();
    }
}

#[test]
fn a_samples_place_is_chosen_among_free_objects_and_not_on_a_page_that_has_one() {
    let (w, class) = (watched(16), size_class::class_of(SIZE));
    let places = PAGE_SIZE / SIZE;
    let mut objects = w.take_all(class, 3 * places);
    objects.sort();
    let page = |object: *mut u8| w.heap.page_of(object as usize).unwrap();
    let (first, second) = (page(objects[0]), page(objects[2 * places]));
    let mut of = |wanted| -> Vec<*mut u8> { objects.extract_if(.., |object| page(*object) == wanted).collect() };
    let (mut first, mut second) = (of(first), of(second));
    let (kept, before) = (first.pop().unwrap(), second.len());
    assert!(w.heap.begin_sample(kept));
    w.empty();
    let some = [first.split_off(first.len() - 4), second.split_off(before - 6)].concat();
    let best = *second.last().unwrap_or(&kept);
    w.give_all(some.iter().copied());
    // SAFETY: the cache is ours; the object is new.
    let sample = unsafe { w.heap.place_sample(w.cache, w.take(class)) };
    assert!(page(sample) != page(kept) && sample > best && behind(&w, sample, class) == 0, "{sample:?}");
    assert!(w.heap.begin_sample(sample));
    let others: Vec<*mut u8> = w.take_all(class, some.len() - 1);
    assert!(others.iter().all(|object| some.contains(object) && *object != sample));
    assert!(w.heap.end_sample(sample) && w.heap.end_sample(kept));
    w.give_all(others.into_iter().chain(first).chain(second).chain(objects).chain([kept, sample]));
    w.empty();
}

#[test]
fn large_objects_and_addresses_of_nothing_have_no_page_with_a_sample() {
    let w = watched(16);
    let large = w.large(300 << 10);
    assert!(!w.heap.begin_sample(large) && !w.heap.end_sample(large));
    assert!(!w.heap.begin_sample(core::ptr::without_provenance_mut(64)));
    w.give(large).unwrap();
}
