extern crate std;
use crate::*;
use craton_base::Pages;

#[test]
fn a_slab_wastes_at_most_a_32nd_or_is_of_the_largest_size_and_holds_a_few_objects() {
    for object in (16..=32 << 10).step_by(16) {
        let g = Geometry::of(object);
        assert!(g.pages.0.is_power_of_two() && g.pages.0 <= 32 && g.align() == g.pages);
        assert!(g.tail_waste() * 32 <= g.pages.bytes().0 || g.pages.0 == 32, "{g:?}");
        assert!(g.tail_waste() < object && g.capacity >= 2);
    }
}

#[test]
fn parts_of_a_span_fill_it_and_are_aligned_to_a_power_of_two() {
    let g = Geometry::parts(7, 4);
    assert_eq!((g.object, g.align(), g.is_single()), (14 << 10, Pages(8), false));
    let g = Geometry::parts(4, 3);
    assert_eq!((g.object, g.align(), g.tail_waste()), (10_912, Pages(4), 32));
    let g = Geometry::parts(5, 1);
    assert_eq!((g.object, g.align(), g.is_single()), (40 << 10, Pages(1), true));
}
