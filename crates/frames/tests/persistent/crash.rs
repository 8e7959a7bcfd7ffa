//! A crash at every store, flush and fence of small runs, also in a recovery.

use super::world::{Watch, World};
use crate::common::Arrays;
use craton_frames::{Config, Error, Geometry, Init, Kind, Media, Opened, PersistentZone, Request, Sizes, Tiny, Zone};
use craton_sim::{Line, Lines, Rng};
use std::ops::Deref;

const IMAGES: usize = 10;
const KINDS: [Kind; 3] = [Kind::Movable, Kind::Unmovable, Kind::Huge];

type Persistent<'a> = PersistentZone<'a, Tiny, &'a Watch<'a>>;

type Frames = Vec<bool>;

struct Life<'a, Z = Persistent<'a>> {
    watch: &'a Watch<'a>,
    zone: Z,
    allocated: Frames,
}

struct Done {
    first: usize,
    count: usize,
    /// One store decides.
    is_atomic: bool,
}

impl<'a> Life<'a> {
    fn create(world: &'a World, watch: &'a Watch<'a>, frames: usize) -> Self {
        let config = Config::new(2);
        let zone = PersistentZone::create(frames, &world.page, world.metadata(), Init::Free, config, watch).unwrap();
        watch.moments();
        Self { watch, zone, allocated: vec![false; frames] }
    }

    fn open(world: &'a World, watch: &'a Watch<'a>, frames: usize) -> Self {
        let opened = PersistentZone::open(frames, &world.page, world.metadata(), Config::new(2), watch);
        let (zone, opened) = opened.unwrap();
        assert!(matches!(opened, Opened::Recovered { .. }));
        zone.check().unwrap();
        let allocated: Frames = (0..frames).map(|frame| !zone.is_free(frame).unwrap()).collect();
        assert_eq!(zone.free_frames(), allocated.iter().filter(|a| !**a).count());
        Self { watch, zone, allocated }
    }
}

impl<'a, M: Media + 'a, Z: Deref<Target = Zone<'a, Tiny, M>>> Life<'a, Z> {
    fn step(&mut self, rng: &mut Rng) -> Option<Done> {
        let frames = self.allocated.len();
        let order = rng.below(u64::from(Tiny::MAX_ORDER) + 1) as u32;
        let request = Request { order, kind: *rng.pick(&KINDS), processor: rng.below(2) as usize };
        let at = rng.below(frames as u64) as usize >> order << order;
        let all = |allocated: bool| {
            at + (1 << order) <= frames && self.allocated[at..at + (1 << order)].iter().all(|a| *a == allocated)
        };
        let (first, is_get, is_atomic) = match rng.below(8) {
            0..3 => match self.zone.get(request) {
                Ok(frame) => (frame, true, true),
                Err(error) => {
                    assert_eq!(error, Error::NoMemory);
                    return None;
                }
            },
            3 if all(false) => {
                self.zone.get_at(at, order).unwrap();
                (at, true, true)
            }
            4 if all(true) => {
                let frames: Vec<_> = (at..at + (1 << order)).collect();
                self.zone.put_batch(&frames, request).unwrap();
                (at, false, order == 0)
            }
            _ if all(true) => {
                self.zone.put(at, request).unwrap();
                (at, false, order <= Tiny::ROW_ORDER)
            }
            _ => return None,
        };
        let range = &mut self.allocated[first..first + (1 << order)];
        assert!(range.iter().all(|a| *a != is_get), "frame {first} of order {order} is in two hands");
        range.fill(is_get);
        Some(Done { first, count: 1 << order, is_atomic })
    }
}

/// A request under way may have done its part.
fn check(found: &Frames, before: &Frames, after: &Frames, done: Option<&Done>) {
    for (frame, is_allocated) in found.iter().enumerate() {
        let may = [before[frame], after[frame]];
        assert!(may.contains(is_allocated), "frame {frame} was {may:?}, and is {is_allocated}");
    }
    if let Some(Done { first, count, is_atomic: true }) = done {
        let range = &found[*first..first + count];
        assert!(range.iter().all(|a| *a == range[0]), "half of a request is left: {first} + {count} is {range:?}");
    }
}

/// Crashes again in the recovery.
fn recover(frames: usize, image: &[Line], rng: &mut Rng, is_thorough: bool) -> Frames {
    let world = World::of::<Tiny>(frames, 2, image);
    let watch = Watch::new(&world);
    let life = Life::open(&world, &watch, frames);
    let found = life.allocated.clone();
    if is_thorough {
        for moment in watch.moments() {
            for image in moment.images(4, rng) {
                let world = World::of::<Tiny>(frames, 2, &image);
                let watch = Watch::new(&world);
                assert_eq!(Life::open(&world, &watch, frames).allocated, found, "a crash in the recovery");
            }
        }
        for frame in (0..frames).filter(|frame| found[*frame]) {
            life.zone.put(frame, Request { order: 0, kind: Kind::Movable, processor: 0 }).unwrap();
        }
        life.zone.check().unwrap();
        assert_eq!(life.zone.free_frames(), frames);
        assert_eq!(life.zone.free_huge_frames(), frames / Tiny::HUGE);
    }
    found
}

/// During the last request.
fn crash_everywhere(moments: &[Lines], before: &Frames, after: &Frames, done: Option<&Done>, rng: &mut Rng) {
    for moment in moments {
        for image in moment.images(IMAGES, rng) {
            let is_thorough = rng.one_in(20);
            check(&recover(before.len(), &image, rng, is_thorough), before, after, done);
        }
    }
    for image in moments[moments.len() - 1].images(IMAGES, rng) {
        assert_eq!(&recover(after.len(), &image, rng, false), after, "a finished request is lost");
    }
}

