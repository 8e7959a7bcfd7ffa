use super::sealed::Fit;
use super::{FullestFirst, LongestFreeFirst};

#[test]
fn the_rank_puts_small_gaps_first_and_many_spans_before_few() {
    let rank = LongestFreeFirst::rank;
    assert!(rank(3, 1) < rank(4, 200));
    assert!(rank(4, 200) < rank(4, 3));
    assert!(rank(4, 3) < rank(4, 1));
    assert!(FullestFirst::rank(200, 200) < FullestFirst::rank(3, 1));
}
