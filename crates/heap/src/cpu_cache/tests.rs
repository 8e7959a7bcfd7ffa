//! Nothing is lost, bounds hold, and idle caches are flushed.

use super::*;
use crate::tests::world::{TestHeap, World, world};
use craton_base::Pages;
use craton_pages::PageHeapExt;
use craton_sim::Rng;
use std::boxed::Box;
use std::eprintln;
use std::sync::Mutex;
use std::vec::Vec;

/// `None` without restartable sequences.
fn caches(hugepages: u32) -> Option<(World, &'static ProcessorCaches, &'static Rseq)> {
    let caches: &ProcessorCaches = Box::leak(Box::new(ProcessorCaches::EMPTY));
    // SAFETY: called once, before any use.
    unsafe { caches.set_up::<crate::hooks::NoHooks>() };
    let Some(rseq) = caches.rseq() else {
        eprintln!("no restartable sequences here: not tested");
        return None;
    };
    Some((world(hugepages, 0), caches, rseq))
}

fn take(heap: &TestHeap, caches: &ProcessorCaches, rseq: &Rseq, class: usize) -> *mut u8 {
    let object = caches.pop(rseq, class);
    heap.wipe_mark(class, if object.is_null() { caches.refill(heap, rseq, class) } else { object })
}

fn give(heap: &TestHeap, caches: &ProcessorCaches, rseq: &Rseq, object: *mut u8) {
    let Some(class) = heap.recognise(object) else {
        // The slab has two classes.
        // SAFETY: the object is given up.
        unsafe { heap.take_back(None, object) }.expect("an object that is out");
        return;
    };
    // SAFETY: the object is of this class, and given up.
    unsafe {
        heap.set_mark(class, object);
        if !caches.push(rseq, class, object) {
            caches.overflow(heap, rseq, class, object);
        }
    }
}

/// No thread may use the caches.
fn check(caches: &ProcessorCaches) {
    for entry in &caches.table {
        let at = entry.load(Relaxed);
        if at.is_null() {
            continue;
        }
        // SAFETY: areas live for ever.
        let area = unsafe { &*at.cast::<Area>() };
        let mut grown = 0;
        for class in 1..=CLASSES {
            let (count, capacity) = (area.counts[class].count.load(Relaxed), area.counts[class].capacity.load(Relaxed));
            assert!(count <= room(class), "T3: class {class} has {count}");
            assert!((first_capacity(class)..=room(class)).contains(&capacity), "T4: class {class} may have {capacity}");
            grown += (capacity - first_capacity(class)) as i32 * size_class::size_of_class(class) as i32;
        }
        assert!(grown <= AREA_BYTES && grown + area.left.load(Relaxed) == AREA_BYTES, "T4");
    }
}

#[test]
fn t3_t4_threads_on_all_processors_lose_nothing_and_keep_the_bounds() {
    const THREADS: usize = 8;
    let Some((w, caches, rseq)) = caches(64) else { return };
    w.heap.use_shards(4);
    let rounds = if std::env::var_os("CRATON_FULL").is_some() { 200_000 } else { 1_500 };
    let letters: Vec<Mutex<Vec<usize>>> = (0..THREADS).map(|_| Mutex::new(Vec::new())).collect();
    std::thread::scope(|scope| {
        for me in 0..THREADS {
            let (letters, heap) = (&letters, w.heap);
            scope.spawn(move || {
                let mut rng = Rng::new(me as u64 + 7);
                for round in 0..rounds {
                    for _ in 0..20 {
                        let class = 1 + rng.below(24) as usize;
                        let object = take(heap, caches, rseq, class);
                        assert!(!object.is_null());
                        // SAFETY: the object is ours, and has 16 bytes.
                        unsafe { object.cast::<[usize; 2]>().write([object as usize, me]) };
                        letters[rng.below(THREADS as u64) as usize].lock().unwrap().push(object as usize);
                    }
                    if round % 4 == me % 4 {
                        // An ended thread's objects would fill the heap.
                        let read: Vec<usize> =
                            letters[rng.below(THREADS as u64) as usize].lock().unwrap().drain(..).collect();
                        for object in read {
                            // SAFETY: the object is ours now.
                            let words = unsafe { (object as *const [usize; 2]).read() };
                            assert!(words[0] == object && words[1] < THREADS, "an object in two hands");
                            give(heap, caches, rseq, object as *mut u8);
                        }
                    }
                    if round % 500 == 499 {
                        caches.look(heap);
                    }
                }
            });
        }
    });
    check(caches);
    letters.into_iter().flat_map(|l| l.into_inner().unwrap()).for_each(|o| give(w.heap, caches, rseq, o as *mut u8));
    check(caches);
    assert!(caches.empty(w.heap));
    assert_eq!(caches.bytes(), 0);
    w.empty();
    assert_eq!((w.heap.bytes_out(), w.heap.pages.lock().in_use()), (0, Pages(0)));
}

