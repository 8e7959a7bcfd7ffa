use crate::common::Arrays;
use craton_frames::{
    Config, Error, Geometry, Init, Kind, Metadata, Node, Nodes, Request, Sizes, Standard, Thresholds, Tiny, Zone,
};

const TREE: usize = Standard::TREE;
const HUGE: usize = Standard::HUGE;

fn request(order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor: 0 }
}

fn with_zone<R>(frames: usize, processors: usize, f: impl FnOnce(&Zone<'_>) -> R) -> R {
    let arrays = Arrays::new(Sizes::of::<Standard>(frames, processors));
    let zone = arrays.zone(frames, Init::Free, Config::new(processors)).unwrap();
    let result = f(&zone);
    zone.check().unwrap();
    result
}

#[test]
fn a_batch_is_all_there_is_or_all_that_was_asked_for() {
    with_zone(2 * HUGE + 5, 1, |zone| {
        let mut frames = [0; 700];
        assert_eq!(zone.get_batch(&mut frames, request(7)), Ok(700));
        let mut rest = [0; 700];
        assert_eq!(zone.get_batch(&mut rest, request(0)), Ok(2 * HUGE + 5 - 700));
        let mut all: Vec<usize> = frames.iter().chain(&rest[..2 * HUGE + 5 - 700]).copied().collect();
        zone.put_batch(&all, request(0)).unwrap();
        assert_eq!(zone.free_frames(), 2 * HUGE + 5);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * HUGE + 5);
    });
}

#[test]
fn a_batch_with_a_free_frame_stops_there() {
    with_zone(TREE, 1, |zone| {
        let mut frames = [0; 100];
        assert_eq!(zone.get_batch(&mut frames, request(0)), Ok(100));
        zone.put(frames[40], request(0)).unwrap();
        let error = Error::NotAllocated { frame: frames[40], order: 0 };
        assert_eq!(zone.put_batch(&frames, request(0)), Err((40, error)));
        zone.put_batch(&frames[41..], request(0)).unwrap();
        assert_eq!(zone.free_frames(), TREE);
        let twice = [frames[0], frames[0]];
        assert_eq!(zone.put_batch(&twice, request(0)), Err((0, Error::NotAllocated { frame: frames[0], order: 0 })));
    });
}

#[test]
fn ranges_of_any_length_are_reserved_whole_or_not_at_all() {
    with_zone(2 * TREE, 1, |zone| {
        zone.reserve(3, 5000).unwrap();
        assert_eq!(zone.free_frames(), 2 * TREE - 5000);
        assert!(zone.is_free(2).unwrap() && !zone.is_free(3).unwrap() && !zone.is_free(5002).unwrap());
        assert!(matches!(zone.reserve(4000, 8000), Err(Error::InUse { .. })));
        assert!(matches!(zone.reserve(0, 4), Err(Error::InUse { frame: 3, .. } | Error::InUse { frame: 0, .. })));
        assert_eq!(zone.free_frames(), 2 * TREE - 5000);
        assert_eq!(zone.reserve(TREE, TREE + 1), Err(Error::OutOfRange { frame: TREE, frames: 2 * TREE }));
        assert_eq!(zone.reserve(1, usize::MAX), Err(Error::OutOfRange { frame: 1, frames: 2 * TREE }));
        zone.unreserve(3, 5000).unwrap();
        assert_eq!(zone.free_frames(), 2 * TREE);
    });
}

