//! Lengths and counts of a cache's lists, and miscounts.

use super::count::{WEAR, explain, objects_in};
use super::*;
use crate::tests::world::world;
use craton_slab::Chain;
use std::boxed::Box;
use std::vec::Vec;

const BUDGET: usize = 256 << 10;

impl ThreadCache {
    /// As a signal handler may: an empty list counts `objects` more than it gave out.
    pub(crate) fn set_miscount(&mut self, class: usize, objects: i32) {
        assert!(self.is_empty(class));
        self.lists[class].room += objects * ONE;
    }

    /// By its links.
    fn held(&self, class: usize) -> Vec<*mut u8> {
        let mut at = self.lists[class].head;
        core::iter::from_fn(|| {
            let object = (at != end()).then_some(at)?;
            // SAFETY: a free object of the list, linked to the next.
            at = unsafe { at.cast::<*mut u8>().read() };
            Some(object)
        })
        .collect()
    }

    /// T1 for one list.
    fn is_right(&self, class: usize) -> bool {
        let list = &self.lists[class];
        self.paces[class].max - objects_in(list.room) == self.held(class).len() as i32
    }
}

/// A cache of no heap.
fn fresh() -> Box<ThreadCache> {
    let mut cache = Box::<ThreadCache>::new_uninit();
    let view = HeapView { base: 0, pages: 0, map: PageMap::EMPTY, key: &Key::new([1, 2]), hardened: false };
    // SAFETY: memory for one cache; the heap of the view has no pages.
    unsafe {
        ThreadCache::begin(cache.as_mut_ptr(), view, &AtomicU32::new(0), 0, BUDGET);
        cache.assume_init()
    }
}

#[test]
fn the_factor_of_a_class_turns_an_offset_to_the_index_of_its_place_and_no_other_to_one() {
    for (class, list) in FRESH_LISTS.iter().enumerate().take(CLASSES + 1).skip(1) {
        let g = size_class::geometry(class);
        let size = if g.is_single() { craton_base::PAGE_SIZE } else { g.object as usize };
        for offset in 0..=u64::from(list.mask) {
            let product = offset.wrapping_mul(list.magic);
            let (index, behind) = (offset / size as u64, offset % size as u64);
            let right = if behind == 0 { product == index * PLACE } else { product > u32::MAX.into() };
            assert!(right, "class {class}, offset {offset}: {product:#x}");
        }
        assert!(u64::from(g.capacity) * PLACE <= u32::MAX.into(), "an entry of the page map holds all indices");
    }
}

/// An object of the test's own.
fn object() -> *mut u8 {
    Box::leak(Box::new([0usize; 8])).as_mut_ptr().cast()
}

fn of_size(size: usize) -> usize {
    size_class::class_of(size)
}

#[test]
fn each_refill_fetches_twice_as_much_up_to_a_batch() {
    for class in 1..=CLASSES {
        let (mut cache, batch) = (fresh(), size_class::batch(class));
        let mut last = cache.want(class);
        assert!(last >= 1 && last <= batch.max(1) && last <= FIRST_FETCH, "class {class}: {last} at first");
        for _ in 0..10 {
            let next = cache.want(class);
            assert_eq!(next, (2 * last).min(batch), "class {class}");
            last = next;
        }
        assert_eq!(last, batch);
    }
}

#[test]
fn a_list_grows_by_a_batch_with_a_refill_that_answers_an_overflow_and_only_then() {
    let (mut cache, class) = (fresh(), of_size(64));
    let (max, batch) = (cache.paces[class].max, size_class::batch(class) as i32);
    cache.want(class);
    assert_eq!(cache.paces[class].max, max, "no overflow");
    cache.overflow(class);
    cache.want(class);
    let list = &cache.lists[class];
    assert_eq!(
        (cache.paces[class].max, list.room, cache.budget),
        (max + batch, room_for(max + batch), BUDGET - batch as usize * 64)
    );
    cache.want(class);
    assert_eq!(cache.paces[class].max, max + batch, "one refill for one overflow");
}

