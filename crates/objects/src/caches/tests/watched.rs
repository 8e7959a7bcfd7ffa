use super::*;
use crate::world::asked;

#[test]
fn watched_objects_are_constructed_anew_each_time_and_no_slab_has_any() {
    let (w, there) = (world(4), AtomicUsize::new(0));
    let cache = w.cache(&Options { name: b"watched", ..counting(&there) });
    let out: Vec<_> = (0..20).map(|_| w.object(cache).unwrap()).collect();
    assert_eq!((there.load(Relaxed), w.pages_in_use()), (20, Pages(0)));
    let stats = w.caches.stats(cache).unwrap();
    assert_eq!((stats.in_use, stats.total, stats.slabs, stats.in_depot), (20, 20, 0, 0));
    assert_eq!(w.cached().destroy(cache), Ok(Err(20)));
    assert_eq!(asked().live, 1, "the watcher says who has them");
    w.put(cache, out[0]).unwrap();
    assert_eq!(there.load(Relaxed), 19, "destroyed when it is freed");
    assert_eq!(w.cached().prefill(cache, 100), Ok(()), "each is made when it is asked for");
    assert_eq!(there.load(Relaxed), 19);
    w.end_all(cache, out[1..].to_vec());
    assert_eq!(there.load(Relaxed), 0);
}

#[test]
fn limits_hold_for_buffers_too_and_waiters_get_them() {
    let w = world(4);
    let cache = w.cache(&Options { name: b"watched", limit_objects: 2, ..PLAIN });
    let out = [w.object(cache).unwrap() as usize, w.object(cache).unwrap() as usize];
    assert_eq!(w.object(cache), Err(Fault::NoMemory));
    let over = w.cached();
    let got = std::thread::scope(|s| {
        let waits = s.spawn(move || over.alloc(cache, Some(u64::MAX)).unwrap() as usize);
        std::thread::sleep(std::time::Duration::from_millis(5));
        w.put(cache, out[0] as *mut u8).unwrap();
        waits.join().unwrap()
    });
    w.end_all(cache, std::vec![got as *mut u8, out[1] as *mut u8]);
    let few = w.cache(&Options { name: b"watched", limit_bytes: 8192, ..PLAIN });
    let out: Vec<_> = core::iter::from_fn(|| w.object(few).ok()).collect();
    assert!((20..=8192 / 100).contains(&out.len()), "{}", out.len());
    w.end_all(few, out);
}

/// # Safety
/// For this test's cache.
unsafe extern "C-unwind" fn refuses(_: *mut c_void, _: *mut c_void) -> c_int {
    1
}

#[test]
fn a_buffer_whose_constructor_fails_is_freed() {
    let w = world(4);
    let cache = w.cache(&Options { name: b"watched", constructor: Some(refuses), ..PLAIN });
    assert_eq!(w.object(cache), Err(Fault::Constructor));
    assert_eq!(w.caches.stats(cache).unwrap().in_use, 0);
    w.end_all(cache, Vec::new());
}