#[test]
fn offline_frames_are_neither_freed_nor_allocated() {
    with_zone(TREE, 1, |zone| {
        zone.offline(4 * HUGE, 20).unwrap();
        assert_eq!((zone.offline_huge_frames(), zone.free_huge_frames()), (20, 12));
        for (frame, order) in [(4 * HUGE, 9), (4 * HUGE, 10), (5 * HUGE + 7, 0), (10 * HUGE, 3), (6 * HUGE + 256, 8)] {
            assert_eq!(zone.put(frame, request(order)), Err(Error::Offline { frame }));
        }
        let mut held = Vec::new();
        while let Ok(frame) = zone.get(request(0)) {
            assert!(!(4 * HUGE..24 * HUGE).contains(&frame));
            held.push(frame);
        }
        assert_eq!(held.len(), 12 * HUGE);
        assert_eq!(zone.online(3 * HUGE, 2), Err(Error::NotOffline { frame: 3 * HUGE }));
        zone.online(4 * HUGE, 20).unwrap();
        assert_eq!(zone.online(4 * HUGE, 1), Err(Error::NotOffline { frame: 4 * HUGE }));
        assert_eq!((zone.offline_huge_frames(), zone.free_huge_frames()), (0, 20));
        zone.put_batch(&held, request(0)).unwrap();
        zone.drain(0).unwrap();
        assert_eq!(zone.free_huge_frames(), 32);
    });
}

#[test]
fn what_is_in_use_does_not_go_offline_and_nothing_else_with_it() {
    with_zone(TREE, 1, |zone| {
        zone.reserve(7 * HUGE + 100, 1).unwrap();
        assert_eq!(zone.offline(0, 10), Err(Error::InUse { frame: 7 * HUGE, order: 9 }));
        assert_eq!((zone.offline_huge_frames(), zone.free_frames()), (0, TREE - 1));
        assert_eq!(zone.offline(3, 1), Err(Error::Misaligned { frame: 3, order: 9 }));
        assert_eq!(zone.offline(30 * HUGE, 3), Err(Error::OutOfRange { frame: 30 * HUGE, frames: TREE }));
        assert_eq!(zone.offline(0, usize::MAX), Err(Error::OutOfRange { frame: 0, frames: TREE }));
    });
}

#[test]
fn a_zone_that_begins_offline_keeps_rows_as_they_are() {
    let frames = 2 * TREE + 3 * HUGE + 100;
    let arrays = Arrays::new(Sizes::of::<Standard>(frames, 1));
    let garbage = |row: &craton_base::atomic::AtomicU64| row.store(0xdead_beef, core::sync::atomic::Ordering::Relaxed);
    arrays.rows.iter().for_each(garbage);
    let zone: Zone<'_> = arrays.zone(frames, Init::Offline, Config::new(1)).unwrap();
    zone.check().unwrap();
    assert_eq!((zone.offline_huge_frames(), zone.free_frames()), (2 * 32 + 3, 0));
    assert_eq!(zone.get(request(0)), Err(Error::NoMemory));
    assert_eq!(zone.get_at(0, 9), Err(Error::Offline { frame: 0 }));
    assert_eq!(zone.put(7, request(0)), Err(Error::Offline { frame: 7 }));
    zone.online(33 * HUGE, 1).unwrap();
    assert_eq!(zone.free_frames(), HUGE);
    let mut taken: Vec<usize> = (0..HUGE).map(|_| zone.get(request(0)).unwrap()).collect();
    taken.sort_unstable();
    assert!(taken.into_iter().eq(33 * HUGE..34 * HUGE));
    zone.online(0, 33).unwrap();
    // The zone ends in that huge frame.
    assert!(zone.online(2 * TREE + 3 * HUGE, 1).is_err());
    zone.online(34 * HUGE, 33).unwrap();
    assert_eq!((zone.offline_huge_frames(), zone.free_frames()), (0, frames - 100 - HUGE));
    zone.check().unwrap();
}

#[test]
fn a_zone_grows_by_frames_that_were_offline() {
    with_zone(4 * TREE, 2, |zone| {
        zone.offline(TREE, 3 * Standard::CHILDREN).unwrap();
        let fill = |zone: &Zone<'_>| {
            std::iter::from_fn(|| zone.get(Request { order: 9, kind: Kind::Huge, processor: 1 }).ok()).count()
        };
        assert_eq!(fill(zone), 32);
        zone.online(2 * TREE, Standard::CHILDREN).unwrap();
        assert_eq!(fill(zone), 32);
        zone.online(TREE, Standard::CHILDREN).unwrap();
        zone.online(3 * TREE, Standard::CHILDREN).unwrap();
        assert_eq!(fill(zone), 64);
    });
}

