use super::*;
use crate::frames::{Design, World};

fn loops(design: Design, blocks: usize) -> Result<Vec<Times>, String> {
    let world = World { frames: 1 << 14, order: 0, processors: 2 };
    let job = Loops { of: &Loop::ALL, order: 0, threads: 2, blocks, pairs: 100 };
    design.with(&world, job).expect("made")
}

#[test]
fn every_loop_times_what_it_does_on_every_design() {
    for design in Design::here() {
        let times = loops(design, 1000).expect("room for all");
        let which = |t: &Times| [t.ns_per_get, t.ns_per_put, t.ns_per_pair].map(|ns| ns.is_some_and(|ns| ns > 0.0));
        let measured: Vec<_> = times.iter().map(which).collect();
        assert_eq!(measured, [[true, true, false], [false, true, false], [false, false, true]], "{design:?}");
    }
}

#[test]
fn an_allocator_without_room_is_no_figure() {
    let error = loops(Design::Locked, 1 << 14).expect_err("twice as much as there is");
    assert!(error.contains("got no block"), "{error}");
}

#[test]
fn shuffled_parts_are_the_same_blocks() {
    let job = Loops { of: &[], order: 0, threads: 3, blocks: 100, pairs: 0 };
    let parts: Vec<Vec<usize>> = (0..3).map(|part| (part * 100..part * 100 + 100).collect()).collect();
    let shuffled = job.shuffle(parts.clone(), 0);
    assert!(shuffled.len() == 3 && shuffled != parts);
    let mut all = shuffled.concat();
    all.sort_unstable();
    assert_eq!(all, parts.concat());
}
