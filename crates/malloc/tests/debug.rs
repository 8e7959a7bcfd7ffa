//! Objects under the debugging kit.

#![cfg(not(loom))]

use craton_malloc::{debug, front, options, sizes};
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::Once;

fn turn_on() {
    static ON: Once = Once::new();
    ON.call_once(|| {
        assert!(!options::set_by_program(b"debug", b"audit,redzones"));
        assert!(!options::set_by_program(b"debug", b"audit:"));
        assert!(options::set_by_program(b"debug", b"audit,redzone,poison,verify,guard,unmap"));
        assert!(options::set_by_program(b"quarantine", b"1M"));
    });
}

/// # Safety
/// Ours, given up.
unsafe fn free(object: *mut u8) {
    // SAFETY: by the contract.
    unsafe { assert_eq!(front::free(object), Ok(())) };
}

#[test]
fn objects_have_exactly_their_sizes_at_their_alignments() {
    turn_on();
    for align in [1, 8, 16, 32, 64, 512, 4096, 8192, 1 << 20, 4 << 20] {
        for size in [0, 1, 15, 16, 17, 24, 100, 4000, 4096, 4097, 40_000, 300_000, 3 << 20] {
            let object = front::aligned(align, size);
            assert!(!object.is_null() && object.addr().is_multiple_of(align.max(16)), "{size} at {align}");
            // SAFETY: ours.
            unsafe {
                assert_eq!(front::usable_size(object), Ok(size));
                let bytes = std::slice::from_raw_parts_mut(object, size);
                assert!(
                    bytes.iter().zip([0xfe, 0xca, 0xdd, 0xba].iter().cycle()).all(|(b, p)| b == p),
                    "{size} at {align}"
                );
                bytes.fill(1);
                free(object);
            }
        }
    }
}

#[test]
fn zeroed_objects_are_zeroed_and_resized_ones_keep_their_contents() {
    turn_on();
    for size in [1, 100, 5000, 33_000, 200_000, 1 << 20] {
        let object = front::calloc(size);
        // SAFETY: ours.
        unsafe {
            assert!(std::slice::from_raw_parts(object, size).iter().all(|b| *b == 0), "{size}");
            object.write_bytes(7, size);
            let mut object = object;
            for new in [size + 1, 2 * size, size, size / 2 + 1] {
                let moved = front::realloc(object, new).unwrap();
                assert_ne!(moved, object, "who holds the old pointer is to notice");
                let kept = size.min(new).min(size / 2 + 1);
                assert!(std::slice::from_raw_parts(moved, kept).iter().all(|b| *b == 7));
                moved.write_bytes(7, new);
                object = moved;
            }
            free(object);
        }
    }
    assert_eq!(front::malloc(usize::MAX), null_mut());
    assert_eq!(front::aligned(1 << 62, 1 << 62), null_mut());
}

#[test]
fn at_least_so_much_is_what_may_be_used_and_any_size_frees_it() {
    turn_on();
    let (object, bytes) = sizes::alloc_at_least(100, 1);
    assert!(bytes >= 100);
    // SAFETY: ours.
    unsafe {
        object.write_bytes(3, bytes);
        let claim = sizes::Claim { size: Some(bytes), align: 1, resized: true };
        assert_eq!(sizes::free(object, claim), Ok(()));
    }
}

#[test]
fn objects_of_many_threads_never_overlap() {
    turn_on();
    std::thread::scope(|scope| {
        for seed in 1..=3u64 {
            scope.spawn(move || run(seed));
        }
    });
    assert!(debug::check() < 100_000);
}

fn run(seed: u64) {
    let mut x = seed;
    let mut random = move |below: usize| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as usize % below
    };
    let mut objects: BTreeMap<usize, (usize, u8)> = BTreeMap::new();
    for turn in 0..6000 {
        let pick = |objects: &BTreeMap<usize, (usize, u8)>, n: usize| *objects.keys().nth(n).unwrap();
        if objects.len() < 200 || random(2) == 0 && objects.len() < 400 {
            let size = match random(20) {
                0 => random(100_000),
                1..4 => random(5000),
                _ => random(300),
            };
            let at = front::malloc(size) as usize;
            let before = objects.range(..=at).next_back();
            assert!(before.is_none_or(|(start, (bytes, _))| start + bytes <= at), "overlaps what lies before it");
            assert!(
                objects.range(at..).next().is_none_or(|(start, _)| at + size <= *start),
                "overlaps what lies behind it"
            );
            let byte = turn as u8;
            // SAFETY: ours.
            unsafe { (at as *mut u8).write_bytes(byte, size) };
            objects.insert(at, (size, byte));
        } else {
            let at = pick(&objects, random(objects.len()));
            let (size, byte) = objects.remove(&at).unwrap();
            // SAFETY: ours, given up.
            unsafe {
                let bytes = std::slice::from_raw_parts(at as *const u8, size);
                assert!(bytes.iter().all(|b| *b == byte), "somebody wrote into it");
                free(at as *mut u8);
            }
        }
    }
    for at in objects.into_keys() {
        // SAFETY: ours, given up.
        unsafe { free(at as *mut u8) };
    }
}
