use super::*;

const SECOND: u64 = 1_000_000_000;
const RATE: u64 = 100 * PAGE_SIZE as u64;

#[test]
fn without_a_rate_nothing_is_due() {
    let mut release = Release::STILL;
    assert_eq!((release.due(SECOND), release.due(1000 * SECOND)), (Pages(0), Pages(0)));
}

#[test]
fn what_was_not_there_is_due_for_a_second_at_most() {
    let mut release = Release::STILL;
    release.set_rate(RATE, 0);
    assert_eq!(release.due(SECOND / 2), Pages(50));
    assert_eq!(release.due(60 * SECOND), Pages(100));
}

#[test]
fn what_was_too_much_is_made_up_for() {
    let mut release = Release::STILL;
    release.set_rate(RATE, 0);
    assert_eq!(release.due(SECOND), Pages(100));
    release.paced(256);
    assert_eq!((release.due(2 * SECOND), release.due(3 * SECOND)), (Pages(0), Pages(44)));
}

#[test]
fn a_page_comes_due_however_low_the_rate_is() {
    let mut release = Release::STILL;
    release.set_rate(PAGE_SIZE as u64 / 10, 0);
    let due = (1..=22).filter(|second| {
        let due = release.due(second * SECOND).0;
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
fn surplus_is_what_demand_and_a_sixteenth_of_it_leave() {
    let surplus = |in_use, free, wanted| Release::surplus(Pages(in_use), Pages(free), Pages(wanted)).0;
    assert_eq!(surplus(1000, 500, 1600), 0);
    assert_eq!(surplus(1000, 500, 1280), 140);
    assert_eq!(surplus(1000, 500, 0), 500, "no more than is free");
    assert_eq!(surplus(1000, 500, u32::MAX), 0, "in the first minute all may be wanted");
}
