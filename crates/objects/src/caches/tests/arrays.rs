use super::*;
use crate::process::Words;
use crate::world::{Here, world_in};

impl World<Here> {
    fn quick(&self, cache: usize) -> *mut u8 {
        if let Some((rseq, areas)) = ready() {
            // SAFETY: this thread's word.
            let object = unsafe { self.caches.pop(rseq, areas, cache) };
            if !object.is_null() {
                return object;
            }
        }
        self.object(cache).unwrap()
    }

    fn put_quick(&self, cache: usize, object: *mut u8) -> Result<(), Misuse> {
        if let Some((rseq, areas)) = ready() {
            // SAFETY: this thread's word; tests give up what they free.
            if unsafe { self.cached().push(rseq, areas, cache, object) } {
                return Ok(());
            }
        }
        self.put(cache, object)
    }
}

fn ready() -> Option<(&'static craton_os::rseq::Rseq, usize)> {
    let areas = Here::words().arrays;
    if areas > Words::NONE { Some((Here::sequences(false)?, areas)) } else { None }
}

#[test]
fn k1_objects_through_arrays_bear_marks_and_stay_constructed() {
    for size in [16, 100, 3000] {
        let (w, there) = (world_in::<Here>(32), AtomicUsize::new(0));
        /// # Safety
        /// For this test's cache.
        unsafe extern "C-unwind" fn count(object: *mut c_void, there: *mut c_void) -> c_int {
            // SAFETY: the test's counter, and 16 bytes or more.
            unsafe {
                object.cast::<u64>().write(42);
                (*there.cast::<AtomicUsize>()).fetch_add(1, Relaxed);
            }
            0
        }
        let argument = (&raw const there).cast_mut().cast();
        let cache = w.cache(&Options { size, constructor: Some(count), argument, ..PLAIN });
        let (mut rng, mut out) = (Rng::new(3), Vec::new());
        for _ in 0..30_000 {
            if rng.below(2) == 0 || out.is_empty() {
                let object = w.quick(cache);
                // SAFETY: ours.
                assert_eq!(unsafe { object.cast::<u64>().read() }, 42);
                out.push(object);
            } else {
                let object = out.swap_remove(rng.below(out.len() as u64) as usize);
                w.put_quick(cache, object).unwrap();
                assert_eq!(w.put_quick(cache, object), Err(Misuse::Freed { size }));
            }
        }
        let stats = w.caches.stats(cache).unwrap();
        assert_eq!(stats.in_use, out.len() as u64, "K3");
        assert_eq!(stats.constructed, there.load(Relaxed) as u64);
        if ready().is_some() {
            assert!(stats.magazine_hits > stats.allocations / 2, "{stats:?}");
        }
        assert_eq!(w.put_quick(cache, out[0].wrapping_add(8)), Err(Misuse::Inside { offset: 8, size }));
        w.end_all(cache, out);
    }
}

#[test]
fn arrays_serve_their_owner_only_and_not_what_was_destroyed() {
    let w = world_in::<Here>(16);
    let (a, b) = (w.cache(&PLAIN), w.cache(&PLAIN));
    let out: Vec<_> = (0..200).map(|_| w.quick(a)).collect();
    for object in &out {
        assert_eq!(w.put_quick(b, *object), Err(Misuse::OtherCache { its: 0, given: 1 }));
    }
    w.end_all_quick(a, out);
    if let Some((rseq, areas)) = ready() {
        // SAFETY: this thread's word.
        assert!(unsafe { w.caches.pop(rseq, areas, a) }.is_null(), "no array has the handle any more");
        // SAFETY: as above.
        assert!(unsafe { w.caches.pop(rseq, areas, 0) }.is_null());
    }
    assert_eq!(w.cached().destroy(b), Ok(Ok(())));
}

impl World<Here> {
    fn end_all_quick(&self, cache: usize, objects: Vec<*mut u8>) {
        objects.into_iter().for_each(|o| self.put_quick(cache, o).unwrap());
        assert_eq!(self.cached().destroy(cache), Ok(Ok(())));
        assert_eq!(self.pages_in_use(), Pages(0));
    }
}

#[test]
fn arrays_grow_with_misses_and_lose_what_lies_idle() {
    let w = world_in::<Here>(32);
    let cache = w.cache(&PLAIN);
    let first = w.caches.stats(cache).unwrap().rounds;
    for _ in 0..40 {
        let out: Vec<_> = (0..500).map(|_| w.quick(cache)).collect();
        out.into_iter().for_each(|o| w.put_quick(cache, o).unwrap());
    }
    let stats = w.caches.stats(cache).unwrap();
    if ready().is_none() {
        return assert_eq!((stats.in_arrays, stats.rounds >= first), (0, true));
    }
    assert!(stats.rounds > first && stats.in_arrays > 0 && stats.in_depot > 0, "{stats:?}");
    for _ in 0..5 {
        w.clock.advance(16_000_000_000);
        w.cached().tick(true);
    }
    let idle = w.caches.stats(cache).unwrap();
    assert_eq!((idle.in_arrays, idle.in_depot, idle.memory_bytes), (0, 0, 0), "{idle:?}");
    assert!(idle.rounds < stats.rounds);
    w.end_all(cache, Vec::new());
}

#[test]
fn without_arrays_by_the_flag_each_request_is_slow() {
    let w = world_in::<Here>(8);
    let cache = w.cache(&Options { flags: crate::caches::NO_ARRAYS, ..PLAIN });
    for _ in 0..100 {
        let object = w.quick(cache);
        w.put_quick(cache, object).unwrap();
    }
    let stats = w.caches.stats(cache).unwrap();
    assert_eq!((stats.magazine_hits, stats.in_arrays, stats.allocations), (0, 0, 100));
    w.end_all(cache, Vec::new());
}

#[test]
fn objects_of_many_threads_are_each_live_once() {
    let w = world_in::<Here>(32);
    let cache = w.cache(&PLAIN);
    let hands: Vec<std::sync::Mutex<Vec<usize>>> = (0..3).map(|_| Default::default()).collect();
    std::thread::scope(|s| {
        for me in 0..3usize {
            let (w, hands) = (&w, &hands);
            s.spawn(move || {
                let mut rng = Rng::new(me as u64 + 1);
                for turn in 0..20_000u64 {
                    let object = w.quick(cache);
                    // SAFETY: ours, of 100 bytes.
                    unsafe { object.cast::<u64>().write(turn) };
                    hands[rng.below(3) as usize].lock().unwrap().push(object as usize);
                    let taken = hands[me].lock().unwrap().pop();
                    if let Some(object) = taken {
                        w.put_quick(cache, object as *mut u8).unwrap();
                    }
                }
            });
        }
    });
    let rest: Vec<_> = hands.into_iter().flat_map(|h| h.into_inner().unwrap()).map(|o| o as *mut u8).collect();
    assert_eq!(w.caches.stats(cache).unwrap().in_use, rest.len() as u64);
    w.end_all(cache, rest);
}
