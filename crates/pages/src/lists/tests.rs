use super::*;
use crate::testing::trackers;
use craton_base::Huge2M;

#[test]
fn the_first_and_the_last_list_that_holds_something_are_found() {
    let (mut lists, mut t) = (Lists::EMPTY, trackers::<Huge2M>(8));
    let ranks = [3, 64, 700, LISTS - 1];
    for (i, rank) in ranks.into_iter().enumerate() {
        lists.push(&mut t, rank, HugePageId(i as u32));
    }
    assert_eq!((lists.first_in(0, LISTS), lists.first_in(4, LISTS), lists.first_in(4, 64)), (Some(3), Some(64), None));
    assert_eq!(
        (lists.last_before(LISTS), lists.last_before(700), lists.last_before(3)),
        (Some(LISTS - 1), Some(64), None)
    );
    for (i, rank) in ranks.into_iter().enumerate() {
        lists.remove(&mut t, rank, HugePageId(i as u32));
    }
    assert_eq!((lists.len(), lists.first_in(0, LISTS), lists.last_before(LISTS)), (0, None, None));
}

#[test]
fn a_list_is_last_in_first_out_and_loses_any_of_its_own() {
    let (mut lists, mut t) = (Lists::EMPTY, trackers::<Huge2M>(8));
    (0..4).for_each(|i| lists.push(&mut t, 9, HugePageId(i)));
    lists.remove(&mut t, 9, HugePageId(2));
    assert!(lists.walk(&t, 9).eq([3, 1, 0].map(HugePageId)));
    lists.remove(&mut t, 9, HugePageId(3));
    assert_eq!((lists.head(9), lists.len()), (Some(HugePageId(1)), 2));
}
