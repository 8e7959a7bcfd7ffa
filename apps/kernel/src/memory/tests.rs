use super::{FRAME, Given, MOST, Map, Range, Wrong};

fn map(given: &[(u64, u64, bool)], taken: &[(u64, u64)]) -> Result<Vec<(u64, u64)>, Wrong> {
    let given =
        given.iter().map(|(begin, bytes, is_usable)| Given { begin: *begin, bytes: *bytes, is_usable: *is_usable });
    let taken: Vec<Range> = taken.iter().map(|(begin, end)| Range { begin: *begin, end: *end }).collect();
    Ok(Map::new(given, &taken)?.ranges().iter().map(|range| (range.begin, range.end)).collect())
}

#[test]
fn ranges_are_sorted_and_joined() {
    assert_eq!(
        map(&[(0x8000, 0x2000, true), (0x1000, 0x1000, true), (0x2000, 0x3000, true)], &[]),
        Ok(vec![(0x1000, 0x5000), (0x8000, 0xa000)])
    );
}

#[test]
fn parts_of_frames_are_left_out() {
    assert_eq!(map(&[(0x1001, 0x2fff, true)], &[]), Ok(vec![(0x2000, 0x4000)]));
    assert_eq!(map(&[(0x1001, 0xffe, true)], &[]), Ok(vec![]));
}

#[test]
fn an_overlap_with_another_kind_is_not_usable() {
    assert_eq!(
        map(&[(0x1000, 0x9000, true), (0x3800, 0x1000, false)], &[(0x7000, 0x7001)]),
        Ok(vec![(0x1000, 0x3000), (0x5000, 0x7000), (0x8000, 0xa000)])
    );
}

#[test]
fn two_usable_ranges_that_overlap_count_once() {
    assert_eq!(
        map(&[(0x1000, 0x4000, true), (0x2000, 0x5000, true), (0x2000, 0x1000, true)], &[]),
        Ok(vec![(0x1000, 0x7000)])
    );
}

#[test]
fn a_map_without_usable_memory_is_empty() {
    assert_eq!(map(&[], &[]), Ok(vec![]));
    assert_eq!(map(&[(0, 1 << 30, false)], &[]), Ok(vec![]));
    assert_eq!(map(&[(0x1000, 0, true)], &[]), Ok(vec![]));
}

#[test]
fn wrong_maps_are_refused() {
    assert_eq!(map(&[(u64::MAX - 1, 2, true)], &[]), Err(Wrong::Wraps(u64::MAX - 1)));
    let many: Vec<_> = (0..=MOST as u64).map(|i| (i * 2 * FRAME, FRAME, true)).collect();
    assert_eq!(map(&many, &[]), Err(Wrong::TooMany));
}
