use super::HEAPS;
use craton_lab::picture::colour;
use std::collections::BTreeSet;

#[test]
fn heaps_can_be_told_apart_in_the_picture() {
    let colours: BTreeSet<_> = HEAPS.iter().map(|(name, ..)| colour::of(name)).collect();
    assert_eq!(colours.len(), HEAPS.len());
}
