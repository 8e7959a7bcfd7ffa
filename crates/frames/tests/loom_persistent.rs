//! Two processors in a persistent zone, where a split takes one step more.

use crate::common::{Arrays, array};
use craton_base::atomic::model::check;
use craton_base::loom::thread;
use craton_frames::{Cached, Config, Geometry, Init, Kind, PAGE_WORDS, PersistentZone, Request, Sizes, Tiny};
use std::sync::Arc;

const FRAMES: usize = Tiny::TREE;

type Zone = PersistentZone<'static, Tiny, Cached>;
type Hand = fn(&Zone) -> Option<(usize, u32)>;

fn request(processor: usize, order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor }
}

/// `left` stays allocated for the final check.
fn run(left: &'static [usize], hands: [Hand; 2]) {
    check(2, move || {
        let arrays: &'static Arrays = Box::leak(Box::new(Arrays::new(Sizes::of::<Tiny>(FRAMES, 2))));
        let page = Box::leak(Box::new(array(PAGE_WORDS)));
        let zone = PersistentZone::create(FRAMES, page, arrays.metadata(), Init::Free, Config::new(2), Cached).unwrap();
        let zone: Arc<Zone> = Arc::new(zone);
        zone.get_at(0, 2).unwrap();
        let other = {
            let zone = Arc::clone(&zone);
            thread::spawn(move || hands[1](&zone))
        };
        let mut held: Vec<_> = hands[0](&zone).into_iter().collect();
        held.extend(other.join().unwrap());
        zone.check().unwrap();
        let mut owner = [false; FRAMES];
        let of_held = held.iter().flat_map(|(frame, order)| *frame..*frame + (1 << order));
        for frame in left.iter().copied().chain(of_held) {
            assert!(!std::mem::replace(&mut owner[frame], true), "frame {frame} is in two hands");
        }
        for (frame, is_owned) in owner.into_iter().enumerate() {
            assert_eq!(zone.is_free(frame), Ok(!is_owned), "frame {frame}, of {held:?}");
        }
    });
}

fn put_first(zone: &Zone) -> Option<(usize, u32)> {
    zone.put(0, request(0, 0)).unwrap();
    None
}

#[test]
fn two_split_the_same_quarter() {
    let put_second: Hand = |zone| {
        zone.put(1, request(1, 0)).unwrap();
        None
    };
    run(&[2, 3], [put_first, put_second]);
}

#[test]
fn one_splits_a_quarter_and_the_other_allocates_a_frame() {
    run(&[1, 2, 3], [put_first, |zone| zone.get(request(1, 0)).ok().map(|frame| (frame, 0))]);
}

#[test]
fn one_splits_a_quarter_and_the_other_allocates_one() {
    run(&[1, 2, 3], [put_first, |zone| zone.get(request(1, 2)).ok().map(|frame| (frame, 2))]);
}
