//! Concurrent requests: no frame has two owners, none is lost, and the invariants hold.

use crate::common::Arrays;
use craton_base::atomic::model::check;
use craton_base::loom::thread;
use craton_frames::{Config, Error, Geometry, Init, Kind, Paper, Request, Sizes, Tiny, Zone};
use std::sync::Arc;

const FRAMES: usize = 2 * Tiny::TREE;

struct World {
    arrays: Arrays,
    claims: bool,
}

type Held = Vec<(usize, u32)>;

fn request(processor: usize, order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor }
}

impl World {
    fn config(&self) -> Config {
        Config { claims: self.claims, ..Config::new(2) }
    }
}

type Hand<G = Tiny> = fn(&Zone<'_, G>, &[usize]) -> Held;
/// Returns the hands' frames, and those to keep.
type Before<G> = fn(&Zone<'_, G>) -> (Vec<usize>, Held);

fn run(claims: bool, before: Before<Tiny>, hands: [Hand; 2]) {
    run_in(claims, before, hands);
}

fn run_in<G: Geometry>(claims: bool, before: Before<G>, hands: [Hand<G>; 2]) {
    check(2, move || {
        let world: &'static World =
            Box::leak(Box::new(World { arrays: Arrays::new(Sizes::of::<G>(FRAMES, 2)), claims }));
        let zone: Arc<Zone<'static, G>> = Arc::new(world.arrays.zone(FRAMES, Init::Free, world.config()).unwrap());
        let (given, mut held) = before(&zone);
        let other = {
            let (zone, given) = (Arc::clone(&zone), given.clone());
            thread::spawn(move || hands[1](&zone, &given))
        };
        held.extend(hands[0](&zone, &given));
        held.extend(other.join().unwrap());
        zone.check().unwrap();
        let mut owner = [false; FRAMES];
        for (frame, order) in &held {
            for at in *frame..frame + (1 << order) {
                assert!(!std::mem::replace(&mut owner[at], true), "frame {at} is in two hands");
            }
        }
        let out = owner.iter().filter(|o| **o).count();
        assert_eq!(zone.free_frames(), FRAMES - out, "of {held:?}");
        for (frame, order) in held {
            zone.put(frame, request(0, order)).unwrap();
        }
        zone.drain(0).unwrap();
        zone.drain(1).unwrap();
        zone.check().unwrap();
        assert_eq!((zone.free_frames(), zone.free_huge_frames()), (FRAMES, FRAMES / G::HUGE));
    });
}

fn get<G: Geometry>(zone: &Zone<'_, G>, processor: usize, order: u32) -> Held {
    match zone.get(request(processor, order)) {
        Ok(frame) => vec![(frame, order)],
        Err(error) => {
            assert_eq!(error, Error::NoMemory);
            Held::new()
        }
    }
}

fn put<G: Geometry>(zone: &Zone<'_, G>, processor: usize, frame: usize, order: u32) -> Held {
    zone.put(frame, request(processor, order)).unwrap();
    Held::new()
}

fn nothing(_: &Zone<'_, Tiny>) -> (Vec<usize>, Held) {
    (Vec::new(), Held::new())
}

fn two_frames(zone: &Zone<'_, Tiny>) -> (Vec<usize>, Held) {
    ((0..2).map(|processor| zone.get(request(processor, 0)).unwrap()).collect(), Held::new())
}

#[test]
fn gets_of_single_frames() {
    for claims in [false, true] {
        run(claims, nothing, [|z, _| get(z, 0, 0), |z, _| get(z, 1, 0)]);
    }
}

#[test]
fn gets_that_share_a_processor() {
    run(true, nothing, [|z, _| get(z, 0, 0), |z, _| get(z, 0, 0)]);
}

#[test]
fn a_get_and_a_put() {
    for claims in [false, true] {
        run(
            claims,
            two_frames,
            [|z, _| get(z, 0, 0), |z, given| [put(z, 1, given[0], 0), vec![(given[1], 0)]].concat()],
        );
    }
}

#[test]
fn puts_of_neighbours() {
    for claims in [false, true] {
        run(claims, two_frames, [|z, given| put(z, 0, given[0], 0), |z, given| put(z, 0, given[1], 0)]);
    }
}

#[test]
fn a_part_of_a_huge_frame_and_a_single_frame() {
    for order in [2, 3] {
        let hand: Hand = if order == 2 { |z, _| get(z, 0, 2) } else { |z, _| get(z, 0, 3) };
        let before =
            |z: &Zone<'_, Tiny>| (vec![], vec![(z.get(request(1, 5)).unwrap(), 5), (z.get(request(1, 4)).unwrap(), 4)]);
        run(false, before, [hand, |z, _| get(z, 1, 0)]);
    }
}

#[test]
fn parts_of_a_huge_frame() {
    run(false, nothing, [|z, _| get(z, 0, 2), |z, _| get(z, 0, 3)]);
}

#[test]
fn huge_frames_and_single_ones() {
    for claims in [false, true] {
        let before =
            |z: &Zone<'_, Tiny>| (vec![], vec![(z.get(request(1, 5)).unwrap(), 5), (z.get(request(1, 4)).unwrap(), 4)]);
        run(claims, before, [|z, _| get(z, 0, 4), |z, _| get(z, 1, 0)]);
    }
}

#[test]
fn two_huge_frames_at_once_and_one() {
    run(false, nothing, [|z, _| get(z, 0, 5), |z, _| get(z, 1, 4)]);
}

fn one_huge(zone: &Zone<'_, Tiny>) -> (Vec<usize>, Held) {
    let frame = zone.get(request(0, 4)).unwrap();
    // For the final check.
    (vec![frame], (2..16).map(|at| (frame + at, 0)).collect())
}

#[test]
fn parts_of_a_huge_frame_come_back() {
    run(false, one_huge, [|z, given| put(z, 0, given[0], 0), |z, given| put(z, 1, given[0] + 1, 0)]);
}

#[test]
fn a_part_is_freed_while_a_search_runs() {
    let before = |z: &Zone<'_, Tiny>| {
        let (given, mut held) = one_huge(z);
        held.extend([(z.get(request(0, 5)).unwrap(), 5), (z.get(request(0, 4)).unwrap(), 4)]);
        held.push((given[0] + 1, 0));
        (given, held)
    };
    run(false, before, [|z, given| put(z, 0, given[0], 0), |z, _| get(z, 1, 0)]);
}

#[test]
fn a_processor_is_drained_while_it_allocates() {
    run(
        true,
        two_frames,
        [
            |z, given| [get(z, 0, 0), vec![(given[0], 0)]].concat(),
            |z, given| {
                z.drain(0).unwrap();
                vec![(given[1], 0)]
            },
        ],
    );
}

#[test]
fn the_last_frames_are_found_in_claims_of_others() {
    let before = |z: &Zone<'_, Tiny>| {
        let held = vec![(z.get(request(0, 5)).unwrap(), 5), (z.get(request(0, 4)).unwrap(), 4)];
        let held = held.into_iter().chain((0..14).map(|_| (z.get(request(0, 0)).unwrap(), 0))).collect();
        (vec![], held)
    };
    run(
        true,
        before,
        [
            |z, _| {
                let held = get(z, 0, 0);
                assert_eq!(held.len(), 1);
                held
            },
            |z, _| {
                let held = get(z, 1, 0);
                assert_eq!(held.len(), 1);
                held
            },
        ],
    );
}

