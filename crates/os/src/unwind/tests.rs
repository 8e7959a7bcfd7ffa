extern crate std;
use super::*;

#[inline(never)]
fn deep(depth: usize, into: &mut [usize]) -> usize {
    let got = if depth == 0 { capture(into) } else { deep(depth - 1, into) };
    core::hint::black_box(got)
}

unsafe extern "C" {
    fn backtrace(into: *mut *mut core::ffi::c_void, room: i32) -> i32;
}

/// What the C library's own unwinder says.
#[inline(never)]
fn theirs(into: &mut [usize]) -> usize {
    // SAFETY: the array is as long as said.
    unsafe { backtrace(into.as_mut_ptr().cast(), into.len() as i32) as usize }
}

#[inline(never)]
fn both(depth: usize, ours: &mut [usize; 64], other: &mut [usize; 64]) -> (usize, usize) {
    let got = if depth == 0 { (capture(ours), theirs(other)) } else { both(depth - 1, ours, other) };
    core::hint::black_box(got)
}

#[test]
fn a_stack_is_what_the_c_library_says() {
    let (mut ours, mut other) = ([0; 64], [0; 64]);
    let (n, m) = both(10, &mut ours, &mut other);
    // theirs() and both() itself come first there.
    assert_eq!(ours[..n], other[2..m], "{n} {m}");
    assert!(n > 12);
    let mut few = [0; 5];
    assert_eq!(deep(20, &mut few), 5);
}