#[test]
fn free_huge_frames_are_reclaimed_one_by_one() {
    with_zone(2 * TREE, 1, |zone| {
        let used: Vec<usize> = (0..3).map(|_| zone.get(request(9)).unwrap()).collect();
        zone.get(request(0)).unwrap();
        let mut taken: Vec<usize> = std::iter::from_fn(|| zone.reclaim(TREE)).collect();
        assert_eq!(taken.len(), 64 - 3 - 1);
        assert!(taken[0] >= TREE, "the tree of the frame that was named comes first");
        taken.sort_unstable();
        taken.dedup();
        assert!(taken.len() == 60 && used.iter().all(|frame| !taken.contains(frame)));
        taken.iter().for_each(|frame| zone.online(*frame, 1).unwrap());
        assert_eq!(zone.free_huge_frames(), 60);
    });
}

#[test]
fn kinds_lie_on_different_trees_while_there_is_room() {
    with_zone(4 * TREE, 1, |zone| {
        let get = |kind| zone.get(Request { order: 0, kind, processor: 0 }).unwrap() / TREE;
        let trees: Vec<usize> = [Kind::Movable, Kind::Unmovable, Kind::Huge].map(get).to_vec();
        assert!(trees[0] != trees[1] && trees[1] != trees[2] && trees[0] != trees[2], "{trees:?}");
        for _ in 0..3000 {
            assert_eq!(get(Kind::Unmovable), trees[1]);
            assert_eq!(get(Kind::Movable), trees[0]);
        }
    });
}

#[test]
fn a_kind_without_trees_fills_one_huge_frame_of_another() {
    with_zone(2 * TREE, 1, |zone| {
        let of = |kind| Request { order: 0, kind, processor: 0 };
        while zone.get(of(Kind::Unmovable)).is_ok() {}
        // Every third frame of one huge frame, and one frame of each other.
        let scattered = (0..HUGE).step_by(3).map(|frame| 7 * HUGE + frame);
        let others = (0..2 * TREE / HUGE).filter(|huge| *huge != 7).map(|huge| huge * HUGE + 40);
        let free: Vec<usize> = scattered.chain(others).collect();
        free.iter().for_each(|frame| zone.put(*frame, of(Kind::Movable)).unwrap());
        zone.drain(0).unwrap();
        let taken: Vec<usize> = (0..HUGE / 4).map(|_| zone.get(of(Kind::Movable)).unwrap() / HUGE).collect();
        assert!(taken.iter().all(|huge| *huge == 7), "{taken:?}");
        // The kind itself fills huge frames that are nearly full.
        let own = zone.get(of(Kind::Unmovable)).unwrap();
        assert_ne!(own / HUGE, 7);
    });
}

#[test]
fn freed_frames_serve_their_tree_s_kind_first() {
    with_zone(4 * TREE, 1, |zone| {
        let of = |kind| Request { order: 0, kind, processor: 0 };
        let movable = zone.get(of(Kind::Movable)).unwrap() / TREE;
        let taken: Vec<usize> = (0..HUGE).map(|_| zone.get(of(Kind::RECLAIMABLE)).unwrap()).collect();
        // In order, as pages of a cache go. A kernel does not know what a frame was.
        taken[..HUGE / 2].iter().for_each(|frame| zone.put(*frame, of(Kind::Movable)).unwrap());
        for _ in 0..HUGE {
            assert_eq!(zone.get(of(Kind::Movable)).unwrap() / TREE, movable);
        }
        let again: Vec<usize> = (0..HUGE / 2).map(|_| zone.get(of(Kind::RECLAIMABLE)).unwrap()).collect();
        let inside = again.iter().filter(|frame| taken.contains(frame)).count();
        assert!(inside >= HUGE / 2 - 32, "{inside} of {} frames again", HUGE / 2);
    });
}