#[test]
fn a_list_grows_no_more_when_the_budget_or_its_bounds_are_reached() {
    let swing = |cache: &mut ThreadCache, class| {
        for _ in 0..2000 {
            cache.overflow(class);
            cache.want(class);
        }
        cache.paces[class].max
    };
    let (mut cache, class) = (fresh(), of_size(1024));
    let (first, batch) = (first_max(class), size_class::batch(class) as i32);
    let max = swing(&mut cache, class);
    assert_eq!((max - first) as usize * 1024 + cache.budget, BUDGET);
    assert!(cache.budget < batch as usize * 1024);
    // With an unlimited budget, its own bounds end the growth.
    for (size, most) in [(1024, (MAX_BYTES / 1024) as i32), (16, MAX_OBJECTS)] {
        let (mut cache, class) = (fresh(), of_size(size));
        cache.budget = 1 << 30;
        let max = swing(&mut cache, class);
        assert!(max <= most && max + size_class::batch(class) as i32 > most, "{max} objects of {size} bytes");
    }
}

#[test]
fn after_a_long_swing_each_overflow_halves_what_a_list_keeps_beyond_the_least() {
    let (mut cache, class) = (fresh(), of_size(64));
    cache.budget = 1 << 20;
    for _ in 0..6 {
        cache.overflow(class);
        cache.want(class);
    }
    let (max, budget) = (cache.paces[class].max, cache.budget);
    (0..LONG_SWING).for_each(|_| _ = cache.overflow(class));
    assert_eq!(cache.paces[class].max, max, "so many overflows may still be a swing");
    let list = &mut cache.lists[class];
    list.room = room_for(0);
    let n = cache.overflow(class);
    let less = (max - LAST_KEPT + 1) / 2;
    assert_eq!(n, size_class::batch(class) + less as u32, "what is too much leaves at once");
    assert_eq!((cache.paces[class].max, cache.lists[class].room), (max - less, room_for(-less)));
    assert_eq!(cache.budget, budget + less as usize * 64, "others may grow by it");
    (0..20).for_each(|_| _ = cache.overflow(class));
    assert_eq!(cache.paces[class].max, LAST_KEPT);
}

#[test]
fn no_more_overflows_than_a_list_holds() {
    let (mut cache, class) = (fresh(), of_size(64));
    assert_eq!(cache.overflow(class), 0);
    cache.lists[class].room -= 3 * ONE;
    assert_eq!(cache.overflow(class), 3);
}

#[test]
fn a_closed_list_keeps_nothing_and_stays_closed() {
    let (mut cache, class) = (fresh(), of_size(64));
    cache.close(class);
    // SAFETY: the object is the test's.
    assert!(cache.is_full(class) && unsafe { !ThreadCache::push_checked(&mut *cache, class, object()) });
    (0..u32::from(LONG_SWING) + 10).for_each(|_| assert_eq!(cache.overflow(class), 0));
    assert_eq!((cache.paces[class].max, cache.lists[class].room), (0, room_for(0)));
}

#[test]
fn a_look_is_due_when_the_heap_has_grown_by_a_part_and_by_no_less_than_some_pages() {
    let mut cache = fresh();
    assert!(cache.is_look_due(Pages(0)), "a new cache has not looked");
    for (in_use, next) in [(0, LOOK_LEAST.0), (16, 16 + LOOK_LEAST.0), (1600, 1600 + 100)] {
        cache.begin_look(Pages(in_use));
        assert!(!cache.is_look_due(Pages(next - 1)) && cache.is_look_due(Pages(next)), "{in_use} pages");
    }
}

