use super::world::{DATA, World, config, reopen};
use crate::extents::decay::Decay;
use crate::extents::starts::Starts;
use crate::extents::{ExtentError, ExtentKind, Extents, PAGE_BYTES, RangeState, UNIT_PAGES};
use craton_base::Medium;
use std::collections::BTreeSet;

const SLAB: ExtentKind = ExtentKind::Slab;
const OBJECT: ExtentKind = ExtentKind::Object;

fn world(limit: u64) -> World<true> {
    World::new(limit, config(6, 65_536))
}

#[test]
fn starts_finds_the_last_member() {
    let (mut starts, mut naive, mut rng) = (Starts::new(), BTreeSet::new(), craton_sim::Rng::new(7));
    let mut end = 1;
    for step in 0..20_000_u64 {
        if step % 2000 == 0 {
            end = (end * 9).min(1 << 20);
            starts.grow(end);
        }
        let page = rng.below(end);
        if rng.below(3) > 0 {
            starts.insert(page);
            naive.insert(page);
        } else {
            starts.remove(page);
            naive.remove(&page);
        }
        let at = rng.below(end);
        assert_eq!(starts.last_up_to(at), naive.range(..=at).next_back().copied());
    }
}

#[test]
fn e3_extents_are_aligned() {
    let mut world = world(64 << 20);
    for pages in [1, 3, 15, 16, 17, 20, 31, 32, 5, 48, 700, 16, 9, 9, 9] {
        let page = world.alloc(pages, OBJECT).unwrap();
        if u64::from(pages) % UNIT_PAGES == 0 {
            assert_eq!(page % UNIT_PAGES, 0);
        }
        if u64::from(pages) < UNIT_PAGES {
            assert!(page % UNIT_PAGES + u64::from(pages) <= UNIT_PAGES);
        }
        world.check();
    }
}

#[test]
fn best_fit_takes_the_smallest_range() {
    let mut world = world(64 << 20);
    let sizes = [40, 20, 64, 24, 100];
    let pages: Vec<u64> = sizes
        .iter()
        .map(|size| {
            let page = world.alloc(*size, OBJECT).unwrap();
            world.alloc(17, OBJECT).unwrap();
            page
        })
        .collect();
    for page in &pages {
        world.free(*page).unwrap();
    }
    assert_eq!(world.alloc(19, OBJECT), Ok(pages[1]));
    assert_eq!(world.alloc(24, OBJECT), Ok(pages[3]));
    assert_eq!(world.alloc(90, OBJECT), Ok(pages[4]));
    world.check();
}

#[test]
fn freed_neighbours_coalesce() {
    let mut world = world(64 << 20);
    let pages: Vec<u64> = (0..8).map(|_| world.alloc(16, SLAB).unwrap()).collect();
    for at in [1, 3, 5, 7, 2, 0, 4, 6] {
        world.free(pages[at]).unwrap();
        world.check();
    }
    let reclaimed: Vec<_> =
        world.extents.ranges().into_iter().filter(|range| range.state == RangeState::Reclaimed).collect();
    assert_eq!(reclaimed.len(), 1);
    assert_eq!(reclaimed[0].pages, 8 * 16);
}

#[test]
fn wrong_pages_are_refused() {
    let mut world = world(64 << 20);
    let page = world.alloc(20, OBJECT).unwrap();
    for wrong in [page + 1, page - 1, page + 20, 0, u64::MAX, 1 << 40] {
        assert_eq!(world.plan_free(wrong).unwrap_err(), ExtentError::NotAllocated { page: wrong });
    }
    world.plan_free(page).unwrap();
    assert_eq!(world.plan_free(page).unwrap_err(), ExtentError::NotAllocated { page });
    world.drain();
    assert_eq!(world.plan_free(page).unwrap_err(), ExtentError::NotAllocated { page });
    assert_eq!(world.plan_alloc(0, OBJECT).unwrap_err(), ExtentError::Pages { pages: 0 });
    assert_eq!(world.plan_alloc(1 << 26, OBJECT).unwrap_err(), ExtentError::Pages { pages: 1 << 26 });
    world.check();
}

#[test]
fn a_full_file_refuses_and_serves_again() {
    let mut world = world(DATA + (1 << 20));
    let mut pages = Vec::new();
    while let Ok(page) = world.alloc(16, SLAB) {
        pages.push(page);
        world.check();
    }
    // One unit holds the log.
    assert_eq!(pages.len(), 15);
    assert_eq!(world.alloc(1, OBJECT), Err(ExtentError::NoMemory));
    // Frees go on, though nothing is settled.
    for round in 0..2000 {
        let page = pages[round % 15];
        world.free(page).unwrap();
        assert_eq!(world.alloc(16, SLAB), Ok(page), "round {round}");
        if round % 500 == 0 {
            world.settle();
            world.tick(1000);
        }
    }
    world.check();
}

#[test]
fn a_large_extent_takes_the_whole_heap() {
    let mut world = world(1 << 30);
    let page = world.alloc(200_000, OBJECT).unwrap();
    assert_eq!(world.extents.extent_at(page + 123_456).unwrap().page, page);
    assert_eq!(world.alloc(100_000, OBJECT), Err(ExtentError::NoMemory));
    world.free(page).unwrap();
    // With memory and without, side by side.
    assert!(world.alloc(250_000, OBJECT).is_ok());
    world.check();
}

