use super::*;

fn with(n: u32) -> WorkingSet {
    let mut set = WorkingSet::EMPTY;
    (0..n).for_each(|_| set.add());
    set
}

#[test]
fn nothing_is_idle_before_a_whole_interval_has_gone_by() {
    let mut set = with(5);
    assert_eq!(set.idle(), 0);
    set.turn();
    assert_eq!(set.idle(), 0, "they came in the interval that has ended");
    set.turn();
    assert_eq!(set.idle(), 5);
}

#[test]
fn what_was_needed_for_a_moment_is_not_idle_though_it_is_back() {
    let mut set = with(5);
    set.turn();
    (0..3).for_each(|_| set.remove());
    (0..3).for_each(|_| set.add());
    set.turn();
    assert_eq!(set.idle(), 2);
    set.remove();
    assert_eq!((set.idle(), set.count()), (2, 4), "the one that went was of those that were needed");
    (0..3).for_each(|_| set.remove());
    assert_eq!((set.idle(), set.count()), (1, 1));
    set.drop_idle();
    assert_eq!((set.idle(), set.count()), (0, 0));
}

#[test]
fn idle_ones_that_go_leave_the_needed_ones_alone() {
    let mut set = with(5);
    set.turn();
    (0..3).for_each(|_| set.remove());
    (0..3).for_each(|_| set.add());
    set.turn();
    (0..2).for_each(|_| set.drop_idle());
    assert_eq!((set.idle(), set.count()), (0, 3));
}

fn keep(set: &mut WorkingSet) -> bool {
    let wants = set.wants();
    if wants {
        set.add();
    }
    wants
}

/// Returns how many had to come from elsewhere.
fn swing(set: &mut WorkingSet, n: usize) -> usize {
    let kept = (0..n).filter(|_| keep(set)).count();
    (0..kept).for_each(|_| set.remove());
    (kept..n).for_each(|_| set.missed());
    n - kept
}

#[test]
fn who_may_keep_none_never_does() {
    let mut set = WorkingSet::EMPTY;
    assert_eq!((swing(&mut set, 3), swing(&mut set, 3), set.count()), (3, 3, 0));
}

#[test]
fn slabs_freed_and_missed_are_kept_the_next_time() {
    let mut set = WorkingSet::up_to(10);
    assert_eq!(swing(&mut set, 4), 4);
    assert_eq!(swing(&mut set, 4), 0);
    assert_eq!(swing(&mut set, 20), 16, "four as before");
    assert_eq!(swing(&mut set, 20), 10, "no more than the most");
}

#[test]
fn who_only_frees_or_only_grows_keeps_nothing() {
    let mut set = WorkingSet::up_to(10);
    (0..5).for_each(|_| set.missed());
    assert_eq!((0..5).filter(|_| keep(&mut set)).count(), 0);
}

#[test]
fn while_it_is_closed_nothing_more_is_kept() {
    let mut set = WorkingSet::up_to(10);
    swing(&mut set, 4);
    set.set_closed(true);
    assert_eq!(swing(&mut set, 4), 4);
    set.set_closed(false);
    assert_eq!(swing(&mut set, 4), 0);
}

#[test]
fn slabs_unused_between_two_checks_are_freed_and_not_kept_again() {
    let mut set = WorkingSet::up_to(10);
    let look = |set: &mut WorkingSet| {
        set.turn();
        set.idle()
    };
    swing(&mut set, 6);
    assert_eq!((0..6).filter(|_| keep(&mut set)).count(), 6);
    assert_eq!(look(&mut set), 0, "they came since the last look");
    (0..2).for_each(|_| set.remove());
    (0..2).for_each(|_| assert!(keep(&mut set)));
    assert_eq!(look(&mut set), 4, "two were needed");
    (0..4).for_each(|_| set.drop_idle());
    assert_eq!((set.count(), keep(&mut set), look(&mut set)), (2, false, 2));
    (0..2).for_each(|_| set.remove());
    (0..2).for_each(|_| set.missed());
    assert_eq!((0..6).filter(|_| keep(&mut set)).count(), 4, "two of those that went were missed");
}
