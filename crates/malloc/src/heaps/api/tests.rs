use super::*;
use crate::heaps::Place;
use core::ptr::null_mut;
use std::vec::Vec;

fn is_own(pointer: *mut u8) -> bool {
    // SAFETY: the tests keep it.
    unsafe { is_owned(pointer) }
}

fn heap(name: &[u8], limit: usize) -> usize {
    create(Options { name, limit, place: Place::Shared }).unwrap()
}

#[test]
fn objects_of_a_heap_are_its_own_and_go_with_it() {
    let (a, b) = (heap(b"api-a", 0), heap(b"api-b", 0));
    let objects: Vec<_> = [1, 100, 5000, 300 << 10].map(|size| alloc(a, size, 16, true).unwrap()).into();
    for object in &objects {
        // SAFETY: ours, and of `a`.
        unsafe {
            assert_eq!(object.read(), 0);
            assert_eq!(free(b, *object), Err(Misuse::OtherHeap));
        }
        assert!(usable_size(a, *object).unwrap() > 0 && usable_size(b, *object).is_err());
        assert!(is_own(*object));
    }
    assert_eq!(stats(a).unwrap().objects, 4);
    // SAFETY: ours.
    unsafe {
        let grown = realloc(a, objects[1], 4000).unwrap();
        assert!(usable_size(a, grown).unwrap() >= 4000);
        free(a, grown).unwrap();
    }
    assert_eq!(destroy(a), Ok(()));
    assert_eq!((destroy(a), stats(a).err()), (Err(Misuse::HeapDestroyed), Some(Misuse::HeapDestroyed)));
    assert_eq!(destroy(b), Ok(()));
}

#[test]
fn a_heap_of_plain_objects_knows_none_of_another() {
    let a = heap(b"api-plain", 0);
    let plain = front::malloc(100);
    assert!(!is_own(plain) && usable_size(a, plain).is_err() && !is_own(null_mut()));
    // SAFETY: ours; null is nothing.
    unsafe {
        assert!(free(a, plain).is_err());
        assert_eq!((free(a, null_mut()), usable_size(a, null_mut())), (Ok(()), Ok(0)));
        front::free(plain).unwrap();
    }
    destroy(a).unwrap();
}

#[test]
fn an_object_of_a_heap_goes_back_by_plain_free_and_grows_by_plain_realloc_within_it() {
    let a = heap(b"api-free", 0);
    let object = alloc(a, 100, 16, false).unwrap();
    // SAFETY: ours.
    unsafe {
        object.write_bytes(7, 100);
        let grown = front::realloc(object, 50_000).unwrap();
        assert!(is_own(grown) && grown.add(99).read() == 7);
        front::free(grown).unwrap();
    }
    assert_eq!(stats(a).unwrap().objects, 0);
    destroy(a).unwrap();
}

#[test]
fn a_heap_at_its_limit_refuses_and_leaves_errno_alone_otherwise() {
    process::set_errno(5);
    let a = heap(b"api-limit", 64 << 10);
    let first = alloc(a, 30 << 10, 16, false).unwrap();
    assert_eq!((first.is_null(), process::errno()), (false, 5));
    assert!(alloc(a, 1 << 20, 16, false).unwrap().is_null());
    assert_eq!(process::errno(), process::ENOMEM);
    destroy(a).unwrap();
}

#[test]
fn a_bad_name_or_handle_is_refused() {
    assert_eq!(create(Options { name: b"a\"b", limit: 0, place: Place::Shared }), Err(Refused::Name));
    assert_eq!(alloc(12345, 1, 16, false), Err(Misuse::NoHeap));
    assert_eq!(destroy(0), Err(Misuse::NoHeap));
}
