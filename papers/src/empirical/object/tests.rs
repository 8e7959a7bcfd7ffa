use super::*;

#[test]
fn places_touch_each_line_or_small_page_and_both_ends() {
    for size in (8..200).chain([4095, 4096, 4097, 12_288, 100_001]) {
        let all: Vec<usize> = places(size).collect();
        let step = if size <= SMALL_PAGE { LINE } else { SMALL_PAGE };
        assert_eq!(all[0], 0, "{size}");
        assert_eq!(all.last(), Some(&(size - WORD)), "{size}");
        for start in (0..size).step_by(step) {
            let end = (start + step).min(size);
            assert!(all.iter().any(|at| *at < end && at + WORD > start), "{size}: nothing in {start}..{end}");
        }
    }
}

#[test]
fn the_sum_depends_on_size_and_tag_and_on_nothing_else() {
    let sum = |size, tag| Object::new(size, tag).end(size);
    for size in [1, 7, 8, 9, 64, 5000] {
        assert_eq!(sum(size, 7), sum(size, 7));
        assert_ne!(sum(size, 7), sum(size, 8));
        assert_ne!(sum(size, 7), sum(size + 1, 7));
    }
}

#[test]
fn a_byte_that_somebody_else_wrote_changes_the_sum() {
    for size in [5u64, 8, 100, 9000] {
        let object = Object::new(size, 7);
        // SAFETY: a live object's last byte.
        unsafe {
            let last = object.0.add(size as usize - 1);
            last.write(!last.read());
        }
        assert_ne!(object.end(size), Object::new(size, 7).end(size), "{size}");
    }
}