#[test]
fn an_idle_processors_cache_is_emptied_and_serves_again() {
    let Some((w, caches, rseq)) = caches(8) else { return };
    let class = size_class::class_of(64);
    let objects: Vec<_> = (0..100).map(|_| take(w.heap, caches, rseq, class)).collect();
    objects.into_iter().for_each(|o| give(w.heap, caches, rseq, o));
    assert!(caches.bytes() > 0 && caches.areas() > 0 && caches.in_use());
    // The first round sees changes.
    (0..3).for_each(|_| caches.look(w.heap));
    assert_eq!((caches.bytes(), caches.in_use()), (0, false));
    check(caches);
    let object = take(w.heap, caches, rseq, class);
    assert!(caches.bytes() > 0 && caches.in_use());
    give(w.heap, caches, rseq, object);
}

#[test]
fn while_an_area_is_away_its_processor_does_without() {
    let Some((w, caches, rseq)) = caches(8) else { return };
    let class = size_class::class_of(64);
    give(w.heap, caches, rseq, take(w.heap, caches, rseq, class));
    let areas: Vec<_> = caches.table.iter().map(|entry| entry.load(Relaxed)).collect();
    caches.table.iter().for_each(|entry| entry.store(away(), Relaxed));
    let objects: Vec<_> = (0..10).map(|_| take(w.heap, caches, rseq, class)).collect();
    assert!(objects.iter().all(|o| !o.is_null()));
    objects.into_iter().for_each(|o| give(w.heap, caches, rseq, o));
    caches.forked();
    assert_eq!(caches.areas(), 0, "in a forked child nobody puts them back");
    caches.table.iter().zip(areas).for_each(|(entry, area)| entry.store(area, Relaxed));
    caches.empty(w.heap);
    w.empty();
    assert_eq!(w.heap.bytes_out(), 0);
}

#[test]
fn without_memory_there_is_null_and_what_comes_back_is_kept() {
    let Some((w, caches, rseq)) = caches(4) else { return };
    let class = size_class::class_of(1 << 10);
    let mut out = Vec::new();
    loop {
        let object = take(w.heap, caches, rseq, class);
        if object.is_null() {
            break;
        }
        out.push(object);
    }
    assert!(out.len() > 1000);
    out.drain(..).for_each(|o| give(w.heap, caches, rseq, o));
    assert!(!take(w.heap, caches, rseq, class).is_null());
    check(caches);
}

fn area() -> Box<Area> {
    // SAFETY: zeros are an empty area.
    let area = unsafe { Box::<Area>::new_zeroed().assume_init() };
    area.begin();
    area
}

fn capacity(area: &Area, class: usize) -> u32 {
    area.counts[class].capacity.load(Relaxed)
}

fn is_within(area: &Area) -> bool {
    let grown = |class| (capacity(area, class) - first_capacity(class)) as usize * size_class::size_of_class(class);
    (1..=CLASSES).map(grown).sum::<usize>() as i32 + area.left.load(Relaxed) == AREA_BYTES
}

