use super::*;
use std::boxed::Box;

struct Known {
    w: World,
    cache: AtomicUsize,
    calls: AtomicUsize,
    fails_at: usize,
    kept: std::sync::Mutex<Vec<usize>>,
}

fn known(fails_at: usize, options: Options<'static>) -> &'static Known {
    let known = Box::leak(Box::new(Known {
        w: world(8),
        cache: AtomicUsize::new(0),
        calls: AtomicUsize::new(0),
        fails_at,
        kept: std::sync::Mutex::new(Vec::new()),
    }));
    let argument = core::ptr::from_ref(known).cast_mut().cast();
    known.cache.store(known.w.cache(&Options { argument, ..options }), Relaxed);
    known
}

impl Known {
    fn cache(&self) -> usize {
        self.cache.load(Relaxed)
    }
}

/// # Safety
/// The argument is a `Known`.
unsafe fn of(argument: *mut c_void) -> &'static Known {
    // SAFETY: by the contract; never freed.
    unsafe { &*argument.cast::<Known>() }
}

/// # Safety
/// For this test's cache.
unsafe extern "C-unwind" fn fails(_: *mut c_void, known: *mut c_void) -> c_int {
    // SAFETY: the test's argument.
    let known = unsafe { of(known) };
    (known.calls.fetch_add(1, Relaxed) == known.fails_at).into()
}

#[test]
fn after_a_constructor_that_fails_the_object_is_raw_and_serves_again() {
    for fails_at in [0, 1, 7, 40] {
        let known = known(fails_at, Options { constructor: Some(fails), ..PLAIN });
        let (w, cache) = (&known.w, known.cache());
        let mut out = Vec::new();
        for call in 0..60 {
            let before = w.caches.stats(cache).unwrap();
            match w.object(cache) {
                Ok(object) => out.push(object),
                Err(fault) => {
                    let after = w.caches.stats(cache).unwrap();
                    assert_eq!((call, fault), (fails_at, Fault::Constructor));
                    assert_eq!((after.constructor_failures, after.failures), (1, 1));
                    assert_eq!((after.in_use, after.allocations), (before.in_use, before.allocations));
                }
            }
        }
        assert_eq!(out.len(), 59);
        assert_eq!(w.caches.stats(cache).unwrap().constructed, 59);
        w.end_all(cache, out);
    }
}

#[test]
fn a_failure_in_prefill_keeps_what_was_made_and_promises_nothing() {
    let known = known(20, Options { constructor: Some(fails), ..PLAIN });
    let (w, cache) = (&known.w, known.cache());
    assert_eq!(w.cached().prefill(cache, 50), Err(Fault::Constructor));
    let stats = w.caches.stats(cache).unwrap();
    assert_eq!((stats.constructed, stats.reserved, stats.in_use), (20, 0, 0));
    assert_eq!((stats.constructor_failures, stats.failures), (1, 0), "no caller asked for the object");
    assert_eq!(w.cached().prefill(cache, 50), Ok(()));
    assert_eq!(w.caches.stats(cache).unwrap().constructed, 50);
    w.end_all(cache, Vec::new());
}

/// # Safety
/// For this test's cache.
unsafe extern "C-unwind" fn recurses(_: *mut c_void, known: *mut c_void) -> c_int {
    // SAFETY: the test's argument.
    let known = unsafe { of(known) };
    let (w, cache) = (&known.w, known.cache());
    known.calls.fetch_add(1, Relaxed);
    assert_eq!(w.object(cache), Err(Fault::Recursive));
    assert_eq!(w.cached().reap(cache), Err(Fault::Recursive));
    assert_eq!(w.cached().prefill(cache, 9), Err(Fault::Recursive));
    assert_eq!(w.cached().destroy(cache), Err(Fault::Recursive));
    let other = w.cache(&PLAIN);
    let object = w.object(other).unwrap();
    w.put(other, object).unwrap();
    assert_eq!(w.cached().destroy(other), Ok(Ok(())));
    0
}

#[test]
fn a_constructor_that_uses_its_own_cache_is_refused_and_another_cache_serves() {
    let known = known(0, Options { constructor: Some(recurses), ..PLAIN });
    let object = known.w.object(known.cache()).unwrap();
    assert_eq!(known.calls.load(Relaxed), 1);
    let again = known.w.object(known.cache());
    assert!(again.is_ok(), "the list of running calls is empty again");
    known.w.end_all(known.cache(), std::vec![object, again.unwrap()]);
}

/// # Safety
/// For this test's cache.
unsafe extern "C-unwind" fn gives(known: *mut c_void) {
    // SAFETY: the test's argument.
    let known = unsafe { of(known) };
    known.calls.fetch_add(1, Relaxed);
    if let Some(object) = known.kept.lock().unwrap().pop() {
        known.w.put(known.cache(), object as *mut u8).unwrap();
    }
}

#[test]
fn a_program_that_frees_objects_on_request_is_served_at_the_limit() {
    let known = known(0, Options { reclaim: Some(gives), limit_objects: 5, ..PLAIN });
    let (w, cache) = (&known.w, known.cache());
    let out: Vec<_> = (0..5).map(|_| w.object(cache).unwrap()).collect();
    assert_eq!(w.object(cache), Err(Fault::NoMemory));
    assert_eq!(known.calls.load(Relaxed), 1, "asked once for each refusal");
    known.kept.lock().unwrap().push(out[4] as usize);
    assert_eq!(w.object(cache), Ok(out[4]), "the object that it freed");
    assert_eq!((known.calls.load(Relaxed), w.caches.stats(cache).unwrap().failures), (2, 1));
    w.end_all(cache, out);
}
