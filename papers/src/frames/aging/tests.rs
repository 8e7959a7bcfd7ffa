use super::*;
use crate::frames::{Design, World};

fn aged(design: Design, course: Course, turns: usize, tells: bool) -> Vec<State> {
    let frames = 1 << 16;
    let job = Aging { course, frames, threads: 2, turns, tells };
    let world = World { frames, order: 0, processors: 2 };
    design.with(&world, job).expect("made").expect("room for all")
}

#[test]
fn the_cost_is_what_is_in_the_emptiest_huge_frames() {
    let job = Aging { course: Course::Plain, frames: 4 * HUGE + 1, threads: 1, turns: 0, tells: false };
    let blocks = |huge: usize, count: usize, stays| {
        (0..count).map(move |at| Block { frame: (huge * HUGE + at) as u32, order: 0, stays })
    };
    let others: Vec<Block> = blocks(0, 500, false).chain(blocks(1, 30, false)).chain(blocks(3, 7, false)).collect();
    let state = job.state(&[blocks(0, 1, true).collect(), others]);
    // 538 of 2049 frames are allocated: one huge frame is free, and the next has seven frames.
    let expected = State { free_huge: 1, possible_huge: 2, cost_frames: 7, pinned_huge: 1, ..State::default() };
    assert_eq!(state, expected);
}

#[test]
fn the_first_state_is_the_papers_and_every_course_keeps_as_much_allocated() {
    for design in [Design::Craton, Design::Strict, Design::Buddy] {
        let states = aged(design, Course::Plain, 5, false);
        let [first, .., last] = &states[..] else { panic!("six states") };
        // A tenth was never used.
        assert!((12..=14).contains(&first.free_huge), "{design:?}: {first:?}");
        assert_eq!((first.possible_huge, last.possible_huge), (70, 70));
        assert!(last.cost_frames < first.cost_frames && last.pinned_huge == 0);
        assert!(last.ns_per_get > 0.0 && last.ns_per_put > 0.0 && last.turn == 5);
    }
}

#[test]
fn mixed_blocks_keep_their_orders_and_what_stays_is_kept_apart_when_it_is_told() {
    for design in [Design::Craton, Design::Buddy] {
        let states = aged(design, Course::Mixed, 8, true);
        let [first, .., last] = &states[..] else { panic!("nine states") };
        assert_eq!(first.possible_huge, last.possible_huge, "{design:?}");
        assert!(first.pinned_huge > 0);
    }
    let pinned = |tells| aged(Design::Craton, Course::Mixed, 0, tells)[0].pinned_huge;
    assert!(pinned(true) < pinned(false));
}
