use super::*;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::vec::Vec;

fn options(name: &[u8]) -> Options<'_> {
    Options { name, ..Options::raw(100) }
}

/// # Safety
/// The argument is the test's.
unsafe extern "C-unwind" fn construct(object: *mut c_void, argument: *mut c_void) -> c_int {
    // SAFETY: a count, and an object of 100 bytes.
    unsafe {
        (*argument.cast::<AtomicU32>()).fetch_add(1, Relaxed);
        object.cast::<u64>().write(42);
    }
    // Constructors may allocate.
    let other = crate::front::malloc(50);
    // SAFETY: ours.
    c_int::from(other.is_null() || unsafe { crate::front::free(other) }.is_err())
}

/// # Safety
/// The argument is the test's.
unsafe extern "C-unwind" fn destruct(_object: *mut c_void, argument: *mut c_void) {
    // SAFETY: as above.
    unsafe { (*argument.cast::<AtomicU32>()).fetch_sub(1, Relaxed) };
}

#[test]
fn constructed_objects_come_back_as_they_were_and_are_ended_with_the_cache() {
    let live = AtomicU32::new(0);
    let argument = core::ptr::from_ref(&live).cast_mut().cast();
    let made = Options { constructor: Some(construct), destructor: Some(destruct), argument, ..options(b"api-made") };
    let cache = create(&made).unwrap();
    let objects: Vec<_> = (0..50).map(|_| alloc(cache).unwrap()).collect();
    for object in objects {
        // SAFETY: ours.
        unsafe {
            assert_eq!(object.cast::<u64>().read(), 42);
            free(cache, object).unwrap();
        }
    }
    assert!(live.load(Relaxed) >= 50);
    assert_eq!(stats(cache).unwrap().name(), "api-made");
    assert_eq!(destroy(cache), Ok(Ok(())));
    assert_eq!(live.load(Relaxed), 0, "every object that was made was ended");
    assert_eq!(destroy(cache), Err(Fault::Misuse(Misuse::CacheDestroyed)));
}

#[test]
fn a_cache_with_live_objects_stays() {
    let cache = create(&options(b"api-stays")).unwrap();
    let object = alloc(cache).unwrap();
    assert_eq!(destroy(cache), Ok(Err(1)));
    // SAFETY: ours; null is nothing.
    unsafe {
        free(cache, object).unwrap();
        free(cache, null_mut()).unwrap();
    }
    assert_eq!(destroy(cache), Ok(Ok(())));
}

#[test]
fn objects_of_other_owners_are_refused() {
    let (a, b) = (create(&options(b"api-one")).unwrap(), create(&options(b"api-two")).unwrap());
    let (object, plain) = (alloc(a).unwrap(), crate::front::malloc(100));
    // SAFETY: ours, given up where that succeeds.
    unsafe {
        assert!(matches!(free(b, object), Err(Misuse::OtherCache { .. })));
        assert!(matches!(free(a, plain), Err(Misuse::NotCached { .. })));
        assert!(matches!(crate::front::free(object), Err(Misuse::OfCache { .. })));
        free(a, object).unwrap();
        assert!(free(a, object).is_err(), "twice");
        crate::front::free(plain).unwrap();
    }
    assert_eq!((destroy(a), destroy(b)), (Ok(Ok(())), Ok(Ok(()))));
}

#[test]
fn threads_share_a_cache() {
    let cache = create(&options(b"api-threads")).unwrap();
    let threads: Vec<_> = (0..4u8)
        .map(|n| {
            thread::spawn(move || {
                for _ in 0..300 {
                    let objects: Vec<_> = (0..10).map(|_| alloc(cache).unwrap()).collect();
                    // SAFETY: ours.
                    unsafe {
                        objects.iter().for_each(|object| object.write_bytes(n, 100));
                        assert!(objects.iter().all(|object| object.read() == n && object.add(99).read() == n));
                        objects.into_iter().for_each(|object| free(cache, object).unwrap());
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    reap(cache).unwrap();
    assert_eq!(destroy(cache), Ok(Ok(())));
}

#[test]
fn prefilled_objects_can_be_had_up_to_the_limit() {
    let cache = create(&Options { limit_objects: 64, ..options(b"api-limit") }).unwrap();
    prefill(cache, 64).unwrap();
    let objects: Vec<_> = (0..64).map(|_| alloc(cache).unwrap()).collect();
    assert_eq!(alloc(cache), Err(Fault::NoMemory));
    assert_eq!(alloc_wait(cache, 1_000_000), Err(Fault::TimedOut));
    // SAFETY: ours.
    objects.into_iter().for_each(|object| unsafe { free(cache, object) }.unwrap());
    prefill(cache, 0).unwrap();
    assert_eq!(destroy(cache), Ok(Ok(())));
}

#[test]
fn a_bad_name_layout_or_handle_is_refused() {
    assert_eq!(create(&options(b"malloc")), Err(Refused::Name));
    assert_eq!(create(&Options { flags: 64, ..options(b"api-flags") }), Err(Refused::Flags));
    assert!(matches!(create(&Options { align: 3, ..options(b"api-align") }), Err(Refused::Layout(_))));
    assert_eq!(alloc(4096 * 1234), Err(Fault::Misuse(Misuse::NoCache)));
}
