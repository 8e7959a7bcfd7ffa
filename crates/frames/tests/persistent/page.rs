//! Pages of other zones, damaged ones, and zones never completed.

use super::world::{Watch, World};
use crate::common::array;
use craton_base::atomic::{AtomicU64, Ordering};
use craton_frames::{
    Cached, Config, Error, Geometry, Init, Kind, Metadata, Opened, PAGE_WORDS, PersistentZone, Request, Standard, Tiny,
};
use craton_sim::{Line, Rng};

const FRAMES: usize = 3 * Tiny::TREE + 21;

type TinyZone<'a> = PersistentZone<'a, Tiny, Cached>;

fn create<G: Geometry>(world: &World, frames: usize) -> PersistentZone<'_, G, Cached> {
    PersistentZone::create(frames, &world.page, world.metadata(), Init::Free, Config::new(2), Cached).unwrap()
}

fn open<G: Geometry>(world: &World, frames: usize) -> Result<(PersistentZone<'_, G, Cached>, Opened), Error> {
    PersistentZone::open(frames, &world.page, world.metadata(), Config::new(2), Cached)
}

fn request(order: u32) -> Request {
    Request { order, kind: Kind::Movable, processor: 0 }
}

/// Opening must write nothing.
fn refusal<G: Geometry>(world: &World, frames: usize) -> Error {
    let before = world.lines();
    let error = open::<G>(world, frames).err().expect("it should be refused");
    assert!(world.lines() == before, "{error}, and yet something was written");
    error
}

fn free_in(image: &[Line]) -> (usize, Opened) {
    let world = World::of::<Tiny>(FRAMES, 2, image);
    let (zone, opened) = open::<Tiny>(&world, FRAMES).unwrap();
    zone.check().unwrap();
    (zone.free_frames(), opened)
}

fn flip(word: &AtomicU64, bits: u64) {
    word.fetch_xor(bits, Ordering::Relaxed);
}

const MAGIC: usize = 0;
const FREE: usize = 4;
const USED: usize = 6;

#[test]
fn a_zone_is_found_again_as_it_was_closed() {
    for frames in [1, 15, 16, 17, Tiny::TREE, Tiny::TREE + 1, FRAMES, 70 * Tiny::TREE - 3] {
        let world = World::new::<Tiny>(frames, 2);
        let zone = create::<Tiny>(&world, frames);
        let held: Vec<_> = [0, 4, 2, 1, 5, 0].map(|order| zone.get(request(order)).map(|frame| (frame, order))).into();
        let free = zone.free_frames();
        zone.close();
        let again = World::of::<Tiny>(frames, 2, &world.lines());
        let (zone, opened) = open::<Tiny>(&again, frames).unwrap();
        assert_eq!(opened, Opened::Clean);
        zone.check().unwrap();
        assert_eq!(zone.free_frames(), free);
        for (frame, order) in held.into_iter().flatten() {
            zone.put(frame, request(order)).unwrap();
        }
        assert_eq!((zone.free_frames(), zone.free_huge_frames()), (frames, frames / Tiny::HUGE));
        zone.check().unwrap();
    }
}

#[test]
fn zones_that_end_in_the_middle_of_a_tree_are_recovered() {
    for frames in [1, 511, 512, 513, Standard::TREE - 1, Standard::TREE + 1, 2 * Standard::TREE + 700] {
        let world = World::new::<Standard>(frames, 2);
        let zone = create::<Standard>(&world, frames);
        let mut out = 0;
        for order in [0, 3, 6, 7, 8, 9, 10, 0] {
            out += zone.get(request(order)).map_or(0, |_| 1 << order);
        }
        let again = World::of::<Standard>(frames, 2, &world.lines());
        for word in again.arrays.children.iter() {
            word.fetch_and(0xfc00_fc00, Ordering::Relaxed);
        }
        let (zone, opened) = open::<Standard>(&again, frames).unwrap();
        assert!(matches!(opened, Opened::Recovered { .. }));
        zone.check().unwrap();
        assert_eq!(zone.free_frames(), frames - out);
    }
}

