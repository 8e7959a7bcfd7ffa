use super::*;
use crate::thread::leave;
use crate::thread::mode::ThreadMode;
use core::cell::Cell;
use core::ptr::null_mut;
use std::thread;
use std::vec::Vec;

const SIZES: [usize; 12] = [0, 1, 16, 17, 128, 1025, 32 << 10, 256 << 10, (256 << 10) + 1, 1 << 20, 5 << 20, 20 << 20];

fn mode() -> ThreadMode {
    ThreadMode::now()
}

/// # Safety
/// The caller's object has `bytes` bytes.
unsafe fn filled(object: *mut u8, bytes: usize, with: u8) {
    // SAFETY: by the contract.
    unsafe { object.write_bytes(with, bytes) };
}

/// # Safety
/// As [`filled`], and the bytes are written.
unsafe fn holds(object: *mut u8, bytes: usize, byte: u8) -> bool {
    // SAFETY: by the contract.
    let bytes = unsafe { core::slice::from_raw_parts(object, bytes) };
    let step = 1 + bytes.len() / 500;
    bytes.iter().step_by(step).chain(bytes.last()).all(|b| *b == byte)
}

#[test]
fn objects_of_every_size_are_distinct_aligned_and_as_large_as_they_say() {
    let objects: Vec<_> = SIZES.iter().map(|size| (malloc(*size), *size)).collect();
    for (i, (object, size)) in objects.iter().enumerate() {
        // SAFETY: ours.
        unsafe {
            let usable = usable_size(*object).unwrap();
            assert!(!object.is_null() && object.addr().is_multiple_of(16) && usable >= *size, "{size} bytes");
            filled(*object, usable, i as u8);
        }
    }
    for (i, (object, size)) in objects.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe {
            assert!(holds(object, size, i as u8));
            free(object).unwrap();
        }
    }
}

#[test]
fn aligned_objects_lie_at_multiples_of_what_was_asked_for() {
    for align in (0..24).map(|log| 1 << log) {
        for size in [1, 100, 5000, 300 << 10] {
            let object = aligned(align, size);
            assert!(!object.is_null() && object.addr().is_multiple_of(align), "{size} at {align}");
            // SAFETY: ours.
            unsafe { free(object) }.unwrap();
        }
    }
    assert!(aligned(1 << 63, 1).is_null());
}

#[test]
fn cleared_objects_read_as_zeros_also_where_others_were() {
    for size in SIZES {
        let old = malloc(size);
        // SAFETY: ours.
        unsafe {
            filled(old, size, 0xff);
            free(old).unwrap();
            let object = calloc(size);
            assert!(holds(object, size, 0), "{size} bytes");
            free(object).unwrap();
        }
    }
}

#[test]
fn no_memory_is_null_with_errno_and_a_success_leaves_errno_alone() {
    process::set_errno(7);
    for object in [malloc(usize::MAX), malloc(MAX_SIZE + 1), calloc(MAX_SIZE), aligned(64, usize::MAX - 64)] {
        assert!(object.is_null());
        assert_eq!(process::errno(), process::ENOMEM);
    }
    process::set_errno(7);
    let objects: Vec<_> = (0..5000).map(|i| malloc(i * 7)).collect();
    assert_eq!(process::errno(), 7);
    // SAFETY: ours.
    objects.into_iter().for_each(|object| unsafe { free(object) }.unwrap());
    assert_eq!(process::errno(), 7);
}

#[test]
fn a_resized_object_keeps_its_contents() {
    for (from, to) in SIZES.iter().flat_map(|from| SIZES.iter().map(move |to| (*from, *to))) {
        let object = malloc(from);
        // SAFETY: ours.
        unsafe {
            filled(object, from, 0x5a);
            let resized = realloc(object, to).unwrap();
            assert!(!resized.is_null() && usable_size(resized).unwrap() >= to);
            assert!(holds(resized, from.min(to), 0x5a), "{from} to {to}");
            free(resized).unwrap();
        }
    }
}

#[test]
fn an_object_that_cannot_grow_is_as_it_was() {
    for size in [100, 1 << 20, 20 << 20] {
        let object = malloc(size);
        // SAFETY: ours.
        unsafe {
            filled(object, size, 3);
            assert_eq!(realloc(object, usize::MAX), Ok(null_mut()));
            assert!(holds(object, size, 3) && process::errno() == process::ENOMEM);
            free(object).unwrap();
        }
    }
}

#[test]
fn bad_pointers_are_named_and_change_nothing() {
    let object = malloc(100);
    let mut local = [0usize; 8];
    let foreign = local.as_mut_ptr().cast::<u8>();
    let inside = object.wrapping_add(16);
    // SAFETY: only `object`, ours, is given up.
    unsafe {
        assert_eq!(free(null_mut()), Ok(()));
        for bad in [free(foreign), realloc(foreign, 10).map(|_| ()), usable_size(foreign).map(|_| ())] {
            assert_eq!(bad, Err(Misuse::Foreign));
        }
        assert!(matches!(free(inside), Err(Misuse::Inside { offset: 16, .. })));
        free(object).unwrap();
        assert!(matches!(free(object), Err(Misuse::Freed { .. })), "free already");
    }
}

#[test]
fn sizes_of_one_class_are_alike() {
    let object = malloc(100);
    let alike = |size, other| serves(object, size, other);
    assert!(alike(1, 16) && alike(100, 112) && !alike(16, 17) && !alike(1 << 20, (1 << 20) + 1));
    // SAFETY: ours.
    unsafe { free(object) }.unwrap();
}