#[test]
fn trees_that_became_wholly_free_serve_any_kind_and_after_others() {
    with_zone(40 * TREE, 1, |zone| {
        let huge = Request { order: 9, kind: Kind::Huge, processor: 0 };
        let all: Vec<usize> = std::iter::from_fn(|| zone.get(huge).ok()).collect();
        // One tree keeps a huge frame.
        all.iter().filter(|frame| **frame != 30 * TREE).for_each(|frame| zone.put(*frame, huge).unwrap());
        let get = |kind| zone.get(Request { order: 0, kind, processor: 0 }).unwrap() / TREE;
        let (movable, unmovable) = (get(Kind::Movable), get(Kind::Unmovable));
        assert_ne!(movable, unmovable);
        assert_eq!(zone.free_huge_frames(), 40 * 32 - 3);
        zone.put(30 * TREE, huge).unwrap();
        zone.check().unwrap();
    });
}

#[test]
fn nodes_serve_from_near_to_far_and_know_whose_a_frame_is() {
    let arrays: Vec<Arrays> = (0..2).map(|_| Arrays::new(Sizes::of::<Tiny>(20, 1))).collect();
    let zone = |n: usize| arrays[n].zone::<Tiny>(20, Init::Free, Config::new(1)).unwrap();
    let nodes = [Node { first: 64, zone: zone(0) }, Node { first: 128, zone: zone(1) }];
    let nodes = Nodes::new(&nodes).unwrap();
    let frames: Vec<usize> = std::iter::from_fn(|| nodes.get(&[1, 0, 7], request(0)).ok()).collect();
    assert_eq!(frames.len(), 40);
    assert!(frames[..20].iter().all(|frame| (128..148).contains(frame)));
    assert!(frames[20..].iter().all(|frame| (64..84).contains(frame)));
    assert_eq!(nodes.get(&[], request(0)), Err(Error::NoMemory));
    assert_eq!(nodes.node_of(70).map(|(n, _)| n), Ok(0));
    for out in [0, 63, 84, 127, 148, usize::MAX] {
        assert_eq!(nodes.put(out, request(0)), Err(Error::OutOfRange { frame: out, frames: 148 }));
    }
    frames.iter().for_each(|frame| nodes.put(*frame, request(0)).unwrap());
    let overlap = [Node { first: 0, zone: zone(0) }, Node { first: 19, zone: zone(1) }];
    assert_eq!(Nodes::new(&overlap).err(), Some(Error::Frames { frames: 19 }));
    assert_eq!(Nodes::<Tiny>::new(&[]).err(), Some(Error::Frames { frames: 0 }));
}

#[test]
fn bad_requests_are_named_and_change_nothing() {
    with_zone(HUGE + 100, 2, |zone| {
        let frames = HUGE + 100;
        let held = zone.get(request(3)).unwrap();
        let before = zone.free_frames();
        let put = |frame, order| zone.put(frame, request(order)).unwrap_err();
        assert_eq!(zone.get(request(11)), Err(Error::Order { order: 11, most: 10 }));
        assert_eq!(zone.get(request(u32::MAX)), Err(Error::Order { order: u32::MAX, most: 10 }));
        assert_eq!(put(0, 64), Error::Order { order: 64, most: 10 });
        assert_eq!(put(frames, 0), Error::OutOfRange { frame: frames, frames });
        assert_eq!(put(usize::MAX, 0), Error::OutOfRange { frame: usize::MAX, frames });
        assert_eq!(put(HUGE, 9), Error::OutOfRange { frame: HUGE, frames });
        assert_eq!(put(held + 1, 1), Error::Misaligned { frame: held + 1, order: 1 });
        assert_eq!(put(held, 4), Error::NotAllocated { frame: held, order: 4 });
        assert_eq!(put(held + 8, 3), Error::NotAllocated { frame: held + 8, order: 3 });
        let elsewhere = Request { processor: 2, ..request(0) };
        assert_eq!(zone.get(elsewhere), Err(Error::Processor { processor: 2, processors: 2 }));
        assert_eq!(zone.put(held, elsewhere), Err(Error::Processor { processor: 2, processors: 2 }));
        assert_eq!(zone.drain(2), Err(Error::Processor { processor: 2, processors: 2 }));
        assert_eq!(zone.get_at(held, 3), Err(Error::InUse { frame: held, order: 3 }));
        assert_eq!(zone.get_at(frames, 0), Err(Error::OutOfRange { frame: frames, frames }));
        assert_eq!(zone.is_free(frames), Err(Error::OutOfRange { frame: frames, frames }));
        assert_eq!(zone.free_frames(), before);
        zone.put(held, request(3)).unwrap();
        assert_eq!(put(held, 3), Error::NotAllocated { frame: held, order: 3 });
    });
}