#[test]
fn idle_is_what_begins_as_at_the_last_look_and_such_a_list_is_as_new() {
    let w = world(8, BUDGET);
    let class = of_size(64);
    for _ in 0..4 {
        w.give_all(w.take_all(class, 500));
    }
    let cache = w.cache();
    let (held, budget) = (cache.held(class).len() as u32, cache.budget);
    assert!(held > 60 && budget < BUDGET);
    assert_eq!(cache.idle(class), 0, "at the first look nothing is known");
    let object = w.take(class);
    assert_eq!(cache.idle(class), 0, "used since");
    // Two thousand pops have used up room for one or two.
    assert!((0..=2).contains(&(cache.idle(class) - (held - 1 - LAST_KEPT as u32))));
    assert_eq!((cache.paces[class].max, cache.budget), (first_max(class), BUDGET));
    assert_eq!(cache.paces[class].fetch, FRESH_PACES[class].fetch);
    w.give(object).unwrap();
    w.empty();
}

#[test]
fn pops_and_pushes_of_one_object_make_a_list_count_as_full_now_and_then() {
    let w = world(8, BUDGET);
    for (size, before) in [(64, 16), (64, 3), (1000, 1), (4000, 0)] {
        let class = of_size(size);
        let objects = w.take_all(class, before + 1);
        let cache = w.cache();
        let room = cache.paces[class].max - cache.held(class).len() as i32;
        let (mut turns, mut object) = (0, objects[0]);
        loop {
            // SAFETY: the object is out; then it is in the cache, which is ours.
            if !unsafe { ThreadCache::push(w.cache, object) } {
                break;
            }
            turns += 1;
            // SAFETY: the cache is ours.
            object = unsafe { ThreadCache::pop(w.cache, class) };
            assert!(turns <= (room + 1) * ONE / WEAR, "{size} bytes");
        }
        assert!(
            turns > (room - 1) * ONE / WEAR && cache.is_full(class),
            "{turns} turns, room for {room} objects of {size}"
        );
        let held = cache.held(class).len();
        let counted = cache.recount(class).unwrap() as i32;
        assert!((turns - 40..=turns + 40).contains(&counted), "{counted} of {turns}");
        assert!(cache.is_right(class) && cache.held(class).len() == held && !cache.is_full(class));
        assert_eq!(cache.recount(class), None, "none since");
        w.give(object).unwrap();
        objects[1..].iter().for_each(|object| w.give(*object).unwrap());
        w.empty();
    }
}

#[test]
fn what_pops_used_up_hides_no_object_that_went_out_twice_or_was_lost() {
    for miscount in [0, 1, -1, 5, -5, 31, -31] {
        for pops in [0, 1, 7, 1040, 1041, 65_535, 65_536, 65_537, 5_000_000] {
            // As many pops of an object that comes back, and a handler's work.
            let missing = pops * WEAR - miscount * ONE;
            assert_eq!(explain(missing), (pops, miscount), "{pops} pops, miscount {miscount}");
        }
    }
    // Beyond half of what further pops could use up, only objects handed out twice are certain.
    assert_eq!(explain(40 * ONE), (ONE, 23));
    assert_eq!(explain(-40 * ONE), (0, 40));
}

#[test]
fn a_recount_leaves_what_a_signal_handler_did_to_the_empty_list() {
    let w = world(8, BUDGET);
    let class = of_size(64);
    let objects = w.take_all(class, 16);
    let cache = w.cache();
    let before = cache.lists[class].head;
    w.give(objects[0]).unwrap();
    cache.lists[class].head = before;
    let object = objects[1];
    // SAFETY: the object is out; then it is in the cache, which is ours.
    while unsafe { ThreadCache::push(w.cache, object) } {
        assert_eq!(w.take(class), object);
    }
    assert!(cache.recount(class).is_some() && !cache.is_full(class));
    let rest = cache.held(class).len();
    w.take_all(class, rest);
    assert_eq!(cache.miscount(class).1, -1);
}

