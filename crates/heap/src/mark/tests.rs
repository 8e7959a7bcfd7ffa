//! The mark of free objects.

use super::*;
use core::ptr::null_mut;

const KEY: usize = 0x1357_9bdf_0246_8acf;

#[test]
fn a_mark_belongs_to_one_place_and_key_and_is_never_zero() {
    let mut places = [[0usize; 2]; 4];
    let objects: [*mut u8; 4] = core::array::from_fn(|n| (&raw mut places[n]).cast());
    for object in objects {
        assert!(mark(KEY, object) != 0 && mark(KEY, object) != mark(KEY + 2, object));
        assert!(objects.iter().filter(|other| mark(KEY, **other) == mark(KEY, object)).count() == 1);
    }
}

#[test]
fn marking_and_wiping_touch_the_second_word_alone() {
    let mut words = [1usize, 2, 3];
    let object = words.as_mut_ptr().cast::<u8>();
    // SAFETY: three words of the test's own.
    unsafe {
        assert!(!is_marked(KEY, object));
        mark_free(KEY, object);
        assert!(is_marked(KEY, object) && !is_marked(KEY + 2, object));
        assert_eq!(wipe(object), object);
        assert!(!is_marked(KEY, object));
        assert_eq!(wipe(null_mut()), null_mut());
    }
    assert_eq!(words, [1, 0, 3]);
}

#[test]
fn a_copy_of_a_mark_marks_nothing() {
    let mut words = [[0usize; 2]; 2];
    let (from, to) = ((&raw mut words[0]).cast::<u8>(), (&raw mut words[1]).cast::<u8>());
    // SAFETY: the test's own words.
    unsafe {
        mark_free(KEY, from);
        to.copy_from_nonoverlapping(from, 16);
        assert!(is_marked(KEY, from) && !is_marked(KEY, to));
    }
}
