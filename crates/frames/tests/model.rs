//! A zone against a list of which frames are allocated.

use crate::common::Arrays;
use craton_frames::{Config, Error, Geometry, Init, Kind, Paper, Request, Sizes, Standard, Thresholds, Tiny, Zone};
use craton_sim::Rng;

const KINDS: [Kind; 3] = [Kind::Movable, Kind::Unmovable, Kind::Huge];

struct Model<'a, G> {
    zone: Zone<'a, G>,
    allocated: Vec<bool>,
    held: Vec<(usize, u32)>,
}

impl<G: Geometry> Model<'_, G> {
    fn get(&mut self, request: Request) {
        let order = request.order;
        match self.zone.get(request) {
            Ok(frame) => {
                assert_eq!(frame % (1 << order), 0);
                let range = &mut self.allocated[frame..frame + (1 << order)];
                assert!(range.iter().all(|a| !*a), "frame {frame} of order {order} was allocated already");
                range.fill(true);
                self.held.push((frame, order));
            }
            Err(error) => {
                assert_eq!(error, Error::NoMemory);
                let room = self.allocated.chunks_exact(1 << order).position(|group| group.iter().all(|a| !*a));
                assert_eq!(room, None, "there is room for order {order}");
            }
        }
    }

    fn put(&mut self, frame: usize, request: Request) {
        let range = frame..frame + (1 << request.order);
        let is_right = self.allocated[range.clone()].iter().all(|a| *a);
        match self.zone.put(frame, request) {
            Ok(()) => {
                assert!(is_right, "frame {frame} of order {} was free", request.order);
                self.allocated[range].fill(false);
            }
            Err(error) => {
                assert_eq!(error, Error::NotAllocated { frame, order: request.order });
                assert!(!is_right, "frame {frame} of order {} was allocated", request.order);
            }
        }
    }

    fn check(&self) {
        self.zone.check().unwrap();
        assert_eq!(self.zone.free_frames(), self.allocated.iter().filter(|a| !**a).count());
    }
}

fn run<G: Geometry>(frames: usize, processors: usize, seed: u64, steps: usize, claims: bool) {
    let mut rng = Rng::new(seed);
    let arrays = Arrays::new(Sizes::of::<G>(frames, processors));
    let thresholds = if seed.is_multiple_of(5) { Thresholds::PAPER } else { Thresholds::default() };
    let config = Config { claims, thresholds, ..Config::new(processors) };
    let zone: Zone<'_, G> = arrays.zone(frames, Init::Free, config).unwrap();
    let mut model = Model { zone, allocated: vec![false; frames], held: Vec::new() };
    model.check();
    // So that the zone fills up with each order.
    let mut most = G::MAX_ORDER + 1;
    for step in 0..steps {
        let kind = KINDS[rng.below(3) as usize];
        let request = Request {
            order: rng.below(u64::from(most)) as u32,
            kind,
            processor: rng.below(processors as u64) as usize,
        };
        match rng.below(20) {
            0..10 => model.get(request),
            10..18 if !model.held.is_empty() => {
                let (frame, order) = model.held.swap_remove(rng.below(model.held.len() as u64) as usize);
                if rng.below(4) > 0 {
                    model.put(frame, Request { order, ..request });
                } else {
                    let part = rng.below(u64::from(order) + 1) as u32;
                    for at in (frame..frame + (1 << order)).step_by(1 << part) {
                        model.put(at, Request { order: part, ..request });
                    }
                }
            }
            18 => {
                // Some of the frames may be free.
                let frame = rng.below(frames as u64) as usize >> request.order << request.order;
                if frame + (1 << request.order) <= frames
                    && !model.allocated[frame..frame + (1 << request.order)].iter().all(|a| *a)
                {
                    model.put(frame, request);
                }
            }
            19 => match rng.below(4) {
                0 => model.zone.drain(request.processor).unwrap(),
                1 => most = 1 + rng.below(u64::from(G::MAX_ORDER) + 1) as u32,
                _ => {
                    let frame = rng.below(frames as u64) as usize >> request.order << request.order;
                    let range = frame..(frame + (1 << request.order)).min(frames);
                    let is_free =
                        range.len() == 1 << request.order && model.allocated[range.clone()].iter().all(|a| !*a);
                    match model.zone.get_at(frame, request.order) {
                        Ok(()) => {
                            assert!(is_free);
                            model.allocated[range].fill(true);
                            model.held.push((frame, request.order));
                        }
                        Err(_) => assert!(!is_free, "frame {frame} of order {} was free", request.order),
                    }
                }
            },
            _ => {}
        }
        if step % 64 == 0 {
            model.check();
        }
    }
    for (frame, order) in std::mem::take(&mut model.held) {
        model.put(frame, Request { order, kind: Kind::Movable, processor: 0 });
    }
    for processor in 0..processors {
        model.zone.drain(processor).unwrap();
    }
    model.check();
    assert_eq!(model.zone.free_frames(), frames);
    assert_eq!(model.zone.free_huge_frames(), frames / G::HUGE);
}

#[test]
fn tiny_zones_searched_as_in_the_paper_do_what_the_model_does() {
    for seed in 0..300 {
        let frames = 1 + (seed as usize * 7) % 100;
        run::<Paper<Tiny>>(frames, 1 + seed as usize % 3, seed, 600, seed % 4 == 0);
    }
}

#[test]
fn zones_searched_as_in_the_paper_do_what_the_model_does() {
    for seed in 0..3 {
        run::<Paper<Standard>>(Standard::TREE * 35 + 1, 1 + seed as usize % 3, seed, 3_000, seed % 4 == 2);
    }
}

#[test]
fn tiny_zones_do_what_the_model_does() {
    for seed in 0..300 {
        let frames = 1 + (seed as usize * 7) % 100;
        run::<Tiny>(frames, 1 + seed as usize % 3, seed, 600, seed % 4 > 0);
    }
}

#[test]
fn zones_do_what_the_model_does() {
    for seed in 0..6 {
        run::<Standard>(
            Standard::TREE * 2 + [0, 1, 700][seed as usize % 3],
            1 + seed as usize % 3,
            seed,
            3_000,
            seed % 4 > 0,
        );
    }
}