#[test]
fn a_list_with_many_objects_and_little_room_is_nearly_full() {
    let (mut cache, class) = (fresh(), of_size(64));
    assert!(!cache.is_nearly_full(class));
    cache.lists[class].room = room_for(4);
    assert!(cache.is_nearly_full(class), "28 of 32");
    cache.lists[class].room = room_for(10);
    assert!(!cache.is_nearly_full(class), "22 of 32");
}

#[test]
fn a_list_that_is_full_without_pops_is_not_walked() {
    let (mut cache, class) = (fresh(), of_size(64));
    // No object at all: to walk the list would end the test.
    cache.lists[class].head = core::ptr::without_provenance_mut(16);
    cache.lists[class].room = room_for(0);
    assert!(cache.is_full(class) && cache.recount(class).is_none());
}

#[test]
fn a_signal_handler_between_a_pops_two_steps_shows_when_the_list_runs_empty() {
    let w = world(8, BUDGET);
    let class = of_size(64);
    let cache = w.cache();
    w.take(class);
    // The interrupted pop has read the head; the handler pops it; then the first stores its old
    // value.
    let head = cache.lists[class].head;
    // SAFETY: the object is the list's.
    let rest = unsafe { head.cast::<*mut u8>().read() };
    assert_eq!(w.take(class), head);
    cache.lists[class].head = head;
    // SAFETY: the cache is ours.
    assert!(unsafe { ThreadCache::pop(w.cache, class) }.is_null(), "it lost its mark when it went out");
    assert!(!cache.is_empty(class), "so that the refill says what has happened");
    // The same where the interrupted pop has read the link, too.
    cache.lists[class].head = rest;
    cache.lists[class].room += ONE;
    let rest = cache.held(class).len();
    w.take_all(class, rest);
    assert_eq!(cache.miscount(class).1, 1, "one was given out twice");
    assert_eq!(cache.miscount(class).1, 0, "and the count is right again");
    assert!(cache.is_right(class));
}

#[test]
fn a_signal_handler_between_a_pushs_two_steps_loses_an_object() {
    let w = world(8, BUDGET);
    let class = of_size(64);
    let cache = w.cache();
    let objects = w.take_all(class, 16);
    let before = cache.lists[class].head;
    w.give(objects[0]).unwrap();
    cache.lists[class].head = before;
    w.give(objects[1]).unwrap();
    assert_eq!(w.take(class), objects[1]);
    assert_eq!(cache.miscount(class).1, -1);
    assert!(cache.is_right(class));
}

#[test]
fn what_is_freed_while_a_refill_fetches_stays_in_the_list() {
    let (mut cache, class) = (fresh(), of_size(64));
    let (early, mut chain) = (object(), Chain::EMPTY);
    // SAFETY: the objects are the test's.
    unsafe {
        assert!(ThreadCache::push_checked(&mut *cache, class, early));
        (0..3).for_each(|_| chain.push(object()));
    }
    cache.fill(class, chain);
    let held = cache.held(class);
    assert!(held.len() == 4 && held[0] == early && cache.is_right(class));
    cache.fill(class, Chain::EMPTY);
    assert_eq!(cache.held(class), held);
}

#[test]
fn part_of_a_list_can_be_taken_off_its_front() {
    let (mut cache, class) = (fresh(), of_size(64));
    let objects: Vec<_> = (0..10).map(|_| object()).collect();
    // SAFETY: the objects are the test's.
    objects.iter().for_each(|o| assert!(unsafe { ThreadCache::push_checked(&mut *cache, class, *o) }));
    let mut chain = cache.drain::<crate::hooks::NoHooks>(class, 4);
    let first: Vec<_> = core::iter::from_fn(|| chain.pop()).collect();
    assert!(first.iter().eq(objects.iter().rev().take(4)));
    assert!(cache.held(class).len() == 6 && cache.is_right(class));
    cache.shorten(class, 2, |first| {
        assert_eq!(first, objects[5]);
        objects[3]
    });
    assert!(cache.held(class).len() == 4 && cache.is_right(class));
    assert_eq!(cache.drain::<crate::hooks::NoHooks>(class, 0).len(), 0);
    assert_eq!(cache.bytes(), 4 * 64);
}

