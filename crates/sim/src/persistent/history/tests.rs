use super::*;
use std::thread;

fn line(first: u64) -> Line {
    std::array::from_fn(|word| if word == 0 { first } else { 0 })
}

#[test]
fn a_crash_leaves_a_prefix_of_a_lines_stores() {
    let mut history = History::new(line(0));
    (1..4).for_each(|value| history.store(0, value));
    assert_eq!(history.contents(), [line(0), line(1), line(2), line(3)]);
    assert_eq!(history.new_contents(), [line(3)]);
}

#[test]
fn a_crash_leaves_any_words_of_a_line_store() {
    let mut history = History::new(line(9));
    let stored = [1, 0, 3, 0, 0, 0, 0, 8];
    history.store_line(thread::current().id(), stored);
    let contents = history.contents();
    assert_eq!(contents.len(), 8, "three words differ");
    assert!(contents.contains(&[9, 0, 3, 0, 0, 0, 0, 8]));
    assert_eq!(history.new_contents().len(), 7);
    assert_eq!(history.seen(), stored);
    history.store(1, 5);
    assert_eq!(history.contents().len(), 9);
}

#[test]
fn a_repeated_content_is_listed_once_and_is_not_new() {
    let mut history = History::new(line(0));
    [1, 0, 1].into_iter().for_each(|value| history.store(0, value));
    assert_eq!(history.contents(), [line(0), line(1)]);
    assert!(history.new_contents().is_empty());
}

#[test]
fn a_fence_covers_its_own_threads_flushes() {
    let (mine, other) = (thread::current().id(), thread::spawn(|| thread::current().id()).join().unwrap());
    let mut history = History::new(line(0));
    history.store(0, 1);
    assert!(history.flush(mine));
    assert!(!history.flush(other), "nothing new");
    history.store(0, 2);
    assert!(history.flush(other));
    history.store(0, 3);
    assert_eq!(history.fence(mine), line(1));
    assert_eq!(history.fence(mine), line(1), "nothing flushed since");
    assert_eq!(history.fence(other), line(2));
    assert_eq!(history.contents(), [line(2), line(3)]);
}
