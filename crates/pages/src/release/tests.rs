extern crate std;
use super::*;

const SECOND: u64 = 1_000_000_000;
const ALL: Pages = Pages(1 << 20);
const RATE: u64 = 100 * PAGE_SIZE as u64;

#[test]
fn without_a_rate_nothing_is_due() {
    let mut release = Release::STILL;
    assert_eq!((release.due(SECOND, ALL), release.due(1000 * SECOND, ALL)), (Pages(0), Pages(0)));
}

#[test]
fn what_was_not_there_is_due_for_a_second_at_most() {
    let mut release = Release::STILL;
    release.set_rate(RATE, 0);
    assert_eq!(release.due(SECOND / 2, ALL), Pages(50));
    assert_eq!(release.due(60 * SECOND, ALL), Pages(100));
}

#[test]
fn what_was_too_much_is_made_up_for() {
    let mut release = Release::STILL;
    release.set_rate(RATE, 0);
    assert_eq!(release.due(SECOND, ALL), Pages(100));
    release.paced(256);
    assert_eq!((release.due(2 * SECOND, ALL), release.due(3 * SECOND, ALL)), (Pages(0), Pages(44)));
}

#[test]
fn a_page_comes_due_however_low_the_rate_is() {
    let mut release = Release::STILL;
    release.set_rate(PAGE_SIZE as u64 / 10, 0);
    let due = (1..=22).filter(|second| {
        let due = release.due(second * SECOND, ALL).0;
        release.paced(due.into());
        due > 0
    });
    assert_eq!(due.count(), 2);
}

#[test]
fn a_new_rate_keeps_the_total() {
    let mut release = Release::STILL;
    assert_eq!((release.count(7), release.count(5)), (7, 5));
    release.set_rate(RATE, 5);
    assert_eq!(release.total(), 12);
}

#[test]
fn surplus_is_what_demand_and_a_32nd_of_it_leave() {
    let surplus = |in_use, free, wanted| Release::surplus(Pages(in_use), Pages(free), Pages(wanted)).0;
    assert_eq!(surplus(1000, 500, 1600), 0);
    assert_eq!(surplus(1000, 500, 1280), 180);
    assert_eq!(surplus(1000, 500, 0), 500, "no more than is free");
    assert_eq!(surplus(1000, 500, u32::MAX), 0, "no overflow");
}

fn auto(mut surplus: u32) -> std::vec::Vec<u32> {
    let mut release = Release::STILL;
    release.set_rate(AUTO_RATE, 0);
    let second = |second| {
        let pages = release.due(second * SECOND, Pages(surplus)).0.min(surplus);
        release.paced(pages.into());
        surplus -= pages;
        (pages > 0).then_some(pages)
    };
    (1..).map_while(second).collect()
}

#[test]
fn at_the_rate_that_follows_the_surplus_all_is_gone_in_4_seconds() {
    assert_eq!(auto(4 << 20), [1 << 20; 4], "a quarter of what there was at first, not of what is left");
    assert_eq!(auto(1 << 15), [8192; 4]);
    assert_eq!(auto(1 << 14), [8192; 2], "at least 64 MiB");
    assert_eq!(auto(100), [100]);
}

#[test]
fn the_rate_that_follows_the_surplus_begins_anew_when_there_is_none() {
    let mut release = Release::STILL;
    release.set_rate(AUTO_RATE, 0);
    assert_eq!(release.due(SECOND, Pages(1 << 20)), Pages(1 << 18));
    release.paced(1 << 18);
    assert_eq!(release.due(2 * SECOND, Pages(1 << 17)), Pages(1 << 18), "it holds on");
    release.paced(1 << 17);
    release.due(3 * SECOND, Pages(0));
    assert_eq!(release.due(100 * SECOND, Pages(1 << 16)), Pages(1 << 14));
    release.set_rate(RATE, 100 * SECOND);
    assert_eq!(release.due(101 * SECOND, Pages(1 << 20)), Pages(100), "a rate that is set is exact");
}