#[test]
fn a_cache_leaves_its_fast_path_while_a_request_to_flush_is_not_answered() {
    let w = world(8, BUDGET);
    let (cache, class) = (w.cache(), of_size(64));
    let objects = w.take_all(class, 2);
    w.heap.flush_requests.fetch_add(1, Relaxed);
    cache.look_again(w.heap.view(), &w.heap.flush_requests);
    // SAFETY: the object is out, and stays so.
    assert!(unsafe { !ThreadCache::push(w.cache, objects[0]) });
    assert_eq!(w.give(objects[0]), Ok(()), "the slow path takes it all the same");
    cache.generation += 1;
    cache.look_again(w.heap.view(), &w.heap.flush_requests);
    // SAFETY: the object is out, and given up.
    assert!(unsafe { ThreadCache::push(w.cache, objects[1]) });
    let object = w.take(class);
    // SAFETY: the cache is begun.
    unsafe { ThreadCache::fail(w.cache) };
    // SAFETY: as above.
    assert!(unsafe { !ThreadCache::push(w.cache, object) && ThreadCache::recognise(w.cache, object).is_none() });
    w.give(object).unwrap();
    // SAFETY: as above.
    assert!(unsafe { ThreadCache::push(w.cache, w.take(class)) }, "the slow path has looked");
}

#[test]
fn a_free_with_a_size_takes_only_objects_of_that_sizes_class() {
    let w = world(8, BUDGET);
    for size in [16, 64, 1000, MAX_QUICK, MAX_QUICK + 1, 4 << 10] {
        let class = of_size(size);
        let object = w.take(class);
        let wrong = size_class::size_of_class(class) + 1;
        // SAFETY: the object is out, and given up by the second call.
        unsafe {
            assert!(!ThreadCache::push_sized(w.cache, object, wrong), "{size}");
            assert!(ThreadCache::push_sized(w.cache, object, size), "{size}");
            assert!(!ThreadCache::push_sized(w.cache, object, size), "{size}: it is free");
        }
    }
}

#[test]
fn a_trusted_free_needs_only_room() {
    let w = world(8, BUDGET);
    let class = of_size(64);
    let objects = w.take_all(class, first_max(class) as usize + 1);
    // Objects fetched and not taken fill a part of the list.
    w.take_all(class, w.cache().held(class).len());
    for (n, object) in objects.iter().enumerate() {
        // SAFETY: the object is out, of this size, and given up if it is taken.
        assert_eq!(unsafe { ThreadCache::push_trusted(w.cache, *object, 64) }, n < first_max(class) as usize);
    }
    // SAFETY: as above.
    assert_eq!(unsafe { ThreadCache::pop_quick(w.cache, 64) }, objects[objects.len() - 2]);
}

#[test]
fn caches_that_nobody_uses_hold_nothing_and_take_nothing() {
    static NOBODY: NoCaches = NoCaches::new();
    let w = world(8, BUDGET);
    let object = w.take(of_size(64));
    for n in 0..NO_CACHES {
        let cache = NOBODY.get(n);
        // SAFETY: none of these changes the cache, which no thread uses.
        unsafe {
            assert!((1..=CLASSES).all(|class| ThreadCache::pop(cache, class).is_null()));
            assert!(ThreadCache::pop_quick(cache, 64).is_null() && !ThreadCache::push(cache, object));
            assert!(!ThreadCache::push_sized(cache, object, 64) && !ThreadCache::push_trusted(cache, object, 64));
            assert!(ThreadCache::recognise(cache, object).is_none());
        }
    }
    w.give(object).unwrap();
}
