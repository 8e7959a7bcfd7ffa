//! Slabs that change their class, under caches.

use super::world::{World, world};
use crate::size_class::{self, MORPHED};
use crate::{Found, Misuse};
use craton_base::Pages;
use craton_pages::PageHeapExt;
use craton_sim::Rng;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

/// Address, class, and the byte that fills it.
#[derive(Clone, Copy)]
struct Object(usize, usize, u8);

fn take(w: &World, class: usize, fill: u8) -> Object {
    let object = w.take(class);
    assert!(!object.is_null());
    // SAFETY: the object has this size, and is the test's.
    unsafe { object.write_bytes(fill, size_class::size_of_class(class)) };
    Object(object as usize, class, fill)
}

/// Checks each byte.
fn give(w: &World, Object(at, class, fill): Object) {
    let at = at as *mut u8;
    // SAFETY: the object is still ours.
    assert!((0..size_class::size_of_class(class)).all(|i| unsafe { *at.add(i) } == fill));
    w.give(at).unwrap();
}

fn mark(w: &World, at: usize) -> u8 {
    w.heap.mark(w.heap.page_of(at).unwrap())
}

fn morphed(w: &World, class: usize) -> (u32, u32) {
    let stats = w.heap.class_stats(class);
    (stats.morphed, stats.settled)
}

/// 8 MiB of a class; one object in `left` stays.
fn just_thinned(from: usize, left: usize) -> (World, Vec<Object>) {
    let w = world(8, 0);
    let n = (8 << 20) / size_class::size_of_class(from);
    let all: Vec<Object> = (0..n).map(|_| take(&w, from, 1)).collect();
    let mut kept = Vec::new();
    for (i, object) in all.into_iter().enumerate() {
        if i % left == 0 { kept.push(object) } else { give(&w, object) }
    }
    (w, kept)
}

/// Another class took slabs since [`just_thinned`].
fn thinned(from: usize, left: usize) -> (World, Vec<Object>) {
    let (w, kept) = just_thinned(from, left);
    let others: Vec<Object> = (0..(1 << 20) / 208).map(|_| take(&w, size_class::class_of(208), 4)).collect();
    others.into_iter().for_each(|o| give(&w, o));
    (w, kept)
}

fn check_empty(w: &World) {
    w.empty();
    assert_eq!(w.heap.morphs.lock().slabs(), 0);
    assert_eq!((w.heap.bytes_out(), w.heap.pages.lock().in_use()), (0, Pages(0)));
}

