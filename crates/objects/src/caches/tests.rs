mod arrays;
mod functions;
mod limits;
mod trim;
mod watched;

use super::{Fault, NEVER, NO_ARRAYS, Options, Refused};
use crate::heaps::Place;
use crate::process::{Process, Watch};
use crate::world::{World, is_inside, world};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use craton_base::{PAGE_SIZE, Pages};
use craton_heap::{Found, Misuse};
use craton_sim::{FaultRule, Rng};
use craton_slab::object::BadLayout;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::vec::Vec;

const PLAIN: Options<'static> = Options::raw(100);

/// # Safety
/// The object has 100 bytes, the argument is a counter.
unsafe extern "C-unwind" fn construct(object: *mut c_void, there: *mut c_void) -> c_int {
    assert!(!is_inside(), "no lock is held");
    // SAFETY: by the contract.
    unsafe {
        (*there.cast::<AtomicUsize>()).fetch_add(1, Relaxed);
        object.cast::<u8>().write_bytes(7, 100);
    }
    0
}

/// # Safety
/// As [`construct`].
unsafe extern "C-unwind" fn end(object: *mut c_void, there: *mut c_void) {
    assert!(!is_inside(), "no lock is held");
    // SAFETY: by the contract.
    unsafe {
        assert_eq!((*object.cast::<u8>(), *object.cast::<u8>().add(99)), (7, 7), "as it was constructed");
        (*there.cast::<AtomicUsize>()).fetch_sub(1, Relaxed);
    }
}

impl<P: Process + Watch> World<P> {
    fn cache(&self, options: &Options<'_>) -> usize {
        self.cached().create(options).unwrap()
    }

    fn object(&self, cache: usize) -> Result<*mut u8, Fault> {
        self.cached().alloc(cache, None)
    }

    fn put(&self, cache: usize, object: *mut u8) -> Result<(), Misuse> {
        // SAFETY: tests give up what they free.
        unsafe { self.cached().free(cache, object) }
    }

    fn end_all(&self, cache: usize, objects: Vec<*mut u8>) {
        objects.into_iter().for_each(|o| self.put(cache, o).unwrap());
        assert_eq!(self.cached().destroy(cache), Ok(Ok(())));
        assert_eq!(self.pages_in_use(), Pages(0));
    }
}

fn counting(there: &AtomicUsize) -> Options<'static> {
    let argument = core::ptr::from_ref(there).cast_mut().cast();
    Options { constructor: Some(construct), destructor: Some(end), argument, ..PLAIN }
}

#[test]
fn k3_what_is_live_is_counted_and_everything_goes_back() {
    let (w, there) = (world(16), AtomicUsize::new(0));
    let (cache, mut rng, mut out) = (w.cache(&counting(&there)), Rng::new(5), Vec::new());
    for _ in 0..20_000 {
        if rng.below(100) < 52 || out.is_empty() {
            out.push(w.object(cache).unwrap());
        } else {
            let object = out.swap_remove(rng.below(out.len() as u64) as usize);
            w.put(cache, object).unwrap();
            assert_eq!(w.put(cache, object), Err(Misuse::Freed { size: 100 }), "K1");
        }
        if rng.below(500) == 0 {
            w.cached().reap(cache).unwrap();
        }
    }
    let stats = w.caches.stats(cache).unwrap();
    assert_eq!((stats.in_use, stats.constructed - stats.destroyed), (out.len() as u64, there.load(Relaxed) as u64));
    assert_eq!(w.cached().destroy(cache), Ok(Err(out.len() as u64)), "objects are live");
    for object in &out {
        assert!(matches!(w.heap.find(*object), Found::Bad(Misuse::OfCache { .. })));
    }
    w.end_all(cache, out);
    assert_eq!(there.load(Relaxed), 0);
    assert_eq!(w.object(cache), Err(Fault::Misuse(Misuse::CacheDestroyed)));
    assert_ne!(w.cache(&PLAIN), cache, "the slot's new cache has another handle");
}

#[test]
fn what_the_floor_refuses_changes_nothing() {
    for nth in 0..6 {
        let (w, there) = (world(4), AtomicUsize::new(0));
        let cache = w.cache(&counting(&there));
        w.faults.set(FaultRule::Nth(nth));
        let mut out = Vec::new();
        while out.len() < 20_000 {
            let before = w.caches.stats(cache).unwrap();
            match w.object(cache) {
                Ok(object) => out.push(object),
                Err(fault) => {
                    let after = w.caches.stats(cache).unwrap();
                    assert_eq!((fault, after.failures), (Fault::NoMemory, before.failures + 1));
                    assert_eq!((after.in_use, after.slabs), (before.in_use, before.slabs));
                    break;
                }
            }
        }
        w.end_all(cache, out);
        assert_eq!(there.load(Relaxed), 0);
    }
}

#[test]
fn k2_objects_are_told_from_others_and_from_their_insides() {
    let w = world(8);
    let (a, b) = (w.cache(&PLAIN), w.cache(&Options { size: 5000, ..PLAIN }));
    let (p, q) = (w.object(a).unwrap(), w.object(b).unwrap());
    assert_eq!(w.put(b, p), Err(Misuse::OtherCache { its: 0, given: 1 }));
    assert_eq!(w.put(a, w.heap.take_one(3)), Err(Misuse::NotCached { given: 0 }));
    let own = w.heaps.create(crate::heaps::Options { name: b"", limit: 0, place: Place::Shared }).unwrap();
    assert_eq!(w.put(a, w.own().alloc(own, 100, 1, false).unwrap()), Err(Misuse::NotCached { given: 0 }));
    assert_eq!(w.put(a, p.wrapping_add(8)), Err(Misuse::Inside { offset: 8, size: 100 }));
    assert_eq!(w.put(b, q.wrapping_add(4999)), Err(Misuse::Inside { offset: 4999, size: 5000 }));
    assert_eq!(w.put(a, (&raw const w).cast_mut().cast()), Err(Misuse::Foreign));
    assert_eq!((w.put(a, p), w.put(b, q)), (Ok(()), Ok(())));
}

