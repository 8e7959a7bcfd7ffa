use super::*;
use crate::world::asked;

const SECOND: u64 = 1_000_000_000;

/// Ticks each second; returns whether memory was freed.
fn pass(w: &World, seconds: u64, may_call: bool) -> bool {
    (0..seconds).fold(false, |freed, _| {
        w.clock.advance(SECOND);
        freed | w.cached().tick(may_call)
    })
}

fn used_up(w: &World, cache: usize, n: usize) {
    let out: Vec<_> = (0..n).map(|_| w.object(cache).unwrap()).collect();
    out.into_iter().for_each(|o| w.put(cache, o).unwrap());
}

#[test]
fn free_slabs_go_after_two_intervals_without_use() {
    let w = world(16);
    let cache = w.cache(&PLAIN);
    used_up(&w, cache, 5000);
    let held = w.caches.stats(cache).unwrap().memory_bytes;
    assert!(held >= 500_000);
    assert!(!pass(&w, 14, false), "within the working set's interval");
    assert_eq!(w.caches.stats(cache).unwrap().memory_bytes, held);
    assert!(pass(&w, 40, false));
    assert_eq!(w.caches.stats(cache).unwrap().memory_bytes, 0);
    w.end_all(cache, Vec::new());
}

#[test]
fn a_cache_says_how_long_its_objects_stay() {
    let w = world(16);
    let (short, never) =
        (w.cache(&Options { working_set_ms: 2000, ..PLAIN }), w.cache(&Options { working_set_ms: NEVER, ..PLAIN }));
    used_up(&w, short, 2000);
    used_up(&w, never, 2000);
    assert!(pass(&w, 8, false));
    assert_eq!(w.caches.stats(short).unwrap().memory_bytes, 0);
    assert!(!pass(&w, 1000, true));
    assert!(w.caches.stats(never).unwrap().memory_bytes > 200_000);
    assert!(w.cached().reap(never).unwrap() > 200_000, "unless the program asks for it");
}

#[test]
fn a_destructor_runs_in_a_call_of_the_program_only() {
    let (w, there) = (world(16), AtomicUsize::new(0));
    let cache = w.cache(&counting(&there));
    used_up(&w, cache, 3000);
    assert!(!pass(&w, 100, false), "not in the background thread");
    assert_eq!(there.load(Relaxed), 3000);
    w.cached().run_deferred(cache);
    assert_eq!((there.load(Relaxed), w.caches.stats(cache).unwrap().memory_bytes), (0, 0));
    used_up(&w, cache, 3000);
    assert!(pass(&w, 100, true), "where they may be called, at once");
    assert_eq!(there.load(Relaxed), 0);
    w.end_all(cache, Vec::new());
}

#[test]
fn short_memory_takes_what_needs_no_function_and_defers_the_rest() {
    /// # Safety
    /// For this test's cache.
    unsafe extern "C-unwind" fn count(there: *mut c_void) {
        // SAFETY: the test's counter.
        unsafe { (*there.cast::<AtomicUsize>()).fetch_add(100_000, Relaxed) };
    }
    let (w, there) = (world(16), AtomicUsize::new(0));
    let (plain, called) = (w.cache(&PLAIN), w.cache(&Options { reclaim: Some(count), ..counting(&there) }));
    used_up(&w, plain, 1000);
    used_up(&w, called, 1000);
    w.cached().relieve();
    assert_eq!(w.caches.stats(plain).unwrap().memory_bytes, 0);
    assert_eq!(there.load(Relaxed), 1000);
    w.cached().run_deferred(called);
    assert_eq!(there.load(Relaxed), 100_000, "asked for objects, and all of them destroyed");
    w.cached().run_deferred(called);
    assert_eq!(there.load(Relaxed), 100_000, "once");
    used_up(&w, plain, 1000);
    assert!(w.cached().reap_all() > 100_000);
    w.end_all(called, Vec::new());
}

#[test]
fn much_free_memory_is_announced() {
    let w = crate::world::world_in::<crate::world::Here>(64);
    let cache = w.cache(&Options { size: 4000, ..PLAIN });
    let out: Vec<_> = (0..6000).map(|_| w.object(cache).unwrap()).collect();
    let before = asked().much;
    out.into_iter().for_each(|o| w.put(cache, o).unwrap());
    let has_arrays = w.caches.stats(cache).unwrap().in_arrays > 0;
    assert_eq!(asked().much > before, has_arrays, "what goes to the depot is counted");
}

#[test]
fn live_objects_survive_every_way_to_trim() {
    let (w, there) = (world(16), AtomicUsize::new(0));
    let cache = w.cache(&counting(&there));
    let mut out: Vec<_> = (0..4000).map(|_| w.object(cache).unwrap()).collect();
    let (mut rng, mut rest) = (Rng::new(9), Vec::new());
    for object in out.drain(..) {
        if rng.below(3) == 0 { rest.push(object) } else { w.put(cache, object).unwrap() }
    }
    pass(&w, 60, true);
    w.cached().relieve();
    w.cached().run_deferred(cache);
    w.cached().reap(cache).unwrap();
    let stats = w.caches.stats(cache).unwrap();
    assert_eq!((stats.in_use, stats.in_depot, stats.complete), (rest.len() as u64, 0, 0));
    // SAFETY: ours.
    assert!(rest.iter().all(|o| unsafe { *o.add(50) } == 7));
    w.end_all(cache, rest);
    assert_eq!(there.load(Relaxed), 0);
}