/// Claims in both slots bar all other halves of the one huge frame.
#[test]
fn a_claim_that_bars_frames_ends_while_its_processor_allocates() {
    fn unmovable(zone: &Zone<'_, Tiny>) -> Held {
        vec![(zone.get(Request { kind: Kind::Unmovable, ..request(0, 0) }).unwrap(), 0)]
    }
    let before = |z: &Zone<'_, Tiny>| {
        let whole = [5, 4].map(|order| (z.get(request(0, order)).unwrap(), order));
        (vec![], [whole.to_vec(), get(z, 0, 0), unmovable(z)].concat())
    };
    let claims = |z: &Zone<'_, Tiny>, _: &[usize]| {
        let held = get(z, 1, 0);
        assert_eq!(held.len(), 1);
        held
    };
    run(true, before, [|z, _| unmovable(z), claims]);
}

/// Frames of a row, one after the other, so that the processor keeps them.
#[test]
fn frames_that_are_freed_together_and_a_get() {
    let before = |z: &Zone<'_, Tiny>| ((0..6).map(|_| z.get(request(0, 0)).unwrap()).collect(), Held::new());
    run(
        true,
        before,
        [
            |z, given| {
                given[..4].iter().for_each(|frame| z.put(*frame, request(0, 0)).unwrap());
                vec![(given[4], 0), (given[5], 0)]
            },
            |z, _| get(z, 1, 0),
        ],
    );
}

