//! Every short sequence of requests, in one tree of two huge frames.

use crate::common::Arrays;
use craton_frames::{Config, Error, Geometry, Init, Kind, Paper, Request, Sizes, Tiny, Zone};

const FRAMES: usize = Tiny::TREE - 3;
/// One more with `CRATON_FULL=1`.
const LENGTH: usize = 6;

#[derive(Clone, Copy, Debug)]
enum Step {
    Get(u32),
    PutFirst,
    PutLast,
    /// Of the last.
    PutPart,
    Drain,
}

const STEPS: [Step; 10] = [
    Step::Get(0),
    Step::Get(1),
    Step::Get(2),
    Step::Get(3),
    Step::Get(4),
    Step::Get(5),
    Step::PutFirst,
    Step::PutLast,
    Step::PutPart,
    Step::Drain,
];

fn request(order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor: 0 }
}

struct Walk<'a, G> {
    zone: Zone<'a, G>,
    allocated: [bool; FRAMES],
    held: Vec<(usize, u32)>,
}

impl<G: Geometry> Walk<'_, G> {
    fn put(&mut self, frame: usize, order: u32) {
        self.zone.put(frame, request(order)).unwrap();
        self.allocated[frame..frame + (1 << order)].fill(false);
        assert_eq!(self.zone.put(frame, request(order)), Err(Error::NotAllocated { frame, order }));
    }

    /// Returns whether it did anything.
    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Get(order) => {
                let room = self.allocated.chunks_exact(1 << order).any(|group| group.iter().all(|a| !*a));
                let got = self.zone.get(request(order));
                assert_eq!(got.is_ok(), room, "{got:?}");
                let Ok(frame) = got else { return false };
                let group = &mut self.allocated[frame..frame + (1 << order)];
                assert!(frame % (1 << order) == 0 && group.iter().all(|a| !*a));
                group.fill(true);
                self.held.push((frame, order));
            }
            Step::PutFirst if self.held.len() > 1 => {
                let (frame, order) = self.held.remove(0);
                self.put(frame, order);
            }
            Step::PutLast if !self.held.is_empty() => {
                let (frame, order) = self.held.pop().unwrap();
                self.put(frame, order);
            }
            Step::PutPart if self.held.last().is_some_and(|(_, order)| *order > 0) => {
                let (frame, order) = self.held.pop().unwrap();
                self.held.push((frame, order - 1));
                self.put(frame + (1 << (order - 1)), order - 1);
            }
            Step::Drain => self.zone.drain(0).unwrap(),
            _ => return false,
        }
        self.zone.check().unwrap();
        assert_eq!(self.zone.free_frames(), self.allocated.iter().filter(|a| !**a).count());
        true
    }
}

fn walk<G: Geometry>(arrays: &Arrays, init: Init, claims: bool, length: usize, sequence: &mut Vec<Step>) -> u64 {
    let zone: Zone<'_, G> = arrays.zone(FRAMES, init, Config { claims, ..Config::new(1) }).unwrap();
    let is_allocated = init == Init::Allocated;
    let held = if is_allocated { vec![(0, 4), (16, 3), (24, 2), (28, 0)] } else { vec![] };
    let mut walk = Walk { zone, allocated: [is_allocated; FRAMES], held };
    // A step that did nothing was tried alone already.
    if !sequence.iter().all(|step| walk.step(*step)) || sequence.len() == length {
        return 1;
    }
    let mut walks = 1;
    for step in STEPS {
        sequence.push(step);
        walks += self::walk::<G>(arrays, init, claims, length, sequence);
        sequence.pop();
    }
    walks
}

#[test]
fn every_sequence_of_requests_keeps_the_invariants() {
    walk_all::<Tiny>();
}

#[test]
fn every_sequence_keeps_them_where_trees_are_searched_as_in_the_paper() {
    walk_all::<Paper<Tiny>>();
}

fn walk_all<G: Geometry>() {
    let arrays = Arrays::new(Sizes::of::<G>(FRAMES, 1));
    let length = LENGTH + usize::from(std::env::var_os("CRATON_FULL").is_some());
    for init in [Init::Free, Init::Allocated] {
        for claims in [false, true] {
            let walks = walk::<G>(&arrays, init, claims, length, &mut Vec::new());
            assert!(walks > 20_000, "{walks}");
        }
    }
}
