use super::*;

#[test]
fn the_first_and_the_newest_stay_and_the_room_is_bounded() {
    let mut history = History::new(16);
    (0..1000).for_each(|i| history.push(i, i));
    assert!(history.all().len() <= 16);
    assert_eq!(history.all()[0], (0, 0));
    let newest: Vec<u64> = history.all().iter().rev().take(8).map(|(at, _)| *at).collect();
    assert_eq!(newest, (992..1000).rev().collect::<Vec<_>>());
    assert!(history.all().windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn a_moment_is_the_last_one_before() {
    let mut history = History::new(16);
    assert!(history.at(5).is_none());
    [10, 20, 30].into_iter().for_each(|at| history.push(at, at));
    assert_eq!([5, 10, 19, 30, 99].map(|at| history.at(at).unwrap().1), [10, 10, 10, 30, 30]);
    assert_eq!(history.since(10).len(), 2);
    // The clock was set back.
    history.push(25, 25);
    assert_eq!(history.last(), Some(&(30, 25)));
}
