use super::*;
use crate::testing::trackers;
use craton_base::{Huge2M, Huge64K, PageId, Pages};

#[test]
fn a_large_span_is_whole_hugepages_and_a_tail() {
    for (len, whole, tail, end) in [(8, 1, 0, 3), (9, 1, 1, 4), (23, 2, 7, 5), (3, 0, 3, 3)] {
        let large = Large::of::<Huge64K>(PageRange::new(PageId(16), Pages(len)));
        assert_eq!((large.first, large.whole, large.tail), (HugePageId(2), HugePages(whole), tail));
        assert_eq!((large.last(), large.end()), (HugePageId(2 + whole), HugePageId(end)));
    }
}

#[test]
fn a_span_begins_once_and_its_tail_leaves_room() {
    let mut t = trackers::<Huge64K>(4);
    assert!(occupy_whole(&mut t, HugePageId(0), HugePages(2), true));
    assert!(leave_tail(&mut t, HugePageId(2), 3, false));
    let starts: u32 = (0..3).map(|i| t[i].starts().len()).sum();
    assert_eq!((starts, t[1].continues(), t[2].continues()), (1, true, true));
    assert_eq!((t[2].donated, t[2].longest_free(), t[1].place), (true, 5, Place::Large));
    assert!(!occupy_whole(&mut t, HugePageId(1), HugePages(1), true), "it was handed out before");
}

#[test]
fn slack_is_worth_a_region_once_small_spans_could_not_fill_it() {
    let mut donation = Donation::<Huge2M>::NONE;
    let least = Regions::<Huge2M>::LEAST_SLACK;
    assert!(!donation.is_outweighed(least - 1) && donation.is_outweighed(least));
    (0..least / 128 + 1).for_each(|_| donation.count(0, 128));
    assert!(!donation.is_outweighed(least) && donation.is_outweighed(least + 128));
    donation.count(0, 129);
    assert!(donation.is_outweighed(least + 128), "more than half a hugepage is not small");
    donation.count(128, 1);
    assert!(donation.is_outweighed(least + 1));
}
