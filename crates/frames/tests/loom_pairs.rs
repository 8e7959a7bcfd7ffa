//! Every pair of concurrent requests: no frame has two owners, none is lost, and the invariants
//! hold.
//!
//! The tiny geometry's orders 0 and 1 are within a row as 0 to 6, 2 and 3 quarters and halves of a
//! huge frame as 7 and 8, 4 a huge frame as 9, 5 two as 10.

use crate::common::Arrays;
use craton_base::atomic::model::check;
use craton_base::loom::thread;
use craton_frames::{Config, Error, Geometry, Init, Kind, Request, Sizes, Tiny, Zone};
use std::sync::Arc;

const FRAMES: usize = 2 * Tiny::TREE;

type World = Zone<'static, Tiny>;
type Held = Vec<(usize, u32)>;

/// The frames that are free at first.
#[derive(Clone, Copy, PartialEq)]
enum Room {
    All,
    ForOne,
    HugeFrame,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Get(u32),
    GetAt(u32),
    Put(u32),
    PutPart {
        of: u32,
        part: u32,
    },
    /// Of one tree, until the processor reserves it.
    PutFour,
    /// The other processor.
    Drain,
    /// Takes a huge frame offline, and brings it back.
    Reclaim,
}

const OPS: [Op; 21] = [
    Op::Get(0),
    Op::Get(1),
    Op::Get(2),
    Op::Get(3),
    Op::Get(4),
    Op::Get(5),
    Op::Put(0),
    Op::Put(1),
    Op::Put(2),
    Op::Put(3),
    Op::Put(4),
    Op::Put(5),
    Op::PutPart { of: 1, part: 0 },
    Op::PutPart { of: 2, part: 0 },
    Op::PutPart { of: 4, part: 0 },
    Op::PutPart { of: 4, part: 2 },
    Op::PutPart { of: 5, part: 4 },
    Op::GetAt(4),
    Op::PutFour,
    Op::Drain,
    Op::Reclaim,
];

fn request(processor: usize, order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor }
}

fn get(zone: &World, processor: usize, order: u32) -> Held {
    match zone.get(request(processor, order)) {
        Ok(frame) => vec![(frame, order)],
        Err(error) => {
            assert_eq!(error, Error::NoMemory);
            Held::new()
        }
    }
}

impl Op {
    fn prepare(self, zone: &World, processor: usize) -> Held {
        match self {
            Self::Put(order) | Self::PutPart { of: order, .. } => get(zone, processor, order),
            Self::PutFour => (0..4).flat_map(|_| get(zone, processor, 0)).collect(),
            Self::Drain => get(zone, 1 - processor, 0),
            _ => Held::new(),
        }
    }

    fn wants(self) -> Option<u32> {
        match self {
            Self::Get(order) | Self::GetAt(order) => Some(order),
            Self::Reclaim => Some(Tiny::HUGE_ORDER),
            _ => None,
        }
    }

    fn act(self, zone: &World, processor: usize, mut held: Held) -> Held {
        match self {
            Self::Get(order) => held.extend(get(zone, processor, order)),
            Self::GetAt(order) => {
                let place = (0..FRAMES).step_by(1 << order).find(|frame| zone.get_at(*frame, order).is_ok());
                held.extend(place.map(|frame| (frame, order)));
            }
            Self::Put(_) | Self::PutFour => {
                held.drain(..).for_each(|(frame, order)| zone.put(frame, request(processor, order)).unwrap());
            }
            Self::PutPart { part, .. } => {
                let Some((frame, of)) = held.pop() else { return held };
                zone.put(frame, request(processor, part)).unwrap();
                held.extend((frame + (1 << part)..frame + (1 << of)).map(|rest| (rest, 0)));
            }
            Self::Drain => zone.drain(1 - processor).unwrap(),
            Self::Reclaim => {
                if let Some(frame) = zone.reclaim(0) {
                    zone.online(frame, 1).unwrap();
                }
            }
        }
        held
    }
}

