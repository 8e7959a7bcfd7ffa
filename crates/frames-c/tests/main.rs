//! The C face, called as C would.

use craton_frames_c::*;
use std::ffi::{CStr, c_long};
use std::process::Command;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

struct Owned {
    _buffer: Vec<Line>,
    state: *mut State,
}

fn begin(frames: usize, cpus: usize, how: i32) -> Owned {
    let bytes = craton_frames_size(frames, cpus);
    let mut buffer = vec![Line([0xa5; 64]); bytes / 64];
    let mut state = std::ptr::null_mut();
    // SAFETY: the buffer lives as long as the state.
    let result = unsafe { craton_frames_init(buffer.as_mut_ptr().cast(), bytes, frames, cpus, how, &mut state) };
    assert_eq!(result, 0);
    Owned { _buffer: buffer, state }
}

fn stats(of: &Owned) -> Stats {
    let mut stats = Stats::default();
    // SAFETY: a state of `begin`.
    unsafe { craton_frames_stats(of.state, &mut stats) };
    stats
}

fn text(result: c_long) -> &'static str {
    // SAFETY: a string with an end.
    unsafe { CStr::from_ptr(craton_frames_error(result)) }.to_str().unwrap()
}

#[test]
fn blocks_of_each_order_come_and_go() {
    let of = begin(1 << 14, 2, 0);
    // SAFETY: a state of `begin`.
    unsafe {
        for order in 0..=10 {
            let frame = craton_frames_get(of.state, order, 0, 1);
            assert!(frame >= 0 && frame % (1 << order) == 0, "{order}: {frame}");
            assert_eq!(craton_frames_put(of.state, frame as usize, order, 0), 0);
        }
        assert_eq!(craton_frames_drain(of.state, 0), 0);
        assert_eq!(craton_frames_drain(of.state, 1), 0);
        assert_eq!(craton_frames_validate(of.state), 0);
    }
    let whole = Stats { frames: 1 << 14, free_frames: 1 << 14, free_huge_frames: 32, offline_huge_frames: 0 };
    assert_eq!(stats(&of), whole);
}

#[test]
fn what_a_refusal_proved_is_known_until_a_free() {
    let of = begin(1 << 10, 1, 0);
    // SAFETY: a state of `begin`.
    unsafe {
        assert_eq!(craton_frames_may_have(of.state, 9), 1);
        let huge = [0, 1].map(|_| craton_frames_get(of.state, 9, 0, 0));
        assert_eq!(craton_frames_get(of.state, 9, 0, 0), -1);
        assert_eq!((craton_frames_may_have(of.state, 9), craton_frames_may_have(of.state, 10)), (0, 0));
        assert_eq!(craton_frames_put(of.state, huge[1] as usize, 9, 0), 0);
        assert_eq!((craton_frames_may_have(of.state, 9), craton_frames_may_have(of.state, 11)), (1, 0));
    }
}

#[test]
fn wrong_calls_change_nothing_and_have_a_sentence() {
    let of = begin(1 << 14, 1, 0);
    // SAFETY: a state of `begin`.
    let results = unsafe {
        [
            craton_frames_get(of.state, 11, 0, 0),
            craton_frames_get(of.state, 0, 0, 1),
            c_long::from(craton_frames_put(of.state, 0, 0, 0)),
            c_long::from(craton_frames_put(of.state, 1, 1, 0)),
            c_long::from(craton_frames_put(of.state, 1 << 14, 0, 0)),
            c_long::from(craton_frames_unreserve(of.state, 0, 10)),
            c_long::from(craton_frames_online(of.state, 0)),
        ]
    };
    assert_eq!(results, [-2, -9, -5, -4, -3, -5, -8]);
    assert!(results.iter().all(|result| text(*result) != "no error"));
    assert_eq!([0, 7, 1000, c_long::MIN].map(text), ["no error"; 4]);
    assert_eq!(stats(&of).free_frames, 1 << 14);
}

#[test]
fn wrong_buffers_and_sizes_are_refused() {
    for (frames, cpus) in [(0, 1), (1, 0), (1 << 36, 1), (usize::MAX, usize::MAX)] {
        assert_eq!(craton_frames_size(frames, cpus), 0, "{frames} {cpus}");
    }
    let bytes = craton_frames_size(512, 1);
    let mut buffer = vec![Line([0; 64]); bytes / 64 + 1];
    let (at, mut state) = (buffer.as_mut_ptr().cast::<u8>(), std::ptr::null_mut());
    // SAFETY: as above, or refused before anything is written.
    unsafe {
        assert_eq!(craton_frames_init(at, bytes - 1, 512, 1, 0, &mut state), -10);
        assert_eq!(craton_frames_init(at.add(8), bytes, 512, 1, 0, &mut state), -10);
        assert_eq!(craton_frames_init(std::ptr::null_mut(), bytes, 512, 1, 0, &mut state), -10);
        assert_eq!(craton_frames_init(at, bytes, 512, 1, 0, std::ptr::null_mut()), -10);
        assert_eq!(craton_frames_init(at, bytes, 0, 1, 0, &mut state), -11);
    }
    assert!(state.is_null());
}

#[test]
fn usable_ranges_are_freed_after_an_allocated_start() {
    let of = begin(4096, 1, 1);
    assert_eq!(stats(&of).free_frames, 0);
    // SAFETY: a state of `begin`.
    unsafe {
        assert_eq!(craton_frames_get(of.state, 0, 0, 0), -1);
        assert_eq!(craton_frames_unreserve(of.state, 100, 2000), 0);
        assert_eq!(craton_frames_unreserve(of.state, 2000, 200), -5);
        assert_eq!(craton_frames_reserve(of.state, 90, 20), -6);
        assert_eq!(craton_frames_reserve(of.state, 100, 20), 0);
    }
    assert_eq!(stats(&of).free_frames, 1980);
}

#[test]
fn huge_frames_are_reclaimed_and_come_back() {
    let of = begin(2048, 1, 0);
    // SAFETY: a state of `begin`.
    unsafe {
        let taken: Vec<c_long> = (0..5).map(|_| craton_frames_reclaim(of.state, 0)).collect();
        assert_eq!(taken, [0, 512, 1024, 1536, -1]);
        assert_eq!((stats(&of).free_frames, stats(&of).offline_huge_frames), (0, 4));
        assert_eq!(craton_frames_put(of.state, 512, 9, 0), -7);
        assert_eq!(craton_frames_online(of.state, 512), 0);
        assert_eq!(craton_frames_get(of.state, 9, 0, 0), 512);
    }
}

#[test]
fn c_and_cpp_compile_the_header() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    for (compiler, language) in [("gcc", "c"), ("g++", "c++")] {
        let status = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", language])
            .arg(format!("{folder}/craton_frames.h"))
            .status();
        assert!(status.unwrap().success(), "{compiler}");
    }
}
