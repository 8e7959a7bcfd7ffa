use super::*;

#[test]
fn a_file_is_due_when_its_time_has_come_and_then_a_period_later() {
    let due = Due::new();
    assert!(!due.is_due(1_000, || unreachable!("nothing is asked for")));
    due.set_every(100, 1_000);
    let at = |now| due.is_due(now, || unreachable!("growth is not asked for"));
    assert_eq!([1_099, 1_100, 1_150, 1_350, 1_400, 1_450].map(at), [false, true, false, true, false, true]);
    due.set_every(0, 2_000);
    assert!(!at(9_000));
}

#[test]
fn a_file_is_due_at_each_new_high_by_the_growth() {
    let due = Due::new();
    due.set_growth(100);
    let at = |live| due.is_due(0, || live);
    assert_eq!([99, 100, 150, 199, 260, 20, 340, 360].map(at), [false, true, false, false, true, false, false, true]);
}
