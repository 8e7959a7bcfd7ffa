use super::*;
use crate::front;

fn is_own(pointer: *mut u8) -> bool {
    // SAFETY: the tests keep it.
    unsafe { api::is_owned(pointer) }
}

#[test]
fn objects_with_a_hint_lie_in_heaps_of_the_library_and_others_do_not() {
    for hint in [HOT, COLD, SHORT_LIVED, DENSE] {
        for (size, align) in [(1, 1), (100, 64), (40 << 10, 4096)] {
            let object = alloc(size, align, hint);
            assert!(!object.is_null() && object.addr().is_multiple_of(align) && is_own(object), "{size} at {align}");
            // SAFETY: ours.
            unsafe {
                object.write_bytes(1, size);
                front::free(object).unwrap();
            }
        }
    }
    let plain = alloc(100, 16, 0);
    assert!(!plain.is_null() && !is_own(plain));
    // SAFETY: ours.
    unsafe { front::free(plain) }.unwrap();
}
