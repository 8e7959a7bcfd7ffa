use super::*;
use craton_heap::size_class::{CLASSES, MAX_CLASSED};

#[test]
fn a_good_size_is_its_own_good_size() {
    for size in (0..70_000).chain([MAX_CLASSED - 1, MAX_CLASSED, MAX_CLASSED + 1, 1 << 20, (1 << 30) + 5]) {
        let good = good_size(size, 1);
        assert!(good >= size && good_size(good, 1) == good, "{size} gives {good}");
    }
    assert_eq!(good_size(0, 1), 16);
    assert_eq!(good_size(usize::MAX, 1), 0);
    assert!((1..=CLASSES).all(|c| good_size(size_class::size_of_class(c), 1) == size_class::size_of_class(c)));
}

#[test]
fn a_good_size_with_an_alignment_is_what_an_object_gets() {
    for align in (0..=21).map(|n| 1usize << n) {
        for size in [0, 1, 17, 100, 1000, 5000, 40_000, 300_000] {
            let (object, bytes) = alloc_at_least(size, align);
            assert!(!object.is_null() && bytes == good_size(size, align));
            // SAFETY: ours.
            unsafe {
                object.write_bytes(1, bytes);
                assert_eq!(front::usable_size(object), Ok(bytes), "{size} at {align}");
                front::free(object).unwrap();
            }
        }
    }
}

#[test]
fn a_size_is_right_if_such_a_request_can_have_got_the_object() {
    let claim = |size, resized| Claim { size: Some(size), align: 1, resized };
    let object = front::malloc(100);
    assert_eq!(check(object, claim(112, false)), Ok(()));
    assert_eq!(check(object, claim(96, false)), Err(Misuse::WrongSize { given: 96, size: 112 }));
    assert_eq!(check(object, claim(113, true)), Err(Misuse::WrongSize { given: 113, size: 112 }));
    assert_eq!(check(object, claim(60, true)), Ok(()), "a shrunk object stays");
    assert_eq!(check(object, claim(56, true)), Err(Misuse::WrongSize { given: 56, size: 112 }));
    let wrong = Claim { size: None, align: 64, resized: false };
    let at_64 = (object as usize).is_multiple_of(64);
    assert_eq!(check(object, wrong).is_ok(), at_64);
    // By its place it could be aligned so, but of another size.
    assert_eq!(check(object, Claim { size: Some(100), ..wrong }), Err(Misuse::WrongAlign { given: 64 }));
    assert_eq!(check(object, Claim { align: 3, ..wrong }), Err(Misuse::WrongAlign { given: 3 }));
    // SAFETY: ours.
    unsafe { free(object, claim(101, false)).unwrap() };
}

#[test]
fn a_size_is_right_when_a_longer_span_served_it() {
    let claim = |size| Claim { size: Some(size), align: 1, resized: false };
    for (long, short) in [(180_000, 163_841), (300_000, 270_400), (1 << 20, (1 << 20) - 40_000)] {
        // SAFETY: ours.
        unsafe { free(front::malloc(long), claim(long)).unwrap() };
        let object = front::malloc(short);
        assert_eq!(check(object, claim(short)), Ok(()), "{short} after {long}");
        assert!(check(object, claim(short / 2)).is_err() && check(object, claim(long * 2)).is_err());
        // SAFETY: ours.
        unsafe { free(object, claim(short)).unwrap() };
    }
}

#[test]
fn zeroed_and_large_objects_have_whole_pages() {
    let claim = |size| Claim { size: Some(size), align: 1, resized: false };
    for size in [33_000, 41_000, 300_000, 1 << 20, 33 << 20] {
        for object in [front::calloc(size), front::malloc(size)] {
            assert_eq!(check(object, claim(size)), Ok(()), "{size}");
            assert!(check(object, claim(size / 2)).is_err() && check(object, claim(size * 2)).is_err());
            // SAFETY: ours.
            unsafe { free(object, claim(size)).unwrap() };
        }
    }
}

#[test]
fn a_size_is_right_if_a_larger_class_lent_the_object_and_wrong_by_more() {
    let claim = |size| Claim { size: Some(size), align: 1, resized: false };
    let object = front::malloc(23_000);
    assert!(check(object, claim(19_000)).is_err());
    LENT.note(size_class::class_of(19_000), size_class::class_of(23_000));
    assert_eq!((check(object, claim(19_000)), check(object, claim(23_000))), (Ok(()), Ok(())));
    assert!([1000, 11_000, 21_000, 30_000].iter().all(|size| check(object, claim(*size)).is_err()));
    assert!(check(object, Claim { align: 32, ..claim(19_000) }).is_err(), "no aligned object is lent");
    // SAFETY: ours.
    unsafe { free(object, claim(19_000)).unwrap() };
}
