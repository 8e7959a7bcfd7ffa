use super::*;
use crate::frames::request;

/// By order and first frame.
fn blocks(buddy: &Buddy) -> Vec<(u32, u32)> {
    let of = |order: u32| buddy.zone.chain(order).iter(&buddy.zone.places).map(move |frame| (order, frame));
    (0..=MAX_ORDER).flat_map(of).collect()
}

#[test]
fn the_first_blocks_are_as_long_as_they_can_be() {
    let buddy = Buddy::new(1024 + 512 + 3, 1);
    assert_eq!(blocks(&buddy), [(0, 1538), (1, 1536), (9, 1024), (10, 0)]);
    assert_eq!(buddy.free_frames(), 1539);
}

#[test]
fn a_block_is_halved_and_joins_its_buddies_again() {
    let buddy = Buddy::new(1024, 1);
    let frame = buddy.get(request(4, 0)).expect("free");
    assert_eq!(frame, 0);
    assert_eq!(blocks(&buddy), (4..10).map(|order| (order, 1 << order)).collect::<Vec<_>>());
    assert!(buddy.put(frame, request(4, 0)));
    assert_eq!(blocks(&buddy), [(10, 0)]);
    assert!(!buddy.put(frame, request(4, 0)), "freed twice");
}

#[test]
fn a_cache_takes_a_batch_and_gives_one_back_at_its_high_mark() {
    let buddy = Buddy::new(1 << 16, 1);
    let Limits { batch, high } = buddy.limits;
    let frames: Vec<usize> = (0..high).filter_map(|_| buddy.get(request(0, 0))).collect();
    assert_eq!(frames, (0..high).collect::<Vec<_>>(), "in their order");
    assert_eq!(buddy.caches[0].frames(), high.next_multiple_of(batch) - high);
    buddy.drain(0);
    let cached = |frame: &usize| {
        assert!(buddy.put(*frame, request(0, 0)));
        buddy.caches[0].frames()
    };
    let counts: Vec<usize> = frames.iter().map(cached).collect();
    assert_eq!(counts[..high - 1], (1..high).collect::<Vec<_>>()[..]);
    assert_eq!(counts[high - 1], high - batch);
    buddy.drain(0);
    assert_eq!((buddy.caches[0].frames(), buddy.free_frames()), (0, 1 << 16));
    assert!(blocks(&buddy).iter().all(|(order, _)| *order == MAX_ORDER));
}

#[test]
fn sizes_of_caches_are_linuxs() {
    // The paper's node; the documented minimum of a small zone.
    assert_eq!(Limits::of(128 << 18, 26), Limits { batch: 63, high: 556 });
    assert_eq!(Limits::of(1024, 4), Limits { batch: 63, high: 252 });
    let limits = Limits::of(1024, 4);
    assert_eq!([0, 1, 3, 9].map(|order| limits.blocks(order)), [63, 31, 7, 2]);
}

#[test]
fn what_caches_hold_is_joined_when_nothing_else_is_left() {
    let buddy = Buddy::new(1024, 2);
    let frames: Vec<usize> = (0..64).filter_map(|_| buddy.get(request(0, 1))).collect();
    assert!(frames.iter().all(|frame| buddy.put(*frame, request(0, 1))));
    assert!(buddy.caches[1].frames() > 0);
    assert_eq!(buddy.get(request(10, 0)), Some(0));
    assert_eq!(buddy.free_frames(), 0);
}
