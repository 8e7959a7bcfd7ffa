use super::*;
use crate::testing::trackers;
use craton_base::Huge64K;

type Set = Ranges<{ Place::Unbacked as u8 }>;
const ALL: Range<u32> = 0..u32::MAX;

fn set(len: u32) -> (Set, Trackers<Huge64K>) {
    let (mut set, mut t) = (Set::EMPTY, trackers(len));
    set.set_end(HugePages(len));
    set.insert(&mut t, HugePageId(0), HugePages(len));
    (set, t)
}

#[test]
fn p4_ranges_join_whatever_the_order_they_come_in() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (mut set, mut t) = set(12);
        assert_eq!(set.alloc(&mut t, HugePages(12), HugePages(1), ALL), Some(HugePageId(0)));
        order.into_iter().for_each(|i| set.insert(&mut t, HugePageId(4 * i), HugePages(4)));
        assert_eq!((set.run_at_start(&t, HugePageId(0)), set.run_at_end(&t)), (HugePages(12), HugePages(12)));
        assert!(set.longest(&t).eq([(HugePageId(0), HugePages(12))]));
    }
}

#[test]
fn the_shortest_range_that_will_do_is_cut() {
    let (mut set, mut t) = set(40);
    // Free: 0..4, 5..11 and 12..40.
    [4, 11].into_iter().for_each(|i| set.alloc_at(&mut t, HugePageId(i), HugePages(1)));
    let mut alloc = |len, align, within| set.alloc(&mut t, HugePages(len), HugePages(align), within).map(|id| id.0);
    assert_eq!(alloc(5, 1, ALL), Some(5));
    assert_eq!(alloc(2, 2, ALL), Some(0));
    assert_eq!(alloc(4, 8, ALL), Some(16));
    assert_eq!(alloc(3, 1, 30..33), Some(30), "within a part of the region");
    assert_eq!(alloc(30, 1, ALL), None);
    assert_eq!(set.total(), HugePages(38 - 14));
}

#[test]
fn pages_with_memory_are_counted_as_ranges_come_and_go() {
    let (mut set, mut t) = set(4);
    assert_eq!(set.alloc(&mut t, HugePages(2), HugePages(1), ALL), Some(HugePageId(0)));
    t[1].reset();
    t[1].occupy(0, 3);
    set.insert(&mut t, HugePageId(0), HugePages(2));
    assert_eq!(set.backed(), Pages(3));
    set.alloc_end(&mut t, HugePageId(4), HugePages(3));
    assert_eq!((set.backed(), set.total(), set.run_before(&t, HugePageId(1))), (Pages(0), HugePages(1), HugePages(1)));
}
