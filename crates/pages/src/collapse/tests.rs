extern crate std;
use super::*;
use crate::testing::{Counting, trackers};
use craton_base::Huge64K;
use std::vec::Vec;

const BYTES: usize = 8 * craton_base::PAGE_SIZE;
const UNSUPPORTED: Result<(), CollapseError> = Err(CollapseError::Unsupported);

/// Trackers of hugepages with these numbers of used pages.
fn used(pages: &[u32]) -> Trackers<Huge64K> {
    let mut t = trackers(pages.len() as u32);
    for (i, used) in pages.iter().enumerate() {
        t[i].reset();
        t[i].occupy(0, *used);
        t[i].place = Place::Filler;
    }
    t
}

/// The finds of a round.
fn round(collapse: &mut Collapse, t: &Trackers<Huge64K>, floor: &Counting) -> Vec<Candidate> {
    let granted = HugePages(t.len() as u32);
    let mut search = Search::new(granted);
    core::iter::from_fn(|| collapse.next(&mut search, t, floor, granted)).collect()
}

fn resident(bytes: usize, huge: Option<usize>) -> Counting {
    let residency = Residency { resident_bytes: bytes, huge_bytes: huge };
    Counting { residency, ..Counting::new(0) }
}

#[test]
fn dense_hugepages_on_small_pages_are_found_once_a_round() {
    let mut t = used(&[7, 6, 8, 7, 7]);
    (t[3].intact, t[4].collapsing) = (true, true);
    let found = round(&mut Collapse::new(), &t, &resident(BYTES, Some(0)));
    assert_eq!(found, [Candidate::Dense(HugePageId(0)), Candidate::Dense(HugePageId(2))]);
}

#[test]
fn the_next_round_goes_on_where_the_last_one_stopped() {
    let t = used(&[8; 4]);
    let (mut collapse, floor) = (Collapse::new(), resident(BYTES, Some(0)));
    let mut one = || collapse.next(&mut Search::new(HugePages(4)), &t, &floor, HugePages(4));
    assert_eq!([one(), one(), one()], [0, 1, 2].map(|i| Some(Candidate::Dense(HugePageId(i)))));
}

#[test]
fn what_is_not_resident_is_left_alone_and_what_is_whole_is_named() {
    let mut t = used(&[8]);
    let find = |t: &Trackers<Huge64K>, floor| round(&mut Collapse::new(), t, &floor);
    assert_eq!(find(&t, resident(BYTES, Some(BYTES))), [Candidate::Whole(HugePageId(0))]);
    assert_eq!(find(&t, resident(BYTES / 2, Some(0))), []);
    assert_eq!(find(&t, resident(0, None)), [Candidate::Dense(HugePageId(0))], "a system that does not tell");
    t[0].place = Place::Large;
    assert_eq!(find(&t, resident(0, None)), [], "may not have been touched");
}

#[test]
fn a_round_asks_the_system_a_few_times() {
    let (mut collapse, t) = (Collapse::new(), used(&[8; 40]));
    assert_eq!(round(&mut collapse, &t, &resident(BYTES, Some(0))).len() as u32, ROUND_ASKS);
}

#[test]
fn bad_rounds_come_more_slowly_and_good_ones_faster_again() {
    let mut collapse = Collapse::new();
    let mut rests = |result, took_ns| {
        collapse.record(result, took_ns);
        (0..).take_while(|_| !collapse.is_due()).count()
    };
    assert_eq!(rests(Ok(()), 0), 0);
    assert_eq!([1, 2, 4].map(|_| rests(Err(CollapseError::NoMemory), 0)), [1, 2, 4]);
    assert_eq!((rests(Ok(()), SLOW_NS + 1), rests(Ok(()), SLOW_NS)), (8, 8));
    assert_eq!((rests(Ok(()), 0), rests(Ok(()), 0)), (4, 2));
    let most = (0..20).map(|_| rests(Err(CollapseError::Busy), 0)).max();
    assert_eq!(most, Some(MOST_REST as usize));
}

#[test]
fn enough_refusals_in_a_row_end_it_until_the_mode_may_have_changed() {
    let mut collapse = Collapse::new();
    (1..ENOUGH_REFUSALS).for_each(|_| _ = collapse.record(UNSUPPORTED, 0));
    collapse.record(Ok(()), 0);
    (1..ENOUGH_REFUSALS).for_each(|_| _ = collapse.record(UNSUPPORTED, 0));
    assert!(!collapse.is_hopeless());
    collapse.record(UNSUPPORTED, 0);
    assert!(collapse.is_hopeless() && collapse.stats().unsupported == 15 && collapse.stats().collapsed == 1);
    collapse.hope();
    assert!(!collapse.is_hopeless());
}
