use super::*;
use core::ptr::without_provenance_mut;
use std::boxed::Box;
use std::vec::Vec;

fn object(n: usize) -> *mut u8 {
    without_provenance_mut(n * 16)
}

#[test]
fn an_object_waits_as_many_frees_as_there_are_places() {
    let waiting = Box::new(Waiting::EMPTY);
    for (class, places) in [(1, 32), (size_class::class_of(1024), 8), (size_class::class_of(100_000), 1)] {
        for n in 1..=places {
            assert!(waiting.exchange(class, object(n)).is_null());
        }
        assert_eq!(waiting.exchange(class, object(99)), object(1), "{places}");
    }
    assert!(waiting.exchange(2, object(1)).is_null(), "each class for itself");
}

#[test]
fn what_waits_can_be_drained_and_is_counted() {
    let waiting = Box::new(Waiting::EMPTY);
    waiting.exchange(1, object(1));
    waiting.exchange(4, object(2));
    assert_eq!(waiting.bytes(), 16 + 64);
    let mut all = Vec::new();
    waiting.drain(|class, object| all.push((class, object)));
    assert_eq!(all, [(1, object(1)), (4, object(2))]);
    assert_eq!(waiting.bytes(), 0);
}
