extern crate std;
use super::*;
use crate::testing::{Counting, trackers};
use craton_base::Huge64K;
use std::vec::Vec;

const BYTES: usize = 8 * craton_base::PAGE_SIZE;
const UNSUPPORTED: Result<(), CollapseError> = Err(CollapseError::Unsupported);

fn used(pages: &[u32]) -> Trackers<Huge64K> {
    let mut t = trackers(pages.len() as u32);
    for (i, used) in pages.iter().enumerate() {
        t[i].reset();
        t[i].occupy(0, *used);
        t[i].place = Place::Filler;
    }
    t
}

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
    assert_eq!(find(&t, resident(0, None)), [], "buffers may not have been touched");
    t[0].dense = true;
    assert_eq!(find(&t, resident(0, None)), [Candidate::Dense(HugePageId(0))], "a system that does not tell");
    t[0].place = Place::Large;
    assert_eq!(find(&t, resident(0, None)), [], "may not have been touched");
}

#[test]
fn a_round_asks_the_system_a_few_times() {
    let (mut collapse, t) = (Collapse::new(), used(&[8; 40]));
    assert_eq!(round(&mut collapse, &t, &resident(BYTES, Some(0))).len() as u32, ROUND_ASKS);
}

fn ms(processor: u64, wall: u64) -> Took {
    Took { processor_ns: processor * 1_000_000, wall_ns: wall * 1_000_000 }
}

fn skipped(collapse: &mut Collapse) -> usize {
    (0..).take_while(|_| !collapse.is_due()).count()
}

fn collapses(collapse: &mut Collapse, took: Took) -> u32 {
    1 + (0..1000).take_while(|_| collapse.record(Ok(()), took)).count() as u32
}

#[test]
fn a_round_takes_20_ms_of_a_processor_and_100_while_nobody_else_wants_it() {
    let mut collapse = Collapse::new();
    assert!(collapse.is_due());
    assert_eq!(collapses(&mut collapse, ms(1, 1)), 100);
    assert_eq!(skipped(&mut collapse), 0);
    assert_eq!(collapses(&mut collapse, ms(1, 90)), 20, "it waited for others");
    assert_eq!(skipped(&mut collapse), 0);
    assert_eq!(collapses(&mut collapse, ms(2, 3)), 50, "and no longer does");
}

#[test]
fn time_by_the_clock_alone_slows_nothing_down() {
    let mut collapse = Collapse::new();
    for _ in 0..10 {
        assert!(collapse.is_due());
        assert_eq!(collapses(&mut collapse, ms(2, 90)), 10);
    }
}

#[test]
fn later_rounds_pay_for_a_collapse_that_takes_more_than_its_round_has() {
    let mut collapse = Collapse::new();
    assert!(collapse.is_due());
    assert!(!collapse.record(Ok(()), ms(90, 1000)));
    assert_eq!(skipped(&mut collapse), 3, "90 ms at 20 ms a round: the fourth has 10 ms left");
    assert_eq!(collapses(&mut collapse, ms(1, 9)), 10);
}

#[test]
fn rounds_without_frames_come_more_slowly_and_good_ones_faster_again() {
    let mut collapse = Collapse::new();
    let mut rests = |result| {
        collapse.record(result, Took::default());
        skipped(&mut collapse)
    };
    assert_eq!(rests(Ok(())), 0);
    assert_eq!([1, 2, 4].map(|_| rests(Err(CollapseError::NoMemory))), [1, 2, 4]);
    assert_eq!((rests(Ok(())), rests(Ok(()))), (0, 0), "they halve it");
    assert_eq!(rests(Err(CollapseError::NoMemory)), 2);
    let most = (0..20).map(|_| rests(Err(CollapseError::NoMemory))).max();
    assert_eq!(most, Some(MOST_REST as usize));
}

#[test]
fn busy_hugepages_are_passed_over_until_there_are_enough() {
    let mut collapse = Collapse::new();
    for _ in 0..3 {
        assert!(collapse.is_due());
        for error in [CollapseError::Busy, CollapseError::Again].into_iter().cycle().take(ENOUGH_BUSY as usize - 1) {
            assert!(collapse.record(Err(error), Took::default()));
            assert!(collapse.record(Ok(()), Took::default()));
        }
        assert!(!collapse.record(Err(CollapseError::Busy), Took::default()));
        assert_eq!(skipped(&mut collapse), 1, "one round, however often that happens");
        assert!(!collapse.record(Err(CollapseError::NoMemory), Took::default()));
        assert_eq!(skipped(&mut collapse), 1);
    }
}

#[test]
fn enough_refusals_in_a_row_end_it_until_the_mode_may_have_changed() {
    let mut collapse = Collapse::new();
    (1..ENOUGH_REFUSALS).for_each(|_| _ = collapse.record(UNSUPPORTED, Took::default()));
    collapse.record(Ok(()), Took::default());
    (1..ENOUGH_REFUSALS).for_each(|_| _ = collapse.record(UNSUPPORTED, Took::default()));
    assert!(!collapse.is_hopeless());
    collapse.record(UNSUPPORTED, Took::default());
    assert!(collapse.is_hopeless() && collapse.stats().unsupported == 15 && collapse.stats().collapsed == 1);
    collapse.hope();
    assert!(!collapse.is_hopeless());
}