#[test]
fn processors_ranges_and_thresholds_are_checked_in_every_state() {
    with_zone(TREE + 100, 2, |zone| {
        let stranger = Request { processor: 9, ..request(0) };
        let wrong = Error::Processor { processor: 9, processors: 2 };
        let mut frames = [0; 10];
        zone.get_batch(&mut frames, request(0)).unwrap();
        zone.put(frames[9], request(0)).unwrap();
        assert_eq!(zone.put_batch(&frames[..9], stranger), Err((0, wrong)));
        assert_eq!(zone.put_batch(&[], stranger), Err((0, wrong)));
        assert_eq!(zone.get_batch(&mut [], stranger), Err(wrong));
        assert_eq!(zone.free_frames(), TREE + 100 - 9);
        assert_eq!((zone.offline(HUGE, 0), zone.online(HUGE, 0)), (Ok(()), Ok(())));
        assert_eq!(zone.online(2 * HUGE, 1), Err(Error::NotOffline { frame: 2 * HUGE }));
        zone.offline(2 * HUGE, 1).unwrap();
        let offline = |frame| Err(Error::Offline { frame });
        assert_eq!(
            (zone.get_at(2 * HUGE + 1, 0), zone.offline(2 * HUGE, 1)),
            (offline(2 * HUGE + 1), offline(2 * HUGE))
        );
        assert_eq!(zone.offline(32 * HUGE, 1), Err(Error::OutOfRange { frame: 32 * HUGE, frames: TREE + 100 }));
    });
    let arrays = Arrays::new(Sizes::of::<Standard>(TREE, 1));
    for (allocated, free) in [(9, 8), (8, 513)] {
        let thresholds = Thresholds { allocated, free };
        let zone = arrays.zone::<Standard>(TREE, Init::Free, Config { thresholds, ..Config::new(1) });
        assert_eq!(zone.err(), Some(Error::Thresholds { allocated, free }));
    }
}

#[test]
fn a_zone_says_which_of_its_arrays_is_too_short() {
    let arrays = Arrays::new(Sizes::of::<Tiny>(100, 2));
    let all = arrays.metadata();
    let new =
        |frames, metadata, processors| Zone::<Tiny>::new(frames, metadata, Init::Free, Config::new(processors)).err();
    assert_eq!(new(100, all, 2), None);
    assert_eq!(new(0, all, 2), Some(Error::Frames { frames: 0 }));
    assert_eq!(new(1 << 37, all, 2), Some(Error::Frames { frames: 1 << 37 }));
    assert_eq!(new(100, all, 0), Some(Error::Processor { processor: 0, processors: 0 }));
    assert_eq!(new(100, all, 3), Some(Error::TooSmall { array: "locals", needed: 13, given: 8 }));
    let short = |n: &str| match n {
        "rows" => Metadata { rows: &all.rows[1..], ..all },
        "children" => Metadata { children: &all.children[1..], ..all },
        "trees" => Metadata { trees: &all.trees[1..], ..all },
        _ => Metadata { index: &all.index[1..], ..all },
    };
    for array in ["rows", "children", "trees", "index"] {
        let error = new(100, short(array), 2).unwrap();
        assert!(
            matches!(error, Error::TooSmall { array: a, needed, given } if a == array && needed == given + 1),
            "{error}"
        );
    }
}

