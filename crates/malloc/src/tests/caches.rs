//! Object caches over a simulated floor, which can refuse; without arrays, since those are the process's own.

use super::world::{World, world};
use crate::caches::{Fault, Options, Refused};
use crate::route::{Found, Misuse};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use craton_base::Pages;
use craton_sim::{FaultRule, Rng};
use craton_slab::object::BadLayout;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::vec::Vec;

const PLAIN: Options<'static> = Options {
    name: b"",
    size: 100,
    align: 0,
    constructor: None,
    destructor: None,
    reclaim: None,
    argument: null_mut(),
    limit_objects: 0,
    limit_bytes: 0,
    working_set_ms: 0,
    flags: 0,
};

/// Counts in its argument what there is.
///
/// # Safety
/// The object has 100 bytes, and the argument is a counter.
unsafe extern "C-unwind" fn construct(object: *mut c_void, there: *mut c_void) -> c_int {
    // SAFETY: tests give a counter, and objects of 100 bytes.
    unsafe {
        (*there.cast::<AtomicUsize>()).fetch_add(1, Relaxed);
        object.cast::<u8>().write_bytes(7, 100);
    }
    0
}

/// Takes one away from the count.
///
/// # Safety
/// As [`construct`].
unsafe extern "C-unwind" fn end(object: *mut c_void, there: *mut c_void) {
    // SAFETY: as above.
    unsafe {
        assert_eq!((*object.cast::<u8>(), *object.cast::<u8>().add(99)), (7, 7), "as it was constructed");
        (*there.cast::<AtomicUsize>()).fetch_sub(1, Relaxed);
    }
}

impl World {
    fn cache(&self, options: &Options<'_>) -> usize {
        self.heap.caches.create(self.heap, options).unwrap()
    }

    fn object(&self, cache: usize) -> Result<*mut u8, Fault> {
        self.heap.caches.alloc(self.heap, cache, None)
    }

    fn put(&self, cache: usize, object: *mut u8) -> Result<(), Misuse> {
        // SAFETY: tests give up what they free.
        unsafe { self.heap.caches.free(self.heap, cache, object) }
    }

    fn pages_in_use(&self) -> Pages {
        self.heap.pages.lock().check().unwrap();
        self.heap.pages.lock().in_use()
    }
}

fn counting(there: &AtomicUsize) -> Options<'static> {
    let argument = core::ptr::from_ref(there).cast_mut().cast();
    Options { constructor: Some(construct), destructor: Some(end), argument, ..PLAIN }
}

#[test]
fn k3_what_is_out_is_counted_and_everything_goes_back() {
    let (w, there) = (world(16, 0), AtomicUsize::new(0));
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
            w.heap.caches.reap(w.heap, cache).unwrap();
        }
    }
    let stats = w.heap.caches.stats(cache).unwrap();
    assert_eq!((stats.in_use, stats.constructed - stats.destroyed), (out.len() as u64, there.load(Relaxed) as u64));
    assert_eq!(w.heap.caches.destroy(w.heap, cache), Ok(Err(out.len() as u64)), "objects are out");
    for object in out {
        assert!(matches!(w.heap.find(object), Found::Bad(Misuse::OfCache { .. })));
        w.put(cache, object).unwrap();
    }
    assert_eq!(w.heap.caches.destroy(w.heap, cache), Ok(Ok(())));
    assert_eq!((there.load(Relaxed), w.pages_in_use()), (0, Pages(0)));
    assert_eq!(w.object(cache), Err(Fault::Misuse(Misuse::CacheDestroyed)));
    assert_ne!(w.cache(&PLAIN), cache, "the slot's new cache has another handle");
}

#[test]
fn what_the_floor_refuses_changes_nothing() {
    for nth in 0..6 {
        let (w, there) = (world(4, 0), AtomicUsize::new(0));
        let cache = w.cache(&counting(&there));
        w.faults.set(FaultRule::Nth(nth));
        let mut out = Vec::new();
        while out.len() < 20_000 {
            let before = w.heap.caches.stats(cache).unwrap();
            match w.object(cache) {
                Ok(object) => out.push(object),
                Err(fault) => {
                    let after = w.heap.caches.stats(cache).unwrap();
                    assert_eq!((fault, after.failures), (Fault::NoMemory, before.failures + 1));
                    assert_eq!((after.in_use, after.slabs), (before.in_use, before.slabs));
                    break;
                }
            }
        }
        for object in out {
            w.put(cache, object).unwrap();
        }
        assert_eq!(w.heap.caches.destroy(w.heap, cache), Ok(Ok(())));
        assert_eq!((there.load(Relaxed), w.pages_in_use()), (0, Pages(0)));
    }
}

#[test]
fn k2_objects_are_told_from_others_and_from_their_insides() {
    let w = world(8, 0);
    let (a, b) = (w.cache(&PLAIN), w.cache(&Options { size: 5000, ..PLAIN }));
    let (p, q) = (w.object(a).unwrap(), w.object(b).unwrap());
    assert_eq!(w.put(b, p), Err(Misuse::OtherCache { its: 0, given: 1 }));
    assert_eq!(w.put(a, w.take(3)), Err(Misuse::NotCached { given: 0 }));
    assert_eq!(w.put(a, p.wrapping_add(8)), Err(Misuse::Inside { offset: 8, size: 100 }));
    assert_eq!(w.put(b, q.wrapping_add(4999)), Err(Misuse::Inside { offset: 4999, size: 5000 }));
    assert_eq!((w.put(a, p), w.put(b, q)), (Ok(()), Ok(())));
}

#[test]
fn options_that_cannot_be_are_refused() {
    let w = world(4, 0);
    let refused = |options: Options<'_>| w.heap.caches.create(w.heap, &options).unwrap_err();
    assert_eq!(refused(Options { size: 0, ..PLAIN }), Refused::Layout(BadLayout::Zero));
    assert_eq!(refused(Options { align: 24, ..PLAIN }), Refused::Layout(BadLayout::Alignment { align: 24 }));
    let size = (1 << 20) + 1;
    assert_eq!(refused(Options { size, ..PLAIN }), Refused::Layout(BadLayout::TooLarge { size }));
    assert_eq!(refused(Options { flags: 4, ..PLAIN }), Refused::Flags);
    for name in [&[b'x'; 32][..], b"\xff", b"a\"b", b"a\\b", b"a\0b"] {
        assert_eq!(refused(Options { name, ..PLAIN }), Refused::Name);
    }
    w.cache(&Options { name: "größer".as_bytes(), ..PLAIN });
}