#[test]
fn k2_a_free_takes_no_place_that_was_never_out() {
    for size in [16, 48, 100, 500, 3000] {
        let w = world(8);
        let cache = w.cache(&Options { size, flags: NO_ARRAYS, ..PLAIN });
        let mut out = Vec::new();
        for _ in 0..300 {
            out.push(w.object(cache).unwrap() as usize);
            let page = out[out.len() - 1] & !(PAGE_SIZE - 1);
            let entry = w.caches.entries.of(page).unwrap();
            let known = (page..page + PAGE_SIZE).step_by(8).filter(|at| entry.is_start_of(cache, *at));
            assert!(known.eq(out.iter().copied().filter(|object| object & !(PAGE_SIZE - 1) == page)), "{size} bytes");
        }
        w.end_all(cache, out.into_iter().map(|object| object as *mut u8).collect());
    }
}

#[test]
fn marks_tell_free_from_live_wherever_they_lie() {
    for (size, constructed) in [(8, false), (3000, false), (8, true), (40, true), (100, true), (5000, true)] {
        let (w, there) = (world(8), AtomicUsize::new(0));
        /// # Safety
        /// For this test's cache.
        unsafe extern "C-unwind" fn fill(object: *mut c_void, _: *mut c_void) -> c_int {
            // SAFETY: at least 8 bytes.
            unsafe { object.cast::<u64>().write(0x1234_5678_9abc_def0) };
            0
        }
        let constructor = constructed.then_some(fill as super::Constructor);
        let argument = (&raw const there).cast_mut().cast();
        let cache = w.cache(&Options { size, constructor, argument, ..PLAIN });
        let out: Vec<_> = (0..300).map(|_| w.object(cache).unwrap()).collect();
        for object in &out {
            w.put(cache, *object).unwrap();
            assert_eq!(w.put(cache, *object), Err(Misuse::Freed { size }), "{size}, constructed: {constructed}");
        }
        let again: Vec<_> = (0..300).map(|_| w.object(cache).unwrap()).collect();
        if constructed {
            // SAFETY: ours.
            assert!(again.iter().all(|o| unsafe { o.cast::<u64>().read() } == 0x1234_5678_9abc_def0));
            let stats = w.caches.stats(cache).unwrap();
            assert!((300..=stats.total).contains(&stats.constructed), "once each: {stats:?}");
        }
        w.end_all(cache, again);
    }
}

#[test]
fn options_that_cannot_be_are_refused() {
    let w = world(4);
    let refused = |options: Options<'_>| w.cached().create(&options).unwrap_err();
    assert_eq!(refused(Options { size: 0, ..PLAIN }), Refused::Layout(BadLayout::Zero));
    assert_eq!(refused(Options { align: 24, ..PLAIN }), Refused::Layout(BadLayout::Alignment { align: 24 }));
    let size = (1 << 20) + 1;
    assert_eq!(refused(Options { size, ..PLAIN }), Refused::Layout(BadLayout::TooLarge { size }));
    assert_eq!(refused(Options { flags: 4, ..PLAIN }), Refused::Flags);
    assert_eq!(refused(Options { destructor: Some(end), ..PLAIN }), Refused::Functions);
    for name in [&[b'x'; 32][..], b"\xff", b"a\"b", b"a\\b", b"a\0b"] {
        assert_eq!(refused(Options { name, ..PLAIN }), Refused::Name);
    }
    assert!(!w.caches.any_made(), "a refusal takes no slot");
    let cache = w.cache(&Options { name: "größer".as_bytes(), ..PLAIN });
    assert_eq!(w.caches.stats(cache).unwrap().name(), "größer");
    assert_eq!((super::name_of(&w.caches.name(0)), super::name_of(&w.caches.name(1))), ("größer", ""));
}

#[test]
fn handles_of_no_cache_are_errors_of_every_call() {
    let w = world(4);
    let cache = w.cache(&PLAIN);
    assert_eq!(w.cached().destroy(cache), Ok(Ok(())));
    for (handle, misuse) in
        [(0, Misuse::NoCache), (cache ^ (1 << 40), Misuse::NoCache), (cache, Misuse::CacheDestroyed)]
    {
        let fault = Fault::Misuse(misuse);
        assert_eq!((w.object(handle), w.put(handle, null_mut())), (Err(fault), Err(misuse)));
        assert_eq!((w.cached().reap(handle), w.cached().prefill(handle, 1)), (Err(fault), Err(fault)));
        assert_eq!((w.cached().destroy(handle), w.caches.check(handle)), (Err(fault), Err(misuse)));
        assert_eq!(w.caches.stats(handle), Err(misuse));
        w.cached().run_deferred(handle);
    }
}

#[test]
fn a_fork_holds_the_locks_of_all_caches() {
    let w = world(4);
    let cache = w.cache(&PLAIN);
    w.caches.lock_for_fork(false);
    let caches = w.caches;
    let waits = std::thread::spawn(move || caches.stats(cache).unwrap().in_use);
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert!(!waits.is_finished(), "the cache is locked");
    // SAFETY: taken just now.
    unsafe { w.caches.release_after_fork() };
    assert_eq!(waits.join().unwrap(), 0);
    w.end_all(cache, Vec::new());
}