#[test]
fn f11_a_crash_at_any_store_loses_no_more_than_the_request_under_way() {
    for seed in 0..8 {
        let mut rng = Rng::new(seed);
        let frames = [2 * Tiny::TREE, 2 * Tiny::TREE + 5, 19, Tiny::TREE + 16][seed as usize % 4];
        let world = World::new::<Tiny>(frames, 2);
        let watch = Watch::new(&world);
        let mut life = Life::create(&world, &watch, frames);
        for _ in 0..90 {
            let before = life.allocated.clone();
            let done = life.step(&mut rng);
            crash_everywhere(&watch.moments(), &before, &life.allocated, done.as_ref(), &mut rng);
        }
    }
}

#[test]
fn f11_many_lives_each_ended_by_a_crash() {
    for seed in 0..40 {
        let mut rng = Rng::new(100 + seed);
        let frames = 1 + rng.below(5 * Tiny::TREE as u64) as usize;
        let mut image = {
            let world = World::new::<Tiny>(frames, 2);
            let watch = Watch::new(&world);
            Life::create(&world, &watch, frames);
            watch.moments().pop().unwrap().durable()
        };
        for _ in 0..12 {
            let world = World::of::<Tiny>(frames, 2, &image);
            let watch = Watch::new(&world);
            let mut life = Life::open(&world, &watch, frames);
            for _ in 0..rng.below(30) {
                life.step(&mut rng);
            }
            watch.moments();
            let before = life.allocated.clone();
            let done = life.step(&mut rng);
            let moments = watch.moments();
            let images = rng.pick(&moments).images(IMAGES, &mut rng);
            image = rng.pick(&images).clone();
            check(&recover(frames, &image, &mut rng, true), &before, &life.allocated, done.as_ref());
        }
    }
}

#[test]
fn what_persists_serves_the_same_frames_as_what_does_not() {
    let frames = 2 * Tiny::TREE + 5;
    let (world, arrays) = (World::new::<Tiny>(frames, 2), Arrays::new(Sizes::of::<Tiny>(frames, 2)));
    let watch = Watch::new(&world);
    let mut life = Life::create(&world, &watch, frames);
    let config = Config { claims: false, ..Config::new(2) };
    let mut volatile = Life {
        watch: &watch,
        zone: Box::new(arrays.zone(frames, Init::Free, config).unwrap()),
        allocated: life.allocated.clone(),
    };
    let (mut rng, mut same) = (Rng::new(3), Rng::new(3));
    for _ in 0..2000 {
        life.step(&mut rng);
        volatile.step(&mut same);
        assert_eq!(life.allocated, volatile.allocated);
        watch.moments();
    }
}

/// Stores of the dead process stay in caches; another one recovers and continues.
#[test]
fn f11_a_process_dies_and_then_the_power_fails() {
    for seed in 0..60 {
        let mut rng = Rng::new(200 + seed);
        let frames = 2 * Tiny::TREE + 5;
        let world = World::new::<Tiny>(frames, 2);
        let watch = Watch::new(&world);
        let mut life = Life::create(&world, &watch, frames);
        for _ in 0..rng.below(40) {
            life.step(&mut rng);
        }
        watch.moments();
        let done = life.step(&mut rng);
        let moment = rng.pick(&watch.moments()).clone();

        let world = World::of::<Tiny>(frames, 2, &moment.seen());
        let watch = Watch::with(&world, moment);
        let mut life = Life::open(&world, &watch, frames);
        // The dead request's frames.
        let mut loose = vec![false; frames];
        if let Some(Done { first, count, .. }) = done {
            loose[first..first + count].fill(true);
        }
        watch.moments();
        for _ in 0..20 {
            let before = life.allocated.clone();
            let done = life.step(&mut rng);
            for moment in life.watch.moments() {
                for image in moment.images(4, &mut rng) {
                    let found = recover(frames, &image, &mut rng, false);
                    for frame in (0..frames).filter(|frame| !loose[*frame]) {
                        let may = [before[frame], life.allocated[frame]];
                        assert!(may.contains(&found[frame]), "frame {frame} was {may:?}, and is {}", found[frame]);
                    }
                }
            }
            if let Some(Done { first, count, .. }) = done {
                loose[first..first + count].fill(false);
            }
        }
    }
}

#[test]
fn f11_who_frees_in_a_quarter_that_a_dead_process_split_is_heard() {
    let frames = Tiny::TREE;
    let request = |order| Request { order, kind: Kind::Movable, processor: 0 };
    let world = World::new::<Tiny>(frames, 2);
    let watch = Watch::new(&world);
    let life = Life::create(&world, &watch, frames);
    let first = life.zone.get(request(2)).unwrap();
    watch.moments();
    life.zone.put(first, request(0)).unwrap();
    for moment in watch.moments() {
        let world = World::of::<Tiny>(frames, 2, &moment.seen());
        let watch = Watch::with(&world, moment);
        let life = Life::open(&world, &watch, frames);
        life.zone.put(first + 3, request(0)).unwrap();
        let after = watch.moments().pop().unwrap();
        for image in after.images(100, &mut Rng::new(1)) {
            let found = recover(frames, &image, &mut Rng::new(1), true);
            assert_eq!(found[first + 1..first + 4], [true, true, false]);
        }
    }
}