#[test]
fn e5_memory_goes_back_after_settling_and_time() {
    let mut world = world(64 << 20);
    let pages: Vec<u64> = (0..100).map(|_| world.alloc(64, OBJECT).unwrap()).collect();
    let keep = world.alloc(16, SLAB).unwrap();
    for page in pages {
        world.free(page).unwrap();
    }
    let len = world.medium.len();
    for _ in 0..1000 {
        world.tick(50);
    }
    assert_eq!(world.extents.stats().reclaimed_pages, 6400, "nothing is settled");
    world.settle();
    let mut before = u64::MAX;
    for _ in 0..250 {
        world.tick(50);
        let reclaimed = world.extents.stats().reclaimed_pages;
        assert!(reclaimed <= before);
        before = reclaimed;
        world.check();
    }
    assert_eq!(before, 0);
    world.free(keep).unwrap();
    world.settle();
    (0..1000).for_each(|_| world.tick(50));
    assert!(world.medium.len() < len / 2, "{} of {len}", world.medium.len());
    world.check();
    assert!(world.alloc(1000, OBJECT).is_ok());
}

#[test]
fn pages_freed_within_a_step_stay_until_the_next() {
    let mut decay = Decay::new();
    assert_eq!(decay.excess(0, 100), 0);
    assert_eq!((decay.excess(0, 5000), decay.excess(49, 9000)), (0, 0));
    assert_eq!(decay.excess(20_000, 9000), 100);
    assert_eq!(decay.excess(40_000, 9000), 9000);
}

#[test]
fn decay_follows_the_curve() {
    let mut decay = Decay::new();
    assert_eq!(decay.excess(0, 0), 0);
    assert_eq!(decay.excess(50, 1_000_000), 0);
    let mut kept = Vec::new();
    for step in 2..=201 {
        kept.push(1_000_000 - decay.excess(50 * step, 1_000_000));
    }
    for (nth, kept) in kept.iter().enumerate() {
        let x = 1.0 - (nth + 1) as f64 / 200.0;
        let curve = 1e6 * x * x * x * (x * (6.0 * x - 15.0) + 10.0);
        assert!((*kept as f64 - curve).abs() < 2.0, "step {nth}: {kept} and {curve}");
    }
}

#[test]
fn cancelled_plans_leave_nothing() {
    let mut world = world(64 << 20);
    let page = world.alloc(20, OBJECT).unwrap();
    for _ in 0..1000 {
        world.plan_alloc(33, OBJECT).unwrap();
        world.plan_free(page).unwrap();
        world.cancel(1);
        world.cancel(0);
        world.check();
    }
    assert!(world.extents.stats().log.chunks < 16);
    let world = reopen(world.medium.clone(), config(6, 65_536));
    assert_eq!(world.live.into_iter().collect::<Vec<_>>(), [(page, 20)]);
}

#[test]
fn the_log_stays_small_where_extents_come_and_go() {
    for stripes in [1, 4, 6, 16] {
        let mut world: World<true> = World::new(64 << 20, config(stripes, 4096));
        let keep: Vec<u64> = (0..50).map(|_| world.alloc(4, OBJECT).unwrap()).collect();
        for round in 0..5000 {
            let page = world.alloc(20, OBJECT).unwrap();
            world.free(page).unwrap();
            if round % 100 == 0 {
                world.settle();
                world.tick(1);
            }
        }
        let stats = world.extents.stats();
        assert!(stats.log.chunks <= 6, "{stats:?}");
        assert!(stats.log_pages <= 2 * UNIT_PAGES, "{stats:?}");
        assert_eq!(stats.extents, keep.len() as u64);
        world.check();
        let world = reopen(world.medium.clone(), config(stripes, 4096));
        world.check();
        assert_eq!(world.live.len(), keep.len());
    }
}

#[test]
fn damage_is_refused_with_its_place() {
    let mut world = world(64 << 20);
    for _ in 0..300 {
        let page = world.alloc(16, SLAB).unwrap();
        if page.is_multiple_of(48) {
            world.free(page).unwrap();
        }
    }
    world.settle();
    let contents = world.medium.now().images(1, &mut craton_sim::Rng::new(1)).next().unwrap();
    let chunks = world.extents.chunks();
    let mut refused = 0;
    let sealed: Vec<u64> = chunks.iter().filter(|chunk| chunk.is_sealed).map(|chunk| chunk.at).collect();
    assert!(!sealed.is_empty());
    let words = (0..128).map(|word| sealed[0] + 8 * word).filter(|at| at % 1024 != 24);
    let header = (0..4).map(|word| 4096 + 8 * word);
    for at in words.chain(header) {
        for bit in [0, 1, 2, 7, 20, 37, 40, 50, 63] {
            let medium = craton_sim::SimMedium::from_image(&contents);
            medium.store(at, medium.load(at) ^ 1 << bit);
            match Extents::rebuild(&medium, config(6, 65_536)) {
                Err(ExtentError::Corrupt { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
                // The head that is not in use.
                Ok(_) => assert_eq!(at, 4096 + 16, "bit {bit} of the word at {at:#x}"),
            }
        }
    }
    assert!(refused > 1000);
    let _ = PAGE_BYTES;
}
