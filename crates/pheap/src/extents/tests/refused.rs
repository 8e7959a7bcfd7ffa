//! Files that cannot grow, shrink or lose pages; and several threads.

use super::world::{World, config};
use crate::extents::{ExtentError, ExtentKind, Extents, PAGE_BYTES};
use craton_base::{Medium, Space};
use craton_sim::{Fallible, FaultRule, Rng, SimCached};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn any_growth_can_be_refused() {
    for nth in 1..10 {
        let mut world: World<true> = World::new(256 << 20, config(6, 65_536));
        world.medium.fail(Fallible::Resize, FaultRule::From(nth));
        let mut refused = 0;
        for round in 0..60 {
            let pages = if round % 2 == 0 { 16 } else { 1500 };
            let before = world.extents.ranges();
            match world.alloc(pages, ExtentKind::Object) {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error, ExtentError::NoMemory);
                    refused += 1;
                    let used = |ranges: &[crate::extents::Range]| {
                        let is_used =
                            |range: &&crate::extents::Range| matches!(range.state, crate::extents::RangeState::Used(_));
                        ranges.iter().filter(is_used).copied().collect::<Vec<_>>()
                    };
                    assert_eq!(used(&before), used(&world.extents.ranges()));
                }
            }
            world.check();
        }
        assert!(refused > 0);
        let Some(&page) = world.live.keys().next_back() else { continue };
        let pages = world.live[&page];
        world.free(page).unwrap();
        assert_eq!(world.alloc(pages, ExtentKind::Object), Ok(page));
        world.check();
    }
}

#[test]
fn discards_and_shrinking_can_be_refused() {
    let mut world: World<true> = World::new(64 << 20, config(6, 65_536));
    let pages: Vec<u64> = (0..20).map(|_| world.alloc(64, ExtentKind::Object).unwrap()).collect();
    pages.iter().for_each(|page| world.free(*page).unwrap());
    world.settle();
    world.medium.fail(Fallible::Discard, FaultRule::Every(2));
    world.medium.fail(Fallible::Resize, FaultRule::From(1));
    for _ in 0..500 {
        world.tick(50);
        world.check();
    }
    assert!(world.alloc(1000, ExtentKind::Object).is_ok());
    world.check();
}

#[test]
fn threads_get_different_pages() {
    let medium = SimCached::new(65_536, 256 << 20);
    let extents = Extents::create(&medium, config(6, 4096));
    extents.begin_epoch(1);
    let (owned, done) = (Mutex::new(BTreeSet::new()), AtomicU64::new(0));
    let work = |seed: u64| {
        let (mut rng, mut mine) = (Rng::new(seed), Vec::new());
        for _ in 0..3000 {
            if rng.below(2) == 0 {
                let pages = 1 + rng.below(40) as u32;
                let plan = extents.plan_alloc(&medium, pages, ExtentKind::Object).unwrap();
                let mut owned = owned.lock().unwrap();
                (0..u64::from(pages)).for_each(|page| assert!(owned.insert(plan.page + page)));
                drop(owned);
                medium.store(plan.home.at, plan.home.value);
                mine.push(plan.page);
            } else if !mine.is_empty() {
                let page = mine.swap_remove(rng.below(mine.len() as u64) as usize);
                let plan = extents.plan_free(&medium, page).unwrap();
                medium.store(plan.home.at, plan.home.value);
                let mut owned = owned.lock().unwrap();
                (0..u64::from(plan.pages)).for_each(|page| assert!(owned.remove(&(plan.page + page))));
                drop(owned);
                extents.finish_free(&plan, 1);
            }
        }
        done.fetch_add(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        let work = &work;
        (0..3).for_each(|seed| drop(scope.spawn(move || work(seed))));
        let mut now = 0;
        while done.load(Ordering::SeqCst) < 3 {
            now += 20;
            extents.tick(&medium, now, 1);
        }
    });
    extents.check().unwrap();
    let used: u64 = extents.list().iter().map(|there| u64::from(there.pages)).sum();
    assert_eq!(used, owned.lock().unwrap().len() as u64);
    assert!(extents.list().iter().all(|there| there.page * PAGE_BYTES < medium.limit()));
    let again = Extents::rebuild(&medium, config(6, 4096)).unwrap();
    assert_eq!(again.list(), extents.list());
}