fn fill(zone: &World, but: Option<u32>) -> Held {
    let room = but.map(|order| zone.get(request(0, order)));
    let all = (0..=Tiny::MAX_ORDER).rev();
    let held: Held = all.flat_map(|order| std::iter::from_fn(move || get(zone, 0, order).pop())).collect();
    if let (Some(order), Some(Ok(frame))) = (but, room) {
        zone.put(frame, request(0, order)).unwrap();
    }
    held
}

fn run(ops: [Op; 2], claims: bool, room: Room, second: usize) {
    // Three unforced switches take a minute.
    let switches = if std::env::var_os("CRATON_FULL").is_some() { 3 } else { 2 };
    check(switches, move || {
        let arrays: &'static Arrays = Box::leak(Box::new(Arrays::new(Sizes::of::<Tiny>(FRAMES, 2))));
        let config = Config { claims, ..Config::new(2) };
        let zone: Arc<World> = Arc::new(arrays.zone(FRAMES, Init::Free, config).unwrap());
        let given = [ops[0].prepare(&zone, 0), ops[1].prepare(&zone, second)];
        let mut held = match room {
            Room::All => Held::new(),
            Room::ForOne => fill(&zone, ops[0].wants().max(ops[1].wants())),
            Room::HugeFrame => fill(&zone, Some(Tiny::HUGE_ORDER)),
        };
        let [mine, theirs] = given;
        let other = {
            let (zone, theirs) = (Arc::clone(&zone), theirs.clone());
            thread::spawn(move || ops[1].act(&zone, second, theirs))
        };
        held.extend(ops[0].act(&zone, 0, mine));
        held.extend(other.join().unwrap());
        zone.check().unwrap_or_else(|broken| panic!("{ops:?}: {broken:?}, {held:?}"));
        let mut owner = [false; FRAMES];
        for (frame, order) in &held {
            for at in *frame..frame + (1 << order) {
                assert!(!std::mem::replace(&mut owner[at], true), "{ops:?}: frame {at} is in two hands");
            }
        }
        let out = owner.iter().filter(|o| **o).count();
        assert_eq!(zone.free_frames(), FRAMES - out, "{ops:?}: {held:?}");
        held.into_iter().for_each(|(frame, order)| zone.put(frame, request(0, order)).unwrap());
        (0..2).for_each(|processor| zone.drain(processor).unwrap());
        zone.check().unwrap_or_else(|broken| panic!("{ops:?}: {broken:?} at the end"));
        assert_eq!((zone.free_frames(), zone.free_huge_frames()), (FRAMES, FRAMES / Tiny::HUGE), "{ops:?}");
    });
}

fn run_all(claims: bool, room: Room, second: usize) {
    for (n, one) in OPS.into_iter().enumerate() {
        OPS[n..].iter().for_each(|other| run([one, *other], claims, room, second));
    }
}

#[test]
fn in_an_empty_zone() {
    run_all(false, Room::All, 1);
}

#[test]
fn in_an_empty_zone_with_claims() {
    run_all(true, Room::All, 1);
}

#[test]
fn in_a_zone_with_room_for_one() {
    run_all(false, Room::ForOne, 1);
}

#[test]
fn in_a_zone_with_room_for_one_with_claims() {
    run_all(true, Room::ForOne, 1);
}

#[test]
fn in_a_zone_with_one_huge_frame() {
    run_all(false, Room::HugeFrame, 1);
}

#[test]
fn in_a_zone_with_one_huge_frame_with_claims() {
    run_all(true, Room::HugeFrame, 1);
}

#[test]
fn by_one_processor_in_an_empty_zone() {
    run_all(true, Room::All, 0);
}

#[test]
fn by_one_processor_in_a_zone_with_room_for_one() {
    run_all(true, Room::ForOne, 0);
}

#[test]
fn by_one_processor_in_a_zone_with_one_huge_frame() {
    run_all(true, Room::HugeFrame, 0);
}
