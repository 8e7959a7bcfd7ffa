use super::*;

#[test]
fn every_size_has_the_smallest_class_that_holds_it() {
    for size in 0..=MAX_CLASSED {
        let class = class_of(size);
        assert!(size_of_class(class) >= size);
        assert!(class == 1 || size_of_class(class - 1) < size, "{size} could be in a smaller class than {class}");
    }
    assert_eq!((size_of_class(1), size_of_class(CLASSES)), (16, MAX_CLASSED));
}

#[test]
fn no_size_above_128_bytes_wastes_more_than_an_eighth_tails_and_whole_pages_counted_in() {
    for size in 129..=MAX_CLASSED {
        let g = geometry(class_of(size));
        let (taken, used) = (g.pages.bytes().0, g.capacity as usize * size);
        assert!((taken - used) * 8 <= taken, "{size} bytes in {g:?}");
    }
    // Below, the C ABI's alignment of 16 is the limit.
    assert!((1..=256).all(|size| size_of_class(class_of(size)) - size < 16));
}

#[test]
fn spans_are_no_longer_than_the_largest_class_and_hold_what_they_say() {
    for g in (1..=CLASSES).map(geometry) {
        assert!(g.object.is_multiple_of(16) && g.pages <= craton_base::Pages(32) && g.tail_waste() < g.object as usize);
        assert!(g.is_single() || g.object as usize <= MAX_CLASSED / 4, "{g:?}: few objects of so many bytes");
    }
}

#[test]
fn sizes_with_a_small_head_on_a_power_of_two_waste_little() {
    for size in [1024 + 8, 4096 + 16, 4096 + 272, 8192 + 8] {
        let held = size_of_class(class_of(size));
        assert!((held - size) * 15 <= size, "{size} in {held}");
    }
}

#[test]
fn aligned_classes_have_aligned_objects_everywhere_on_their_slabs() {
    for align in (0..=18).map(|s| 1usize << s) {
        for size in [0, 1, 16, 24, 100, 1000, 5000, 40_000, MAX_CLASSED] {
            let Some(class) = class_of_aligned(size, align) else {
                assert!(align > 8192, "size {size} at {align} has a class");
                continue;
            };
            let g = geometry(class);
            assert!(size_of_class(class) >= size && size_of_class(class).is_multiple_of(align));
            let slab_align = if g.is_single() { 8192 } else { g.align().bytes().0 };
            assert_eq!(slab_align % align, 0);
        }
    }
    assert_eq!(class_of_aligned(1, 1 << 19), None);
    assert_eq!(class_of_aligned(MAX_CLASSED + 1, 16), None);
}

#[test]
fn batches_are_between_one_and_64_objects() {
    assert_eq!((batch(1), batch(class_of(1024)), batch(CLASSES)), (64, 16, 1));
}
