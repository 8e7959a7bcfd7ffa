use super::*;
use std::boxed::Box;

#[test]
fn objects_apart_are_aligned_distinct_and_know_their_size() {
    let area = Box::leak(Box::new(Area::new()));
    let serve = |size, align| area.serve(size, align);
    let size_of = |object| area.size_of(object);
    let (a, b, c) = (serve(1, 16), serve(100, 512), serve(0, 16));
    for (object, size, align) in [(a, 1, 16), (b, 100, 512), (c, 0, 16)] {
        assert_eq!((object as usize % align, size_of(object)), (0, Some(size)));
    }
    assert!((a as usize) < b as usize - HEAD && b as usize + 100 <= c as usize - HEAD);
    assert_eq!(size_of(null_mut()), None);
    assert!(serve(Area::BYTES, 16).is_null() && serve(usize::MAX, 16).is_null());
    assert!(serve(1, 1 << 62).is_null());
    assert_eq!(size_of(serve(7, 16)), Some(7), "a refusal takes nothing");
}

#[test]
fn what_is_kept_comes_back_once() {
    let area = Box::leak(Box::new(Area::new()));
    let (mut a, mut b) = ([0usize; 2], [0usize; 2]);
    let (a, b) = (a.as_mut_ptr().cast::<u8>(), b.as_mut_ptr().cast::<u8>());
    // SAFETY: memory of this test.
    unsafe {
        area.free_later(a);
        area.free_later(b);
        assert_eq!(area.pop_deferred(), b);
        assert_eq!((b.cast::<*mut u8>().read(), a.cast::<*mut u8>().read()), (a, null_mut()));
    }
    assert!(area.pop_deferred().is_null());
}
