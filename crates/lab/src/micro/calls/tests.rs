use super::*;

#[test]
fn the_empty_functions_hand_out_one_object_which_may_be_written() {
    let object = Empty::malloc(16);
    assert_eq!((object, object as usize % 4096), (Empty::calloc(MOST_BYTES), 0));
    // SAFETY: the object's size; this test alone writes it.
    unsafe { object.add(MOST_BYTES - 1).write(1) };
    // SAFETY: as above; what they returned.
    unsafe {
        assert_eq!(object.add(MOST_BYTES - 1).read(), 1);
        assert_eq!((Empty::realloc(object, 32), Empty::usable_size(object)), (object, object as usize));
        Empty::free(object);
    }
}

#[test]
fn malloc_comes_from_the_c_library_here() {
    assert!(malloc_from().contains("libc.so"), "{}", malloc_from());
}