#[test]
fn what_is_free_can_be_given_back_to_the_system() {
    let objects: Vec<_> = (0..200).map(|_| malloc(200 << 10)).collect();
    // SAFETY: ours, and written.
    objects.iter().for_each(|object| unsafe { filled(*object, 200 << 10, 1) });
    let out = bytes_in_use();
    assert!(out >= 200 * (200 << 10));
    // SAFETY: as above.
    objects.into_iter().for_each(|object| unsafe { free(object) }.unwrap());
    assert!(release() > 0);
}

fn in_thread(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

#[test]
fn a_threads_first_request_decides_its_mode() {
    in_thread(|| {
        tls::set(tls::none());
        assert_eq!(mode(), ThreadMode::Fresh);
        let object = malloc(40);
        assert!(!object.is_null() && matches!(mode(), ThreadMode::Own(_) | ThreadMode::PerCpu | ThreadMode::Alone));
        // SAFETY: ours.
        unsafe { free(object) }.unwrap();
    });
}

#[test]
fn a_busy_thread_gets_a_cache() {
    in_thread(|| {
        // A cache keeps few of this size: nearly each request is slow.
        let objects: Vec<_> = (0..2000).map(|_| malloc(30 << 10)).collect();
        assert!(matches!(mode(), ThreadMode::Own(_)), "{:?}", mode());
        // SAFETY: ours.
        objects.into_iter().for_each(|object| unsafe { free(object) }.unwrap());
    });
}

#[test]
fn a_thread_is_served_in_every_mode() {
    in_thread(|| {
        let own = malloc(1);
        for word in [tls::gone(), tls::alone(), tls::visitor(), tls::none()] {
            leave::return_cache(word);
            tls::set(word);
            let before = mode();
            for size in SIZES {
                let objects: Vec<_> = (0..5).map(|_| malloc(size)).collect();
                for (i, object) in objects.iter().enumerate() {
                    assert!(!object.is_null(), "{size} bytes in {before:?}");
                    // SAFETY: ours.
                    unsafe { filled(*object, size, i as u8) };
                }
                for (i, object) in objects.into_iter().enumerate() {
                    // SAFETY: as above.
                    unsafe {
                        assert!(holds(object, size, i as u8));
                        let object = realloc(object, size + 100).unwrap();
                        assert!(holds(object, size, i as u8));
                        free(object).unwrap();
                    }
                }
            }
            let stays = matches!(before, ThreadMode::Ending | ThreadMode::Alone);
            assert!(!stays || mode() == before, "{before:?} became {:?}", mode());
        }
        // SAFETY: ours.
        unsafe { free(own) }.unwrap();
    });
}

#[test]
fn a_handler_that_interrupts_a_request_is_served_apart_and_its_frees_wait() {
    in_thread(|| {
        // No other test uses this class.
        let (small, large) = (malloc(23_000), malloc(1 << 20));
        leave::return_cache(tls::none());
        tls::set(tls::none());
        nested::within(|| {
            assert_eq!(mode(), ThreadMode::Nested { per_cpu: false });
            let object = malloc(100);
            assert!(!object.is_null() && nested::size_of(object).is_some());
            // SAFETY: ours.
            unsafe {
                filled(object, 100, 9);
                let grown = realloc(object, 5000).unwrap();
                assert!(holds(grown, 100, 9) && nested::size_of(grown).is_some_and(|size| size >= 5000));
                assert_eq!(usable_size(grown).ok(), nested::size_of(grown));
                assert_eq!((free(grown), free(small), free(large)), (Ok(()), Ok(()), Ok(())));
            }
            assert_eq!(release(), 0, "it takes no locks");
        });
        // The small object waits for this; the large one stays.
        free_what_waits();
        // SAFETY: for the heap the second object is still out.
        unsafe {
            assert!(free(small).is_err());
            free(large).unwrap();
        }
    });
}

#[test]
fn a_task_that_shares_its_parents_words_uses_no_cache_until_it_is_over() {
    in_thread(|| {
        let object = malloc(48);
        let own = mode();
        // As vfork: the parent waits.
        let before = before_clone(false);
        assert!(matches!((own, mode()), (ThreadMode::Own(_), ThreadMode::Own(_)) | (_, ThreadMode::Alone)));
        after_clone(before, true);
        assert_eq!(mode(), own, "as before");
        // At once: a cache cannot be shared.
        let before = before_clone(true);
        assert_eq!(mode(), ThreadMode::Alone);
        let other = malloc(48);
        after_clone(before, false);
        assert_eq!(mode(), ThreadMode::Alone, "the task goes on");
        // SAFETY: ours.
        unsafe {
            free(other).unwrap();
            free(object).unwrap();
        }
    });
}

#[test]
fn objects_of_a_thread_that_has_ended_are_as_it_left_them_and_can_be_freed() {
    let fill = |i: usize| {
        let object = malloc(i % 900 + 1);
        // SAFETY: ours.
        unsafe { filled(object, i % 900 + 1, i as u8) };
        object.expose_provenance()
    };
    let objects = thread::spawn(move || (0..3000).map(fill).collect::<Vec<_>>()).join().unwrap();
    for (i, object) in objects.into_iter().enumerate() {
        let object = core::ptr::with_exposed_provenance_mut(object);
        // SAFETY: the thread's objects became ours.
        unsafe {
            assert!(holds(object, i % 900 + 1, i as u8));
            free(object).unwrap();
        }
    }
}

std::thread_local! {
    static LATE: Late = const { Late(Cell::new(null_mut())) };
}

struct Late(Cell<*mut u8>);

impl Drop for Late {
    fn drop(&mut self) {
        let object = malloc(77);
        assert!(!object.is_null());
        // SAFETY: ours.
        unsafe {
            free(object).unwrap();
            free(self.0.get()).unwrap();
        }
    }
}

#[test]
fn destructors_that_run_while_a_thread_ends_can_allocate_and_free() {
    in_thread(|| LATE.with(|late| late.0.set(malloc(200))));
}
