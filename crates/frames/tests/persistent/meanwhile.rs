//! One request within another's, at each store, flush and fence; then a crash.

use super::world::{Watch, World};
use craton_base::atomic::Ordering;
use craton_frames::{Cached, Config, Geometry, Init, Kind, Media, PersistentZone, Request, Tiny};
use craton_sim::{Lines, Rng};
use std::cell::{Cell, RefCell};

const FRAMES: usize = 2 * Tiny::TREE;
const IMAGES: usize = 40;

type Nested = Box<dyn FnOnce()>;

struct Meanwhile {
    watch: Watch<'static>,
    nested: RefCell<Option<(usize, Nested)>>,
}

impl Meanwhile {
    fn tick(&self) {
        let mut nested = self.nested.borrow_mut();
        match nested.take() {
            Some((0, act)) => {
                drop(nested);
                act();
            }
            Some((left, act)) => *nested = Some((left - 1, act)),
            None => {}
        }
    }
}

impl Media for Meanwhile {
    fn changed<W>(&self, word: &W) {
        self.watch.changed(word);
        self.tick();
    }

    fn flush<W>(&self, word: &W) {
        self.watch.flush(word);
        self.tick();
    }

    fn fence(&self) {
        self.watch.fence();
        self.tick();
    }
}

type Zone = PersistentZone<'static, Tiny, &'static Meanwhile>;

fn request(processor: usize, order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Get(u32),
    Put(usize, u32),
    Both(u32),
}

/// The first huge frame has one quarter as a whole, one of single frames, the third free. The
/// second is allocated.
fn begin() -> (&'static World, &'static Meanwhile, &'static Zone) {
    let world: &'static World = Box::leak(Box::new(World::new::<Tiny>(FRAMES, 2)));
    let meanwhile: &'static Meanwhile =
        Box::leak(Box::new(Meanwhile { watch: Watch::new(world), nested: RefCell::new(None) }));
    let zone =
        PersistentZone::create(FRAMES, &world.page, world.metadata(), Init::Free, Config::new(2), meanwhile).unwrap();
    zone.get_at(0, 2).unwrap();
    (4..8).for_each(|frame| zone.get_at(frame, 0).unwrap());
    zone.get_at(12, 1).unwrap();
    zone.get_at(Tiny::HUGE, Tiny::HUGE_ORDER).unwrap();
    meanwhile.watch.moments();
    (world, meanwhile, Box::leak(Box::new(zone)))
}

fn allocated<M: Media>(zone: &PersistentZone<'_, Tiny, M>) -> Vec<bool> {
    (0..FRAMES).map(|frame| !zone.is_free(frame).unwrap()).collect()
}

fn act(zone: &Zone, processor: usize, what: Act) -> Option<(usize, u32)> {
    match what {
        Act::Get(order) => zone.get(request(processor, order)).ok().map(|frame| (frame, order)),
        Act::Put(frame, order) => zone.put(frame, request(processor, order)).ok().map(|()| (frame, order)),
        Act::Both(order) => {
            let got = act(zone, processor, Act::Get(order))?;
            act(zone, processor, Act::Put(got.0, order)).map(|_| got)
        }
    }
}

/// Whether it would wait for a split.
fn would_wait(world: &World, what: Act) -> bool {
    let pair = world.arrays.children[0].load(Ordering::Relaxed);
    let has_pending = |child: usize| pair >> (16 * child + 14) & 1 == 1;
    let has_quarter = |frame: usize| pair >> (16 * (frame / Tiny::HUGE) + 10 + frame % Tiny::HUGE / 4) & 1 == 1;
    match what {
        // The frames just allocated are freed in the same form.
        Act::Get(_) | Act::Both(_) => false,
        Act::Put(frame, _) => has_pending(frame / Tiny::HUGE) && has_quarter(frame),
    }
}

/// Durable lines and the nested request's result.
type Returned = Cell<Option<(Lines, Option<(usize, u32)>)>>;

/// Fails if the effect of `inner` may be lost. Returns whether `outer` has such a moment.
fn run(outer: Act, inner: Act, moment: usize, rng: &mut Rng) -> bool {
    let (world, meanwhile, zone) = begin();
    let before = allocated(zone);
    let returned: &'static Returned = Box::leak(Box::default());
    let was_there: &'static Cell<bool> = Box::leak(Box::default());
    let nested = move || {
        was_there.set(true);
        if !would_wait(world, inner) {
            let done = act(zone, 1, inner);
            returned.set(Some((meanwhile.watch.moments().pop().unwrap(), done)));
        }
    };
    *meanwhile.nested.borrow_mut() = Some((moment, Box::new(nested)));
    let (first, order) = act(zone, 0, outer).expect("the outer request can be served");
    zone.check().unwrap();
    let under_way = first..first + (1 << order);
    let Some((lines, done)) = returned.take() else { return was_there.get() };
    let mut expected = before;
    if let Some((frame, order)) = done {
        let is_get = matches!(inner, Act::Get(_));
        expected[frame..frame + (1 << order)].fill(is_get);
    }
    for image in lines.images(IMAGES, rng) {
        let world = World::of::<Tiny>(FRAMES, 2, &image);
        let opened = PersistentZone::<Tiny, _>::open(FRAMES, &world.page, world.metadata(), Config::new(2), Cached);
        let (zone, _) = opened.unwrap();
        zone.check().unwrap();
        let found = allocated(&zone);
        for frame in 0..FRAMES {
            let is_got = matches!(inner, Act::Get(_)) && expected[frame];
            if !under_way.contains(&frame) || is_got && matches!(outer, Act::Put(..)) && was_got(done, frame) {
                assert_eq!(found[frame], expected[frame], "frame {frame}: {inner:?} at {moment} of {outer:?}");
            }
        }
    }
    true
}

fn was_got(done: Option<(usize, u32)>, frame: usize) -> bool {
    done.is_some_and(|(first, order)| (first..first + (1 << order)).contains(&frame))
}

#[test]
fn f11_what_has_returned_holds_though_another_request_is_under_way() {
    let mut rng = Rng::new(9);
    let outer = [
        // Splits; whole quarters; frees in pieces; more than a huge frame.
        Act::Put(0, 0),
        Act::Put(2, 1),
        Act::Put(0, 2),
        Act::Put(0, 3),
        Act::Put(Tiny::HUGE, 0),
        Act::Put(Tiny::HUGE, 4),
        Act::Put(4, 0),
        Act::Get(0),
        Act::Get(2),
        Act::Get(3),
        Act::Get(5),
    ];
    let inner = [
        Act::Put(3, 0),
        Act::Put(Tiny::HUGE + 2, 0),
        Act::Put(6, 1),
        Act::Put(12, 0),
        Act::Get(0),
        Act::Get(1),
        Act::Get(2),
        Act::Both(0),
        Act::Both(2),
        Act::Both(5),
    ];
    for outer in outer {
        for inner in inner {
            let overlap = matches!((outer, inner), (Act::Put(first, order), Act::Put(other, _))
                if (first..first + (1 << order)).contains(&other));
            // The same frames twice would be the caller's error.
            if !overlap {
                assert!(
                    (0..200).find(|moment| !run(outer, inner, *moment, &mut rng)).is_some_and(|moments| moments > 2)
                );
            }
        }
    }
}