#[test]
fn a_zone_that_is_wholly_allocated_stays_so() {
    for init in [Init::Allocated, Init::Free] {
        let world = World::new::<Tiny>(FRAMES, 1);
        TinyZone::create(FRAMES, &world.page, world.metadata(), init, Config::new(1), Cached).unwrap();
        let (free, opened) = free_in(&world.lines());
        assert_eq!(opened, Opened::Recovered { corrected: 0 });
        assert_eq!(free, if init == Init::Free { FRAMES } else { 0 });
    }
}

#[test]
fn what_is_no_zone_is_said_not_to_be() {
    let world = World::new::<Tiny>(FRAMES, 2);
    assert_eq!(refusal::<Tiny>(&world, FRAMES), Error::NotAZone { found: 0 });
    world.page.iter().for_each(|word| word.store(0x1234, Ordering::Relaxed));
    assert_eq!(refusal::<Tiny>(&world, FRAMES), Error::NotAZone { found: 0x1234 });
    assert_eq!(TinyZone::frames_in(&world.page), Err(Error::NotAZone { found: 0x1234 }));
}

#[test]
fn a_page_that_is_torn_at_any_word_is_refused() {
    for is_closed in [false, true] {
        let world = World::new::<Tiny>(FRAMES, 2);
        let zone = create::<Tiny>(&world, FRAMES);
        if is_closed {
            zone.close();
        }
        for at in 0..USED {
            for bits in [1, 1 << 40, u64::MAX, 0xff00] {
                flip(&world.page[at], bits);
                // Unused before the zone is closed.
                if at != FREE || is_closed {
                    let error = refusal::<Tiny>(&world, FRAMES);
                    let is_named = match error {
                        Error::NotAZone { .. } => at == MAGIC,
                        Error::Damaged { what, .. } => at != MAGIC && what.contains("seal"),
                        _ => false,
                    };
                    assert!(is_named, "word {at}: {error}");
                }
                flip(&world.page[at], bits);
            }
        }
        assert_eq!(TinyZone::frames_in(&world.page), Ok(FRAMES));
        assert!(open::<Tiny>(&world, FRAMES).is_ok());
    }
}

