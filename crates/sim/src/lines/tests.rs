use super::*;

fn line(word: u64) -> Line {
    [word; LINE_WORDS]
}

fn images(lines: &Lines) -> Vec<Vec<u64>> {
    let all = lines.images(100, &mut Rng::new(1));
    let mut words: Vec<Vec<u64>> = all.iter().map(|image| image.iter().map(|line| line[0]).collect()).collect();
    words.sort();
    words
}

#[test]
fn a_crash_leaves_any_prefix_of_each_lines_stores() {
    let mut lines = Lines::new(vec![line(0), line(10)]);
    assert_eq!(images(&lines), [[0, 10]]);
    lines.store(0, line(1));
    lines.store(0, line(2));
    lines.store(1, line(11));
    assert_eq!(images(&lines), [[0, 10], [0, 11], [1, 10], [1, 11], [2, 10], [2, 11]]);
    assert_eq!((lines.durable(), lines.seen()), (vec![line(0), line(10)], vec![line(2), line(11)]));
}

#[test]
fn a_flush_is_certain_after_a_fence_and_covers_what_was_stored_before_it() {
    let mut lines = Lines::new(vec![line(0)]);
    lines.store(0, line(1));
    lines.fence();
    assert_eq!(images(&lines), [[0], [1]], "nothing was flushed");
    lines.flush(0);
    lines.store(0, line(2));
    assert_eq!(images(&lines), [[0], [1], [2]], "nothing was fenced");
    lines.fence();
    assert_eq!(images(&lines), [[1], [2]]);
    lines.fence();
    assert_eq!(images(&lines), [[1], [2]], "the second store was never flushed");
}

#[test]
fn of_too_many_images_some_are_taken_with_the_oldest_and_the_newest() {
    let mut lines = Lines::new((0..10).map(line).collect());
    (0..10).for_each(|at| lines.store(at, line(100 + at as u64)));
    let some = lines.images(20, &mut Rng::new(1));
    assert_eq!(some.len(), 20);
    assert!(some.contains(&lines.durable()) && some.contains(&lines.seen()));
}