#[test]
fn metadata_of_128_gib_is_at_most_4_2_mib() {
    let sizes = Sizes::of::<Standard>(128 << 18, 16);
    assert!(sizes.bytes() as f64 <= 4.20 * f64::from(1 << 20), "{sizes:?}");
}

#[test]
fn the_last_frame_is_found_also_by_those_who_share_a_tree() {
    with_zone(HUGE + 1, 4, |zone| {
        let mut held: Vec<usize> = Vec::new();
        for n in 0..HUGE + 1 {
            held.push(zone.get(Request { processor: n % 4, ..request(0) }).unwrap());
        }
        assert_eq!(zone.get(request(0)), Err(Error::NoMemory));
        held.sort_unstable();
        assert!(held.iter().copied().eq(0..HUGE + 1));
        held.iter().for_each(|frame| zone.put(*frame, Request { processor: 3, ..request(0) }).unwrap());
    });
}

fn of(processor: usize) -> Request {
    Request { processor, ..request(0) }
}

#[test]
fn two_huge_frames_of_which_one_is_claimed_in_part_are_not_freed_as_one() {
    with_zone(2 * HUGE, 2, |zone| {
        zone.get_at(0, 9).unwrap();
        assert_eq!(zone.get(of(0)), Ok(HUGE));
        zone.reserve(HUGE + 32, HUGE - 32).unwrap();
        assert_eq!(zone.put(0, request(10)), Err(Error::NotAllocated { frame: 0, order: 10 }));
        assert_eq!(zone.free_frames(), 31);
    });
}

#[test]
fn a_claim_is_void_once_others_have_its_frames() {
    with_zone(2 * HUGE, 2, |zone| {
        let frames: Vec<usize> = (0..32).map(|_| zone.get(of(0)).unwrap()).collect();
        frames.iter().for_each(|frame| zone.put(*frame, of(1)).unwrap());
        zone.drain(1).unwrap();
        zone.get_at(0, 9).unwrap();
        zone.put(1, of(1)).unwrap();
        zone.put(2, of(0)).unwrap();
        zone.check().unwrap();
        assert_eq!(zone.put(2, of(1)), Err(Error::NotAllocated { frame: 2, order: 0 }));
        assert_eq!(zone.free_frames(), HUGE + 2);
    });
}

#[test]
fn half_a_row_is_claimed_by_one_processor_at_a_time() {
    with_zone(2 * HUGE, 2, |zone| {
        let frames: Vec<usize> = (0..32).map(|_| zone.get(of(0)).unwrap()).collect();
        zone.drain(0).unwrap();
        zone.get(Request { processor: 1, ..request(1) }).unwrap();
        frames.chunks(4).take(1).for_each(|four| zone.put(four[0], Request { processor: 1, ..request(2) }).unwrap());
        zone.get(of(1)).unwrap();
        zone.put(frames[20], of(0)).unwrap();
        zone.check().unwrap();
        assert!(zone.put(frames[3], of(0)).is_err(), "it is free");
    });
}

#[test]
fn a_range_with_a_free_frame_is_not_freed_in_part() {
    with_zone(2 * HUGE, 1, |zone| {
        zone.reserve(0, 200).unwrap();
        zone.put(150, request(0)).unwrap();
        assert_eq!(zone.unreserve(0, 200), Err(Error::NotAllocated { frame: 150, order: 0 }));
        assert_eq!(zone.free_frames(), 2 * HUGE - 199);
    });
}

#[test]
fn a_node_beyond_all_numbers_is_refused() {
    let arrays = Arrays::new(Sizes::of::<Tiny>(20, 1));
    let zone = arrays.zone::<Tiny>(20, Init::Free, Config::new(1)).unwrap();
    let first = usize::MAX - 3;
    assert_eq!(Nodes::new(&[Node { first, zone }]).err(), Some(Error::Frames { frames: first }));
}