#[derive(Clone, Copy)]
struct TwoPairs;

impl Geometry for TwoPairs {
    const ROW_ORDER: u32 = 1;
    const CHILDREN: usize = 4;
    const SLOTS: usize = 1;
}

fn all_huge(zone: &Zone<'_, TwoPairs>) -> Vec<usize> {
    (0..4).map(|_| zone.get(request(0, 4)).unwrap()).collect()
}

/// The tree's first free notes it.
#[test]
fn huge_frames_of_a_full_tree_come_back_at_once() {
    let befores: [Before<TwoPairs>; 3] = [
        |z| (all_huge(z)[..2].to_vec(), vec![(32, 5)]),
        |z| (all_huge(z)[1..3].to_vec(), vec![(0, 4), (48, 4)]),
        |z| (vec![all_huge(z)[0], 48], vec![(16, 4), (32, 4)]),
    ];
    for before in befores {
        run_in(false, before, [|z, given| put(z, 0, given[0], 4), |z, given| put(z, 1, given[1], 4)]);
    }
}

/// One free sees an earlier huge frame free, and does not note the tree; that one is taken.
#[test]
fn a_huge_frame_is_freed_behind_an_allocated_one() {
    let before: Before<TwoPairs> = |z| {
        let all = all_huge(z);
        z.put(all[0], request(0, 4)).unwrap();
        (vec![all[2]], vec![(all[1], 4), (all[3], 4)])
    };
    run_in(false, before, [|z, given| put(z, 0, given[0], 4), |z, _| [get(z, 1, 4), get(z, 1, 4)].concat()]);
}

#[test]
fn a_tree_is_stolen_while_its_processor_uses_it() {
    let before: Before<Paper<Tiny>> = |z| {
        let held = (0..3).map(|_| (z.get(request(0, 4)).unwrap(), 4)).collect();
        (vec![z.get(request(0, 0)).unwrap()], held)
    };
    run_in(false, before, [|z, given| [get(z, 0, 1), put(z, 0, given[0], 0)].concat(), |z, _| get(z, 1, 2)]);
}

#[test]
fn a_tree_is_reserved_by_frees_and_by_a_get() {
    let before: Before<Paper<Tiny>> = |z| {
        let frames = (0..20).map(|_| z.get(request(1, 0)).unwrap()).collect::<Vec<_>>();
        z.drain(1).unwrap();
        frames[..3].iter().for_each(|frame| z.put(*frame, request(0, 0)).unwrap());
        (frames[3..4].to_vec(), frames[4..].iter().map(|frame| (*frame, 0)).collect())
    };
    run_in(false, before, [|z, given| put(z, 0, given[0], 0), |z, _| get(z, 1, 1)]);
}