#[test]
fn places_of_arrays_lie_one_behind_the_other_in_the_area() {
    for class in 1..CLASSES {
        let (this, next) = (ProcessorCaches::place(class), ProcessorCaches::place(class + 1));
        assert_eq!(next.slots - this.slots, room(class) * 8);
        assert_eq!(next.counts - this.counts, 8);
    }
    let last = ProcessorCaches::place(CLASSES);
    assert!((last.slots + room(CLASSES) * 8) as usize <= size_of::<Area>());
    for class in 1..=CLASSES {
        let (first, size) = (first_capacity(class), size_class::size_of_class(class));
        assert!(first <= FIRST_OBJECTS && first as usize * size <= FIRST_BYTES, "{first} of {size} bytes");
        assert!(first > 0 || size > FIRST_BYTES, "none of {size} bytes");
    }
}

#[test]
fn t4_an_array_doubles_with_each_miss_up_to_two_batches() {
    for class in 1..=CLASSES {
        let area = area();
        let mut expected = first_capacity(class);
        for _ in 0..12 {
            expected = (2 * expected).max(1).min(room(class).max(expected));
            assert_eq!(area.missed(class), expected, "class {class}");
            assert!(capacity(&area, class) == expected && is_within(&area));
        }
    }
}

#[test]
fn t4_arrays_share_the_bytes_of_an_area() {
    let area = area();
    (0..12).for_each(|_| (1..=CLASSES).for_each(|class| _ = area.missed(class)));
    assert!((1..=CLASSES).any(|class| capacity(&area, class) < room(class)), "there are not bytes for all");
    assert!(is_within(&area) && area.left.load(Relaxed) >= 0);
}

#[test]
fn an_array_halves_only_in_a_long_freeing_and_not_below_what_it_had_at_first() {
    let (area, class) = (area(), size_class::class_of(64));
    (0..3).for_each(|_| _ = area.missed(class));
    let full = capacity(&area, class);
    assert!((0..LONG).all(|_| area.overflowed(class) == full));
    assert_eq!(area.overflowed(class), full / 2);
    (0..10).for_each(|_| _ = area.overflowed(class));
    assert_eq!(capacity(&area, class), first_capacity(class));
    assert!(is_within(&area));
}

#[test]
fn a_look_halves_arrays_that_were_neither_empty_nor_full_and_says_whether_anything_changed() {
    let (area, idle, used) = (area(), size_class::class_of(64), size_class::class_of(256));
    (0..3).for_each(|_| _ = (area.missed(idle), area.missed(used)));
    let full = (capacity(&area, idle), capacity(&area, used));
    assert!(area.shrink(), "both missed");
    assert_eq!((capacity(&area, idle), capacity(&area, used)), full);
    let grown = area.missed(used);
    assert!(area.shrink());
    assert_eq!((capacity(&area, idle), capacity(&area, used)), (full.0 / 2, grown));
    assert!(!area.shrink(), "nothing has changed since");
    area.counts[used].count.store(3, Relaxed);
    assert!(area.shrink() && !area.shrink());
    assert!(is_within(&area));
}

#[test]
fn the_hooks_hear_of_the_mode_and_of_areas_and_bound_a_refill() {
    use crate::hooks::Event;
    use crate::tests::recorder::{Recorder, events, set_bound, watched};
    let (w, caches) = (watched(8), Box::new(ProcessorCaches::EMPTY));
    // SAFETY: called once, before any use.
    unsafe { caches.set_up::<Recorder>() };
    let mode = caches.rseq().map_or(0, |rseq| 1 + u64::from(rseq.is_compact()));
    assert_eq!(events(), [Event::CpuCacheMode(mode)]);
    let Some(rseq) = caches.rseq() else { return };
    let class = size_class::class_of(64);
    set_bound(2);
    for _ in 0..6 {
        let before = caches.bytes();
        assert!(!caches.refill(w.heap, rseq, class).is_null());
        assert!(caches.bytes() <= before + 64, "one of two went out");
    }
    assert_eq!(events().first(), Some(&Event::CpuCaches(1)));
    assert!(caches.empty(w.heap));
}
