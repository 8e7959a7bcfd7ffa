extern crate std;
use crate::*;
use craton_base::*;

#[test]
fn a_slab_wastes_at_most_a_sixteenth_or_is_of_the_largest_size() {
    for object in (16..=32 << 10).step_by(16) {
        let g = Geometry::of(object);
        assert!(g.pages.0.is_power_of_two() && g.pages.0 <= 32);
        assert!(g.tail_waste() * 16 <= g.pages.bytes().0 || g.pages.0 == 32, "{g:?}");
        assert!(g.tail_waste() < object);
    }
    let g = Geometry::of(40 << 10);
    assert_eq!((g.pages, g.capacity, g.is_single()), (Pages(5), 1, true));
}
