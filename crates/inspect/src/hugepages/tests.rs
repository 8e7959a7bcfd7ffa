use super::*;

#[test]
fn a_span_is_divided_at_the_ends_of_hugepages() {
    let mut seen = Vec::new();
    parts(250, 270, 256, |i, first, pages| seen.push((i, first, pages)));
    assert_eq!(seen, [(0, 250, 6), (1, 0, 256), (2, 0, 8)]);
}

#[test]
fn places_are_those_of_the_page_heap() {
    assert_eq!(Place::of(3, true), Place::Dense);
    assert_eq!(Place::of(3, false), Place::Sparse);
    assert_eq!(
        [0, 1, 2, 4, 5].map(|n| Place::of(n, true)),
        [Place::Unbacked, Place::Unbacked, Place::Cached, Place::Large, Place::Region]
    );
}
