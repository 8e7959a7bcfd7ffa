use super::*;
use craton_lab::rng::Rng;
use std::collections::BTreeMap;

const FRAMES: usize = 4096 + 77;

struct Model {
    world: World,
    orders: Vec<u32>,
}

impl Job for Model {
    type Out = usize;

    fn run<F: Frames>(self, frames: &F) -> usize {
        let World { frames: all, processors, .. } = self.world;
        let usable = frames.free_frames();
        // A list leaves out parts of blocks.
        assert!((all >> 9 << 9..=all).contains(&usable));
        let mut allocated: BTreeMap<usize, u32> = BTreeMap::new();
        let (mut rng, mut used, mut refused) = (Rng::new(7, 0), 0, 0);
        for step in 0..20_000 {
            let processor = rng.below(processors as u32) as usize;
            // Phases of growth and decline reach full and empty.
            let grows = rng.below(10) < if step / 4000 % 2 == 0 { 7 } else { 3 };
            if grows {
                let order = self.orders[rng.below(self.orders.len() as u32) as usize];
                let Some(frame) = frames.get(request(order, processor)) else {
                    refused += 1;
                    continue;
                };
                let end = frame + (1 << order);
                assert!(frame % (1 << order) == 0 && end <= all, "{frame} of order {order}");
                let before = allocated.range(..end).next_back();
                assert!(before.is_none_or(|(at, o)| at + (1 << o) <= frame), "{frame} is handed out twice");
                allocated.insert(frame, order);
                used += 1 << order;
            } else if !allocated.is_empty() {
                let at = rng.below(allocated.len() as u32) as usize;
                let (frame, order) = allocated.iter().nth(at).map(|(f, o)| (*f, *o)).expect("there");
                allocated.remove(&frame);
                assert!(frames.put(frame, request(order, processor)));
                used -= 1 << order;
            }
            if step % 500 == 0 {
                frames.drain(processor);
            }
            assert_eq!(frames.free_frames(), usable - used);
        }
        for (frame, order) in allocated {
            assert!(frames.put(frame, request(order, 0)));
        }
        assert_eq!(frames.free_frames(), usable);
        refused
    }
}

#[test]
fn no_design_hands_a_frame_out_twice_or_loses_one() {
    for design in Design::here().into_iter().chain(Design::authors()) {
        for orders in [vec![0], vec![3], vec![9]] {
            let world = World { frames: FRAMES, order: orders[0], processors: 2 };
            design.with(&world, Model { world, orders }).unwrap_or_else(|e| panic!("{}: {e}", design.name()));
        }
    }
    let several = [Design::Craton, Design::Strict, Design::Paper, Design::File, Design::Buddy];
    for design in several.into_iter().chain(Design::authors()) {
        let world = World { frames: FRAMES, order: 0, processors: 2 };
        let orders = (0..=MAX_ORDER).collect();
        let refused = design.with(&world, Model { world, orders }).unwrap_or_else(|e| panic!("{e}"));
        assert!(refused > 0, "{} never became full", design.name());
    }
}

/// With one processor.
struct Fill(u32);

impl Job for Fill {
    type Out = Vec<usize>;

    fn run<F: Frames>(self, frames: &F) -> Vec<usize> {
        std::iter::from_fn(|| frames.get(request(self.0, 0))).collect()
    }
}

#[test]
fn every_design_hands_out_all_that_it_has() {
    for design in Design::here() {
        for order in [0, 9] {
            let world = World { frames: FRAMES, order, processors: 1 };
            let mut blocks = design.with(&world, Fill(order)).expect("made");
            blocks.sort_unstable();
            assert_eq!(blocks, (0..FRAMES >> order).map(|block| block << order).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_list_of_a_processor_is_its_own() {
    let list = List::new(10, 0, Local::new(2));
    let of = |processor| std::iter::from_fn(|| list.get(request(0, processor))).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), ((0..5).collect(), (5..10).collect()));
    assert!(list.put(7, request(0, 0)));
    assert_eq!((of(1), of(0)), (vec![], vec![7]));
}

#[test]
fn a_list_serves_its_order_alone() {
    let world = World { frames: FRAMES, order: 0, processors: 1 };
    for design in [Design::Locked, Design::Cas, Design::Local] {
        assert!(design.with(&world, Fill(1)).expect("made").is_empty());
    }
}

struct Race(usize);

impl Job for Race {
    type Out = ();

    fn run<F: Frames>(self, frames: &F) {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        let taken: Vec<AtomicBool> = (0..FRAMES).map(|_| AtomicBool::new(false)).collect();
        let one = |processor: usize| {
            let (mut mine, mut rng) = (Vec::new(), Rng::new(3, processor as u64));
            for _ in 0..5000 {
                if rng.one_in(2) {
                    let Some(frame) = frames.get(request(0, processor)) else { continue };
                    assert!(!taken[frame].swap(true, Relaxed), "{frame} has two owners");
                    mine.push(frame);
                } else if let Some(frame) = mine.pop() {
                    taken[frame].store(false, Relaxed);
                    assert!(frames.put(frame, request(0, processor)));
                }
            }
            for frame in mine {
                taken[frame].store(false, Relaxed);
                assert!(frames.put(frame, request(0, processor)));
            }
        };
        std::thread::scope(|scope| {
            for processor in 0..self.0 {
                scope.spawn(move || one(processor));
            }
        });
        assert_eq!(frames.free_frames(), FRAMES);
    }
}

#[test]
fn threads_never_get_the_same_frame() {
    for design in Design::here() {
        let world = World { frames: FRAMES, order: 0, processors: 3 };
        design.with(&world, Race(3)).expect("made");
    }
}
