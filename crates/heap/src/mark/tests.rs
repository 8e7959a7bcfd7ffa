use super::*;
use std::collections::HashSet;
use std::vec::Vec;

const RANDOM: [u64; 2] = [0x1357_9bdf_0246_8acf, 0x0f1e_2d3c_4b5a_6978];

fn seal(class: usize) -> Seal {
    Key::new(RANDOM).seal(class)
}

#[test]
fn a_mark_belongs_to_one_place_class_and_key_and_is_never_zero() {
    let places: Vec<*mut u8> = (0..4096usize).map(|n| (0x7f12_3456_0000 + 16 * n) as *mut u8).collect();
    let mut seen = HashSet::new();
    for key in [Key::new(RANDOM), Key::new([RANDOM[0] ^ 1, RANDOM[1]]), Key::new([RANDOM[0], RANDOM[1] ^ 1])] {
        for class in [1, 2, 3, MARKS - 1] {
            assert!(places.iter().all(|place| {
                let mark = key.seal(class).of(*place);
                mark % 2 == 1 && seen.insert((*place, mark))
            }));
        }
        let of_one: HashSet<usize> = places.iter().map(|place| key.seal(1).of(*place)).collect();
        assert_eq!(of_one.len(), places.len());
    }
}

#[test]
fn secrets_of_classes_have_nothing_in_common() {
    let key = Key::new(RANDOM);
    let words: Vec<usize> = key.secrets.iter().copied().chain([key.factor]).collect();
    for (n, a) in words.iter().enumerate() {
        assert!(a % 2 == 1);
        assert!(words[..n].iter().all(|b| (12..=52).contains(&(a ^ b).count_ones())), "{a:x}");
    }
}

#[test]
fn one_known_mark_gives_no_other_by_sums_or_exclusive_sums() {
    let (a, b) = (0x7f12_3456_0040usize, 0x7f12_3456_0080usize);
    let (one, other) = (seal(3).of(a as *mut u8), seal(3).of(b as *mut u8));
    assert!(other != one && other != one ^ a ^ b && other != one.wrapping_add(b - a));
    assert_ne!((one as u128 * b as u128 / a as u128) as usize, other);
}

#[test]
fn marking_and_wiping_touch_the_second_word_alone() {
    let mut words = [1usize, 2, 3];
    let object = words.as_mut_ptr().cast::<u8>();
    // SAFETY: three words of the test's own.
    unsafe {
        assert!(!seal(1).is_on(object));
        seal(1).set(object);
        assert!(seal(1).is_on(object) && !seal(2).is_on(object));
        wipe(object);
        assert!(!seal(1).is_on(object));
    }
    assert_eq!(words, [1, 0, 3]);
}

#[test]
fn an_object_is_on_its_slab_or_on_its_way_and_free_in_both() {
    let (mut words, key) = ([0usize; 6], Key::new(RANDOM));
    let base = words.as_mut_ptr() as usize;
    let marks = ClassMarks {
        seal: key.seal(1),
        on_slab: key.on_slab,
        class: 1,
        map: PageMap::EMPTY,
        base,
        bytes: 48,
        clears: 0,
    };
    let other = ClassMarks { seal: key.seal(2), ..marks };
    let object = base as *mut u8;
    // SAFETY: the test's own words.
    let is_free =
        |marks: ClassMarks| unsafe { (marks.is_free(object), Seal::may_be_free(object, marks.seal.of(object))) };
    assert!(!marks.is_set(object) && !marks.take(object) && !marks.put(object));
    assert_eq!((is_free(marks), words), ((false, false), [0; 6]));
    marks.set_on_slab(object);
    assert!(is_free(marks) == (true, true) && !marks.is_set(object) && !marks.put(object));
    assert!(marks.take(object) && marks.is_set(object) && is_free(marks) == (true, true) && !marks.take(object));
    assert!(!other.put(object) && is_free(other) == (false, false));
    assert!(marks.put(object) && !marks.is_set(object) && is_free(marks) == (true, true));
    marks.wipe(object);
    assert_eq!((is_free(marks), words), ((false, false), [0; 6]));
    let is_here = |offset: usize| marks.is_here(base.wrapping_add(offset) as *mut u8);
    assert!(is_here(0) && is_here(32) && !is_here(33) && !is_here(48) && !is_here(usize::MAX));
    assert!(!ClassMarks { bytes: 0, ..marks }.is_here(base as *mut u8), "nothing is");
}

#[test]
fn a_copy_of_a_mark_marks_nothing() {
    let mut words = [[0usize; 2]; 2];
    let (from, to) = ((&raw mut words[0]).cast::<u8>(), (&raw mut words[1]).cast::<u8>());
    // SAFETY: the test's own words.
    unsafe {
        seal(1).set(from);
        to.copy_from_nonoverlapping(from, 16);
        assert!(seal(1).is_on(from) && !seal(1).is_on(to));
    }
}

#[test]
fn the_end_of_lists_bears_no_mark() {
    let end = craton_slab::end();
    // SAFETY: it is a static of two words.
    assert!((0..MARKS).all(|class| unsafe { !seal(class).is_on(end) && !Key::NONE.seal(class).is_on(end) }));
}