#[test]
fn a_zone_of_another_geometry_or_size_is_refused() {
    let world = World::new::<Standard>(Standard::TREE, 2);
    create::<Standard>(&world, Standard::TREE).close();
    let error = refusal::<Tiny>(&world, Standard::TREE);
    assert!(matches!(error, Error::Geometry { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "the zone has rows of 2^6 frames and trees of 32 huge frames, and 2^1 and 2 were asked for"
    );
    let asked = Standard::TREE - 1;
    assert_eq!(refusal::<Standard>(&world, asked), Error::OtherFrames { found: Standard::TREE, expected: asked });
}

#[test]
fn closed_children_that_do_not_add_up_are_refused() {
    let world = World::new::<Tiny>(FRAMES, 2);
    create::<Tiny>(&world, FRAMES).close();
    world.arrays.children[0].fetch_xor(1, Ordering::Relaxed);
    assert!(matches!(refusal::<Tiny>(&world, FRAMES), Error::Damaged { what, .. } if what.contains("children")));
}

#[test]
fn what_does_not_begin_with_a_cache_line_is_refused() {
    let world = World::new::<Standard>(Standard::TREE, 1);
    let metadata = world.arrays.metadata();
    let rows = array::<AtomicU64>(metadata.rows.len() + 1);
    let unaligned = Metadata { rows: &rows[1..], ..metadata };
    let create = |metadata| {
        PersistentZone::<Standard, _>::create(Standard::TREE, &world.page, metadata, Init::Free, Config::new(1), Cached)
    };
    assert_eq!(create(unaligned).err(), Some(Error::Unaligned { array: "rows", at: 8 }));
    create(metadata).unwrap().close();
    let open = PersistentZone::<Standard, _>::open(Standard::TREE, &world.page, unaligned, Config::new(1), Cached);
    assert_eq!(open.err(), Some(Error::Unaligned { array: "rows", at: 8 }));
}

#[test]
fn arrays_that_are_too_short_change_nothing() {
    let world = World::new::<Tiny>(FRAMES, 2);
    create::<Tiny>(&world, FRAMES).close();
    let before = world.lines();
    let more = Config::new(3);
    let short = Error::TooSmall { array: "locals", needed: 13, given: 8 };
    assert_eq!(TinyZone::open(FRAMES, &world.page, world.metadata(), more, Cached).err(), Some(short));
    assert_eq!(TinyZone::create(FRAMES, &world.page, world.metadata(), Init::Free, more, Cached).err(), Some(short));
    let short = Error::TooSmall { array: "page", needed: PAGE_WORDS, given: 8 };
    let page = &world.page[..8];
    let config = Config::new(2);
    assert_eq!(TinyZone::create(FRAMES, page, world.metadata(), Init::Free, config, Cached).err(), Some(short));
    assert!(world.lines() == before);
    assert_eq!(open::<Tiny>(&world, FRAMES).unwrap().1, Opened::Clean);
}

#[test]
fn f9_a_crash_in_a_creation_leaves_the_old_zone_or_none_or_the_new_one() {
    let mut rng = Rng::new(5);
    let old = World::new::<Tiny>(FRAMES, 2);
    let zone = create::<Tiny>(&old, FRAMES);
    let taken = zone.get(request(3)).unwrap();
    zone.get(request(0)).unwrap();
    let old_free = FRAMES - 9;
    for content in [old.lines(), vec![[!0; 8]; old.lines().len()], vec![[0; 8]; old.lines().len()]] {
        let world = World::of::<Tiny>(FRAMES, 2, &content);
        let watch = Watch::new(&world);
        PersistentZone::<Tiny, _>::create(FRAMES, &world.page, world.metadata(), Init::Free, Config::new(2), &watch)
            .unwrap();
        // The old zone, none, the new one.
        let mut least = 0;
        for moment in watch.moments() {
            let mut stages = Vec::new();
            for image in moment.images(12, &mut rng) {
                let found = World::of::<Tiny>(FRAMES, 2, &image);
                stages.push(match open::<Tiny>(&found, FRAMES) {
                    Err(error) => {
                        assert!(matches!(error, Error::NotAZone { .. }), "{error}");
                        1
                    }
                    Ok((zone, _)) if zone.free_frames() == old_free => {
                        assert!(!zone.is_free(taken).unwrap());
                        zone.check().unwrap();
                        0
                    }
                    Ok((zone, _)) => {
                        assert_eq!(zone.free_frames(), FRAMES);
                        zone.check().unwrap();
                        2
                    }
                });
            }
            assert!(stages.iter().all(|stage| *stage >= least), "a creation went back");
            least = *stages.iter().min().unwrap();
        }
        assert_eq!(least, 2, "a zone that was created is there");
    }
}

#[test]
fn f10_a_crash_in_a_closing_or_an_opening_leaves_a_clean_zone_or_one_in_use() {
    let mut rng = Rng::new(6);
    let world = World::new::<Tiny>(FRAMES, 2);
    let watch = Watch::new(&world);
    let create =
        PersistentZone::<Tiny, _>::create(FRAMES, &world.page, world.metadata(), Init::Free, Config::new(2), &watch);
    let zone = create.unwrap();
    let held = [0, 3, 1, 5, 4, 2].map(|order| (zone.get(request(order)).unwrap(), order));
    zone.put(held[3].0, request(0)).unwrap();
    let free = zone.free_frames();
    watch.moments();
    zone.close();
    let closing = watch.moments();
    let (zone, opened) =
        PersistentZone::<Tiny, _>::open(FRAMES, &world.page, world.metadata(), Config::new(2), &watch).unwrap();
    assert_eq!((opened, zone.free_frames()), (Opened::Clean, free));
    let opening = watch.moments();
    let mut seen = Vec::new();
    for moment in closing.iter().chain(&opening) {
        for image in moment.images(40, &mut rng) {
            let (found, opened) = free_in(&image);
            assert_eq!(found, free);
            seen.push(opened == Opened::Clean);
        }
    }
    assert!(!seen[0] && seen.contains(&true) && !seen[seen.len() - 1], "in use, closed, in use again");
}
