use super::super::NO_ARRAYS;
use super::*;
use crate::world::asked;

#[test]
fn no_more_objects_than_the_limit_are_live_or_lie_ready() {
    let w = world(8);
    let cache = w.cache(&Options { limit_objects: 40, ..PLAIN });
    let mut out: Vec<_> = (0..40).map(|_| w.object(cache).unwrap()).collect();
    assert_eq!(w.object(cache), Err(Fault::NoMemory));
    assert_eq!(asked().room, 1, "the process was asked for room");
    w.put(cache, out.pop().unwrap()).unwrap();
    out.push(w.object(cache).unwrap());
    let stats = w.caches.stats(cache).unwrap();
    assert_eq!((stats.in_use, stats.limit_objects, stats.failures), (40, 40, 1));
    w.end_all(cache, out);
}

#[test]
fn no_more_objects_than_the_limit_are_ever_constructed() {
    for (flags, size) in [(0, 100), (NO_ARRAYS, 100), (NO_ARRAYS, 3000)] {
        let (w, there) = (world(8), AtomicUsize::new(0));
        let cache = w.cache(&Options { limit_objects: 100, flags, size, ..counting(&there) });
        let mut out: Vec<_> = (0..100).map(|_| w.object(cache).unwrap()).collect();
        assert_eq!((w.object(cache), there.load(Relaxed)), (Err(Fault::NoMemory), 100));
        for i in [99, 0, 50, 98, 7] {
            w.put(cache, out[i]).unwrap();
            out[i] = w.object(cache).unwrap();
            assert_eq!(there.load(Relaxed), 100, "the constructed one goes out again");
        }
        for object in out.drain(..60) {
            w.put(cache, object).unwrap();
        }
        w.cached().prefill(cache, 100).unwrap();
        assert_eq!((there.load(Relaxed), w.caches.stats(cache).unwrap().limit_objects), (100, 100));
        out.extend((0..60).map(|_| w.object(cache).unwrap()));
        assert_eq!((w.object(cache), there.load(Relaxed)), (Err(Fault::NoMemory), 100));
        w.end_all(cache, out);
        assert_eq!(there.load(Relaxed), 0);
    }
}

#[test]
fn slabs_take_no_more_bytes_than_the_limit() {
    let w = world(8);
    let cache = w.cache(&Options { limit_bytes: 3 * 8192, ..PLAIN });
    let mut out = Vec::new();
    let fault = loop {
        match w.object(cache) {
            Ok(object) => out.push(object),
            Err(fault) => break fault,
        }
    };
    let stats = w.caches.stats(cache).unwrap();
    assert_eq!((fault, stats.limit_bytes), (Fault::NoMemory, 3 * 8192));
    assert!(stats.memory_bytes <= 3 * 8192 && out.len() > 150, "{stats:?}");
    w.end_all(cache, out);
}

#[test]
fn a_wait_ends_with_its_time() {
    let w = world(4);
    let cache = w.cache(&Options { limit_objects: 1, ..PLAIN });
    let object = w.object(cache).unwrap();
    assert_eq!(w.cached().alloc(cache, Some(0)), Err(Fault::TimedOut));
    let (clock, over) = (w.clock.clone(), w.cached());
    let result = std::thread::scope(|s| {
        let waits = s.spawn(move || over.alloc(cache, Some(5_000_000_000)).err());
        // A waiter looks at the clock at least each second.
        while !waits.is_finished() {
            clock.advance(2_500_000_000);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        waits.join().unwrap()
    });
    assert_eq!(result, Some(Fault::TimedOut));
    assert_eq!(w.caches.stats(cache).unwrap().failures, 2);
    w.end_all(cache, std::vec![object]);
}

#[test]
fn k4_a_waiter_gets_the_object_that_another_thread_frees() {
    let w = world(4);
    let cache = w.cache(&Options { limit_objects: 3, ..PLAIN });
    let out: Vec<usize> = (0..3).map(|_| w.object(cache).unwrap() as usize).collect();
    let over = &w.cached();
    std::thread::scope(|s| {
        let waiters: Vec<_> =
            (0..2).map(|_| s.spawn(move || over.alloc(cache, Some(u64::MAX)).unwrap() as usize)).collect();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(waiters.iter().all(|t| !t.is_finished()), "nothing is free");
        w.put(cache, out[0] as *mut u8).unwrap();
        w.put(cache, out[1] as *mut u8).unwrap();
        let mut got: Vec<_> = waiters.into_iter().map(|t| t.join().unwrap()).collect();
        got.sort_unstable();
        let mut freed = [out[0], out[1]];
        freed.sort_unstable();
        assert_eq!(got, freed);
    });
    w.end_all(cache, out.into_iter().map(|o| o as *mut u8).collect());
}

#[test]
fn after_prefill_objects_need_no_memory() {
    let (w, there) = (world(8), AtomicUsize::new(0));
    let cache = w.cache(&counting(&there));
    assert_eq!(w.cached().prefill(cache, 1000), Ok(()));
    assert_eq!((there.load(Relaxed), w.caches.stats(cache).unwrap().reserved), (1000, 1000));
    w.faults.set(FaultRule::From(0));
    let out: Vec<_> = (0..1000).map(|_| w.object(cache).unwrap()).collect();
    w.faults.set(FaultRule::Never);
    out.iter().for_each(|o| w.put(cache, *o).unwrap());
    w.cached().reap(cache).unwrap();
    assert!(there.load(Relaxed) >= 1000, "what was promised stays");
    assert_eq!(w.cached().prefill(cache, 0), Ok(()));
    w.cached().reap(cache).unwrap();
    assert_eq!(there.load(Relaxed), 0, "and goes when the promise is taken back");
    w.end_all(cache, Vec::new());
}

#[test]
fn a_promise_beyond_the_limit_or_the_machine_is_refused() {
    let w = world(8);
    let cache = w.cache(&Options { limit_objects: 10, ..PLAIN });
    assert_eq!(w.cached().prefill(cache, 11), Err(Fault::NoMemory));
    assert_eq!(w.cached().prefill(cache, usize::MAX), Err(Fault::NoMemory));
    assert_eq!((w.cached().prefill(cache, 10), w.caches.stats(cache).unwrap().total >= 10), (Ok(()), true));
    w.end_all(cache, Vec::new());
}

#[test]
fn a_prefill_that_the_floor_refuses_keeps_what_it_made() {
    for nth in 0..4 {
        let (w, there) = (world(3), AtomicUsize::new(0));
        let cache = w.cache(&counting(&there));
        w.faults.set(FaultRule::From(nth));
        let result = w.cached().prefill(cache, 200_000);
        assert_eq!(result, Err(Fault::NoMemory));
        let stats = w.caches.stats(cache).unwrap();
        assert_eq!((stats.in_use, stats.reserved, stats.constructed), (0, 0, there.load(Relaxed) as u64));
        w.end_all(cache, Vec::new());
        assert_eq!(there.load(Relaxed), 0);
    }
}
