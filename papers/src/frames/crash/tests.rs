use super::records::Doing;
use super::*;
use crate::frames::request;
use craton_lab::scratch::Scratch;
use std::sync::atomic::AtomicUsize;

const FRAMES: usize = 5 * 16384 + 77;

fn world(scratch: &Scratch, threads: usize) -> World {
    World::new(scratch.path(), FRAMES, threads, 1).expect("made")
}

fn task(world: &World, threads: usize, seed: u64, closed: bool) -> Task {
    Task { directory: world.directory().to_owned(), frames: FRAMES, threads, seed, closed }
}

#[test]
fn a_process_that_stops_between_requests_loses_nothing() {
    let scratch = Scratch::new("a test").expect("a place");
    let world = world(&scratch, 2);
    for seed in 0..6 {
        let turns = AtomicUsize::new(0);
        let closed = seed % 2 == 0;
        work(&task(&world, 2, seed, closed), || turns.fetch_add(1, Relaxed) < 20).expect("a zone that is right");
        let found = world.inspect(!closed).expect("a zone that is right");
        assert!(matches!(found.opened, Opened::Recovered { .. }) && found.audit.lost.is_empty());
        assert!(found.operations >= 10 * STEPS as u64 && found.audit.held > FRAMES / 3 && found.audit.under_way == 0);
        assert_eq!(world.begun(), 0);
    }
}

/// Behind the records' back.
fn after(change: impl FnOnce(&FileZone<'_>, &Records)) -> Result<Found, String> {
    let scratch = Scratch::new("a test").expect("a place");
    let world = world(&scratch, 2);
    {
        let (zone, _) = open(&world.zone, FRAMES, 2).expect("there");
        change(&zone, &world.records);
    }
    world.inspect(false)
}

/// Without a holder, in `World::new`'s zone.
fn first_of(zone: &FileZone<'_>, is_free: bool) -> usize {
    (0..FRAMES).find(|frame| zone.is_free(*frame) == Ok(is_free)).expect("half of them")
}

#[test]
fn what_a_request_under_way_lost_is_found_and_freed() {
    let found = after(|zone, records| {
        records.set_doing(1, Doing::Getting(3));
        zone.get(request(3, 1)).expect("room");
    });
    let found = found.expect("accounted for");
    assert_eq!((found.audit.losing, found.audit.lost.len(), found.audit.under_way), (1, 8, 1));
    let found = after(|zone, records| {
        let frame = first_of(zone, true);
        zone.get_at(frame, 0).expect("free");
        records.set_doing(0, Doing::Place(frame, 0));
        records.set(0, frame, 0, true);
    });
    assert_eq!(found.expect("accounted for").audit.lost.len(), 1);
}

#[test]
fn what_is_lost_is_there_again_at_the_next_look() {
    let scratch = Scratch::new("a test").expect("a place");
    let world = world(&scratch, 1);
    {
        let (zone, _) = open(&world.zone, FRAMES, 1).expect("there");
        world.records.set_doing(0, Doing::Getting(9));
        zone.get(request(9, 0)).expect("room");
    }
    assert_eq!(world.inspect(true).expect("accounted for").audit.lost.len(), 512);
    let found = world.inspect(false).expect("right");
    assert!(found.opened == Opened::Clean && found.audit.lost.is_empty());
}

#[test]
fn wrong_zones_are_errors() {
    let lost = after(|zone, _| {
        zone.get(request(0, 0)).expect("room");
    });
    assert!(lost.is_err_and(|why| why.contains("lost")));
    let other_order = after(|zone, records| {
        records.set_doing(0, Doing::Getting(4));
        zone.get(request(1, 0)).expect("room");
    });
    assert!(other_order.is_err_and(|why| why.contains("do not account")));
    let free = after(|zone, records| records.set(0, first_of(zone, true), 0, true));
    assert!(free.is_err_and(|why| why.contains("is held, and free")));
    let twice = after(|zone, records| {
        let frame = first_of(zone, true);
        zone.get_at(frame, 0).expect("free");
        (0..2).for_each(|holder| records.set(holder, frame, 0, true));
    });
    assert!(twice.is_err_and(|why| why.contains("held twice")));
}

#[test]
fn a_process_says_how_it_expected_the_zone() {
    let scratch = Scratch::new("a test").expect("a place");
    let world = world(&scratch, 1);
    let wrong = work(&task(&world, 1, 0, false), || false);
    assert!(wrong.is_err_and(|why| why.contains("Clean")));
}