#[test]
fn a_change_of_sizes_finds_its_memory_in_the_slabs_of_the_old_size() {
    let (from, to) = (size_class::class_of(112), size_class::class_of(144));
    let (w, mut kept) = thinned(from, 10);
    let before = w.heap.pages.lock().in_use();
    let news: Vec<Object> = (0..(5 << 20) / 144).map(|_| take(&w, to, 2)).collect();
    let more = w.heap.pages.lock().in_use().0 - before.0;
    assert!(more < 50, "{more} pages more for 5 MiB of new objects");
    assert!(morphed(&w, to).0 > 600);
    assert!(kept.iter().any(|o| mark(&w, o.0) == MORPHED));
    assert!(w.heap.bytes_out() >= (kept.len() * 112 + news.len() * 144) as u64);

    // Without old and off-grid objects each slab is an ordinary one.
    kept.drain(..).for_each(|o| give(&w, o));
    let (news, off_grid): (Vec<_>, Vec<_>) = news.into_iter().partition(|o| (o.0 & 8191) % 144 == 0);
    assert!(off_grid.len() > news.len());
    off_grid.into_iter().for_each(|o| give(&w, o));
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    let (taken, settled) = morphed(&w, to);
    assert!(settled > taken / 2, "{settled} of {taken} slabs settled, and the others were empty");
    assert!(news.iter().all(|o| usize::from(mark(&w, o.0)) == to));
    assert_eq!(w.heap.morphs.lock().slabs(), 0);
    news.into_iter().for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn slabs_of_any_class_become_slabs_of_any_other() {
    // A's size; one in how many is left; B's size.
    for (a, left, b) in [
        (32, 10, 304),
        (112, 20, 2512),
        (512, 10, 6544),
        (1632, 10, 13_104),
        (304, 9, 48),
        (2512, 6, 32),
        (6544, 4, 3264),
        (13_104, 4, 112),
        (14_336, 3, 512),
        (28_672, 2, 144),
        (1632, 20, 28_672),
        (1024, 30, 36_864),
    ] {
        let (from, to) = (size_class::class_of(a), size_class::class_of(b));
        let (w, mut rng) = (world(8, 0), Rng::new(b as u64));
        let all: Vec<Object> = (0..(8 << 20) / size_class::size_of_class(from)).map(|_| take(&w, from, 1)).collect();
        let (mut kept, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|_| rng.below(left) == 0);
        gone.into_iter().for_each(|o| give(&w, o));
        let others: Vec<Object> = (0..(1 << 20) / 208).map(|_| take(&w, size_class::class_of(208), 4)).collect();
        others.into_iter().for_each(|o| give(&w, o));
        let mut news: Vec<Object> = (0..(4 << 20) / b).map(|_| take(&w, to, 2)).collect();
        assert!(morphed(&w, to).0 > 0, "{a} to {b}");
        while !kept.is_empty() || !news.is_empty() {
            let all = if rng.below(2) == 0 && !kept.is_empty() || news.is_empty() { &mut kept } else { &mut news };
            let object = all.swap_remove(rng.below(all.len() as u64) as usize);
            give(&w, object);
            if rng.below(1000) == 0 {
                // SAFETY: no other thread is in the heap.
                unsafe { w.heap.morphs.lock().check(w.heap.layout().base as *mut u8, &w.heap.layout().records) }
                    .unwrap();
                w.heap.pages.lock().check().unwrap();
            }
        }
        check_empty(&w);
    }
}

#[test]
fn free_pages_between_slabs_become_part_of_a_longer_one() {
    let (from, to) = (size_class::class_of(1632), size_class::class_of(6544));
    let w = world(8, 0);
    let all: Vec<Object> = (0..(8 << 20) / 1632).map(|_| take(&w, from, 1)).collect();
    // Of four pages one keeps an object.
    let (kept, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|o| o.0 >> 13 & 3 == 1 && o.0 % 8192 < 1632);
    gone.into_iter().for_each(|o| give(&w, o));
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    w.heap.drop_complete();
    w.heap.lock_pages().drain();
    let others: Vec<Object> = (0..(1 << 20) / 208).map(|_| take(&w, size_class::class_of(208), 4)).collect();
    let before = w.heap.pages.lock().in_use();
    let news: Vec<Object> = (0..500).map(|_| take(&w, to, 2)).collect();
    assert!(morphed(&w, to).0 > 50);
    assert!(news.iter().filter(|o| mark(&w, o.0) == MORPHED).count() > 200);
    assert!(w.heap.pages.lock().in_use() > before, "the free pages are in use now");
    kept.into_iter().chain(others).chain(news).for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn a_free_of_a_new_object_takes_no_lock() {
    let (w, rest, old, new) = mixed();
    let locked = w.heap.morphs.lock();
    let pages = w.heap.view().pages;
    let found = w.heap.recognise_morphed(new.0 as *mut u8, pages);
    assert_eq!(found.map(|(class, _)| class), Some(new.1));
    let none = [old.0, new.0 + 8, new.0 + 16, old.0 + 16, 0];
    assert!(none.iter().all(|at| w.heap.recognise_morphed(*at as *mut u8, pages).is_none()));
    assert_eq!(w.heap.recognise_morphed(new.0 as *mut u8, 0), None, "it must look again");
    drop(locked);
    give(&w, new);
    assert_eq!(w.heap.recognise_morphed(new.0 as *mut u8, pages), None, "it is free");
    give(&w, old);
    rest.into_iter().for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn a_class_that_has_just_taken_slabs_gives_none_away() {
    let (from, to) = (size_class::class_of(112), size_class::class_of(144));
    let (w, kept) = just_thinned(from, 10);
    let soon: Vec<Object> = (0..(64 << 10) / 144).map(|_| take(&w, to, 2)).collect();
    assert!(w.heap.class_stats(to).slabs > 5);
    assert_eq!(morphed(&w, to).0, 0);
    let later: Vec<Object> = (0..(1 << 20) / 144).map(|_| take(&w, to, 2)).collect();
    assert!(morphed(&w, to).0 > 0);
    kept.into_iter().chain(soon).chain(later).for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn a_class_that_has_had_as_many_slabs_a_moment_ago_takes_none_of_others() {
    let (from, to) = (size_class::class_of(112), size_class::class_of(144));
    let (w, kept) = just_thinned(from, 10);
    // The class has its most slabs, and frees them.
    let most: Vec<Object> = (0..(2 << 20) / 144).map(|_| take(&w, to, 2)).collect();
    most.into_iter().for_each(|o| give(&w, o));
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    w.heap.drop_complete();
    let others: Vec<Object> = (0..(1 << 20) / 208).map(|_| take(&w, size_class::class_of(208), 4)).collect();
    let before = morphed(&w, to).0;
    let again: Vec<Object> = (0..(1 << 20) / 144).map(|_| take(&w, to, 2)).collect();
    assert_eq!(morphed(&w, to).0, before);
    let beyond: Vec<Object> = (0..(2 << 20) / 144).map(|_| take(&w, to, 2)).collect();
    assert!(morphed(&w, to).0 > before, "beyond its most it does");
    kept.into_iter().chain(others).chain(again).chain(beyond).for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn small_heaps_are_left_alone() {
    let (from, to) = (size_class::class_of(112), size_class::class_of(144));
    let w = world(8, 0);
    let all: Vec<Object> = (0..(2 << 20) / 112).map(|_| take(&w, from, 1)).collect();
    let (kept, gone): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(i, _)| i % 10 == 0);
    gone.into_iter().for_each(|(_, o)| give(&w, o));
    let news: Vec<Object> = (0..(1 << 20) / 144).map(|_| take(&w, to, 2)).collect();
    assert_eq!(morphed(&w, to).0, 0);
    kept.into_iter().map(|(_, o)| o).chain(news).for_each(|o| give(&w, o));
    check_empty(&w);
}

/// A slab of two classes, with an old and a new object.
fn mixed() -> (World, Vec<Object>, Object, Object) {
    let (from, to) = (size_class::class_of(112), size_class::class_of(144));
    let (w, kept) = thinned(from, 10);
    let news: Vec<Object> = (0..3000).map(|_| take(&w, to, 2)).collect();
    let on = |o: &&Object| mark(&w, o.0) == MORPHED;
    let new = *news.iter().rfind(on).unwrap();
    // No object of the other class can begin there.
    let old = *kept.iter().filter(on).find(|o| o.0 % 8192 % 144 != 0 && o.0 % 8192 > 0).unwrap();
    let rest = kept.into_iter().filter(|o| o.0 != old.0).chain(news.into_iter().filter(|o| o.0 != new.0)).collect();
    (w, rest, old, new)
}

#[test]
fn objects_of_both_classes_are_known_and_can_be_resized() {
    let (w, rest, old, new) = mixed();
    for Object(at, class, _) in [old, new] {
        let (at, found) = (at as *mut u8, w.heap.find(at as *mut u8));
        assert_eq!(found.usable(), Ok(size_class::size_of_class(class)));
        assert_eq!(w.heap.resize(at, found, size_class::size_of_class(class) - 8), Some(at));
        assert_eq!(w.heap.resize(at, found, 1000), None, "it must be copied");
    }
    assert_eq!(w.heap.find(old.0 as *mut u8), Found::Old { class: old.1 });
    rest.into_iter().chain([old, new]).for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn misuse_is_seen_on_slabs_of_two_classes() {
    let (w, rest, old, new) = mixed();
    for Object(at, class, _) in [old, new] {
        let size = size_class::size_of_class(class);
        for offset in [1, 8, 16, size - 1] {
            assert_eq!(w.give((at + offset) as *mut u8), Err(Misuse::Inside { offset, size }));
        }
        give(&w, Object(at, class, if class == old.1 { 1 } else { 2 }));
        assert_eq!(w.give(at as *mut u8), Err(Misuse::Freed { size }));
    }
    // Never an object of either class.
    let tail = (new.0 & !8191) + 56 * 144 + 112;
    assert_eq!(w.give(tail as *mut u8), Err(Misuse::Unallocated));
    rest.into_iter().for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn old_objects_that_lie_in_a_cache_find_back_to_their_slab() {
    let (from, to) = (size_class::class_of(112), size_class::class_of(144));
    let (w, mut kept) = thinned(from, 10);
    let other = w.at_home(0);
    // Their slabs are still of their class.
    let late: Vec<Object> = kept.split_off(kept.len() - 10);
    late.iter().for_each(|o| give(&other, *o));
    let news: Vec<Object> = (0..(4 << 20) / 144).map(|_| take(&w, to, 2)).collect();
    assert!(late.iter().any(|o| mark(&w, o.0) == MORPHED));
    for o in late.iter().filter(|o| mark(&w, o.0) == MORPHED) {
        assert_eq!(w.give(o.0 as *mut u8), Err(Misuse::Freed { size: 112 }));
    }
    let again = take(&other, from, 3);
    assert!(late.iter().any(|o| o.0 == again.0));
    give(&other, again);
    // SAFETY: the cache is ours.
    unsafe { other.heap.empty_cache(other.cache) };
    kept.into_iter().chain(news).for_each(|o| give(&w, o));
    check_empty(&w);
}

#[test]
fn threads_that_change_their_sizes_and_free_each_others_objects_find_every_byte_again() {
    let w = world(64, 256 << 10);
    w.heap.use_shards(3);
    let shared: Arc<Mutex<Vec<Object>>> = Arc::default();
    let threads: Vec<_> = (0..3u64)
        .map(|number| {
            let (shared, w) = (shared.clone(), SendWorld(w.at_home(number as usize)));
            std::thread::spawn(move || {
                let SendWorld(w) = { w };
                run(&w, number, &shared);
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let classes = 1..=size_class::class_of(3000);
    assert!(classes.map(|c| morphed(&w, c).0).sum::<u32>() > 10);
    shared.lock().unwrap().drain(..).for_each(|o| give(&w, o));
    check_empty(&w);
}

struct SendWorld(World);

// SAFETY: all threads may use the heap; the cache goes to one.
unsafe impl Send for SendWorld {}

fn run(w: &World, number: u64, shared: &Mutex<Vec<Object>>) {
    let mut rng = Rng::new(number + 1);
    let mut own: Vec<Object> = Vec::new();
    for phase in 0..6u64 {
        let mut bytes = 0;
        while bytes < 3 << 20 {
            let least = [100, 290, 1600, 40, 2400, 520][((phase + 2 * number) % 6) as usize];
            let size = least + rng.below(least as u64 / 4) as usize;
            own.push(take(w, size_class::class_of(size), rng.below(256) as u8));
            bytes += size;
        }
        while own.len() > 3000 {
            let mut object = own.swap_remove(rng.below(own.len() as u64) as usize);
            if rng.below(4) == 0 {
                let mut shared = shared.lock().unwrap();
                if shared.len() < 1000 {
                    shared.push(object);
                    continue;
                }
                let at = rng.below(shared.len() as u64) as usize;
                object = core::mem::replace(&mut shared[at], object);
            }
            give(w, object);
        }
    }
    shared.lock().unwrap().append(&mut own);
    // SAFETY: the cache is this thread's.
    unsafe { w.heap.empty_cache(w.cache) };
}
