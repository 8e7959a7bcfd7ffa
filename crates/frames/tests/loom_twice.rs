//! Two frees of the same frames at once: exactly one succeeds, and the invariants hold.

use crate::common::Arrays;
use craton_base::atomic::model::check;
use craton_base::loom::thread;
use craton_frames::{Config, Error, Geometry, Init, Kind, Request, Sizes, Tiny, Zone};
use std::sync::Arc;

const FRAMES: usize = Tiny::TREE;

type World = Zone<'static, Tiny>;
type Block = (usize, u32);

fn request(processor: usize, order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor }
}

/// Returns blocks that are allocated, and those that both free, in order.
type Before = fn(&World) -> (Vec<Block>, Vec<Block>);
/// The first thread does this after its frees.
type Besides = fn(&World) -> Vec<Block>;

fn get(zone: &World, processor: usize, order: u32) -> Block {
    (zone.get(request(processor, order)).unwrap(), order)
}

fn run(claims: bool, before: Before, besides: Besides, processors: [usize; 2]) {
    check(2, move || {
        let arrays: &'static Arrays = Box::leak(Box::new(Arrays::new(Sizes::of::<Tiny>(FRAMES, 2))));
        let config = Config { claims, ..Config::new(2) };
        let zone: Arc<World> = Arc::new(arrays.zone(FRAMES, Init::Free, config).unwrap());
        let (all, blocks) = before(&zone);
        let free_all = move |zone: &World, blocks: &[Block], processor: usize| -> Vec<bool> {
            let put = |(frame, order): &Block| match zone.put(*frame, request(processor, *order)) {
                Ok(()) => true,
                Err(Error::NotAllocated { .. }) => false,
                Err(other) => panic!("{other:?}"),
            };
            blocks.iter().map(put).collect()
        };
        let other = {
            let (zone, blocks) = (Arc::clone(&zone), blocks.clone());
            thread::spawn(move || free_all(&zone, &blocks, processors[1]))
        };
        let mine = free_all(&zone, &blocks, processors[0]);
        let got = besides(&zone);
        let theirs = other.join().unwrap();
        zone.check().unwrap();
        let is_free_again = |block: &Block| got.iter().any(|of| of == block);
        for ((block, mine), theirs) in blocks.iter().zip(&mine).zip(&theirs) {
            // A block allocated again in between may be freed twice.
            assert!(mine ^ theirs || is_free_again(block), "{block:?}: {mine} and {theirs}");
        }
        let out: usize = all.iter().filter(|of| !blocks.contains(of)).chain(&got).map(|(_, order)| 1 << order).sum();
        let freed_again: usize = mine
            .iter()
            .zip(&theirs)
            .zip(&blocks)
            .map(|((a, b), (_, order))| if *a && *b { 1 << order } else { 0 })
            .sum();
        assert_eq!(zone.free_frames(), FRAMES - out + freed_again);
        zone.drain(0).unwrap();
        zone.drain(1).unwrap();
        zone.check().unwrap();
        assert_eq!(zone.free_frames(), FRAMES - out + freed_again);
    });
}

fn nothing(_: &World) -> Vec<Block> {
    Vec::new()
}

fn run_all(before: Before, besides: Besides) {
    for processors in [[0, 1], [1, 0], [1, 1]] {
        run(true, before, besides, processors);
    }
    run(false, before, besides, [0, 1]);
}

#[test]
fn a_frame_of_an_open_claim() {
    run_all(
        |zone| {
            let block = get(zone, 0, 0);
            (vec![block], vec![block])
        },
        nothing,
    );
}

#[test]
fn the_frames_of_an_exhausted_claim() {
    run_all(
        |zone| {
            let blocks = vec![get(zone, 0, 0), get(zone, 0, 0)];
            (blocks.clone(), blocks)
        },
        nothing,
    );
}

#[test]
fn the_frames_of_unclaimed_halves() {
    run_all(
        |zone| {
            let blocks: Vec<Block> = (0..6).map(|_| get(zone, 0, 0)).collect();
            zone.drain(0).unwrap();
            (blocks.clone(), blocks[..4].to_vec())
        },
        nothing,
    );
}

#[test]
fn frames_beside_a_free_one() {
    run_all(
        |zone| {
            let blocks: Vec<Block> = (0..4).map(|_| get(zone, 0, 0)).collect();
            zone.drain(0).unwrap();
            zone.put(blocks[1].0, request(1, 0)).unwrap();
            zone.drain(1).unwrap();
            (vec![blocks[0], blocks[2], blocks[3]], vec![blocks[0], blocks[2]])
        },
        nothing,
    );
}

#[test]
fn a_pair_of_frames_and_one_of_them() {
    run_all(
        |zone| {
            let block = get(zone, 0, 1);
            zone.drain(0).unwrap();
            (vec![block], vec![block])
        },
        nothing,
    );
}

#[test]
fn frames_of_wholes() {
    for order in [2, 3, 4, 5] {
        let before: Before = match order {
            2 => |zone| (vec![get(zone, 0, 2)], vec![(0, 2)]),
            3 => |zone| (vec![get(zone, 0, 3)], vec![(0, 3)]),
            4 => |zone| (vec![get(zone, 0, 4)], vec![(0, 4)]),
            _ => |zone| (vec![get(zone, 0, 5)], vec![(0, 5)]),
        };
        run_all(before, nothing);
    }
}

#[test]
fn a_part_of_a_whole() {
    run_all(
        |zone| {
            let (frame, _) = get(zone, 0, 4);
            ((0..16).map(|at| (frame + at, 0)).collect(), vec![(frame, 0), (frame + 1, 0)])
        },
        nothing,
    );
}

#[test]
fn more_than_a_row_allocated_by_pieces() {
    run_all(
        |zone| {
            let blocks: Vec<Block> = (0..4).map(|_| get(zone, 0, 0)).collect();
            let first = blocks[0].0;
            zone.drain(0).unwrap();
            (vec![(first, 2)], vec![(first, 2)])
        },
        nothing,
    );
}

#[test]
fn frames_while_claims_are_returned() {
    run_all(
        |zone| {
            let blocks: Vec<Block> = (0..3).map(|_| get(zone, 0, 0)).collect();
            (blocks.clone(), blocks[1..].to_vec())
        },
        |zone| {
            zone.drain(0).unwrap();
            Vec::new()
        },
    );
}

#[test]
fn frames_while_somebody_allocates() {
    run_all(
        |zone| {
            let blocks: Vec<Block> = (0..3).map(|_| get(zone, 0, 0)).collect();
            zone.drain(0).unwrap();
            (blocks.clone(), blocks[..2].to_vec())
        },
        |zone| vec![get(zone, 1, 0)],
    );
}
