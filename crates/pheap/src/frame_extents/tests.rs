use super::{FrameConfig, FrameExtents};
use crate::extents::{ExtentError, ExtentKind, Plan, UNIT_PAGES};
use craton_base::Medium;
use craton_sim::{Fallible, FaultRule, Image, Rng, SimCached};
use std::collections::BTreeMap;

const META: u64 = 4096;
const DATA: u64 = 1 << 20;

fn config() -> FrameConfig {
    FrameConfig { meta: META, data: DATA, pages: 40_000, processors: 2, salt: 3 }
}

fn medium() -> SimCached {
    SimCached::new(DATA + UNIT_PAGES * 4096, DATA + 40_000 * 4096)
}

#[test]
fn records_fit_before_the_data() {
    assert!(META + FrameConfig::bytes_for(config().pages) <= DATA);
}

#[test]
fn nf1_nf2_nf3_extents_survive_and_plans_do_not() {
    let (config, mut medium, mut rng) = (config(), medium(), Rng::new(5));
    let mut live: BTreeMap<u64, u32> = BTreeMap::new();
    let mut longest = 0;
    for generation in 0..12 {
        let extents = match generation {
            0 => FrameExtents::create(&medium, config).unwrap(),
            _ => FrameExtents::open(&medium, config, false).unwrap().0,
        };
        extents.check(&medium).unwrap();
        let found: BTreeMap<u64, u32> = extents.list(&medium).iter().map(|there| (there.page, there.pages)).collect();
        assert_eq!(found, live);
        let stats = extents.stats(&medium);
        assert_eq!(stats.used_pages, live.values().map(|pages| u64::from(*pages)).sum::<u64>());
        assert_eq!(stats.used_pages + stats.reclaimed_pages + stats.retained_pages, (medium.len() - DATA) / 4096);
        for step in 0..400_u64 {
            if rng.below(2) == 0 || live.is_empty() {
                let pages = [1, 5, 16, 16, 16, 20, 100, 700, 1024, 3000][rng.below(10) as usize];
                let kind = if pages == 16 { ExtentKind::Slab } else { ExtentKind::Object };
                let Ok(plan) = extents.plan_alloc(&medium, pages, kind) else { continue };
                let end = plan.page + u64::from(pages);
                assert!(live.iter().all(|(page, n)| end <= *page || page + u64::from(*n) <= plan.page));
                assert!(end * 4096 <= medium.len());
                if u64::from(pages) % UNIT_PAGES == 0 {
                    assert_eq!(plan.page % UNIT_PAGES, 0);
                }
                match rng.below(8) {
                    0 => extents.cancel(&medium, &plan),
                    _ => {
                        store(&medium, &plan);
                        live.insert(plan.page, pages);
                        assert_eq!(extents.extent_at(&medium, end - 1).unwrap().page, plan.page);
                    }
                }
            } else {
                let page = *live.keys().nth(rng.below(live.len() as u64) as usize).unwrap();
                let plan = extents.plan_free(&medium, page).unwrap();
                assert_eq!(extents.plan_free(&medium, page), Err(ExtentError::NotAllocated { page }));
                match rng.below(8) {
                    0 => extents.cancel(&medium, &plan),
                    _ => {
                        store(&medium, &plan);
                        extents.finish_free(&medium, &plan, generation);
                        live.remove(&page);
                    }
                }
            }
            extents.tick(&medium, step * 60, generation);
        }
        extents.check(&medium).unwrap();
        longest = longest.max(medium.len());
        // A crash with plans, and with a free that is committed and not ended.
        let _ = extents.plan_alloc(&medium, 20, ExtentKind::Object);
        if generation % 3 != 0 {
            let pages: Vec<u64> = live.keys().copied().take(2).collect();
            let plans: Vec<_> = pages.iter().map(|page| extents.plan_free(&medium, *page).unwrap()).collect();
            store(&medium, &plans[0]);
            live.remove(&pages[0]);
        } else {
            // `open` finds the plan's frames by the sum.
            extents.close(&medium);
        }
        medium = SimCached::from_image(&medium.now().seen());
    }
    // The file becomes short again.
    let extents = FrameExtents::open(&medium, config, true).unwrap().0;
    let end = live.last_key_value().map_or(0, |(page, pages)| page + u64::from(*pages));
    let freed: u64 = live.values().map(|pages| u64::from(*pages)).sum();
    for page in live.into_keys() {
        let plan = extents.plan_free(&medium, page).unwrap();
        store(&medium, &plan);
        extents.finish_free(&medium, &plan, 20);
    }
    (0..400).for_each(|step| extents.tick(&medium, step * 10_000, 19));
    // Where the last object lay depends on the thread's number.
    assert!(freed > 0 && medium.len() >= end * 4096, "epoch 20 is not settled");
    assert!(extents.stats(&medium).reclaimed_pages >= freed, "epoch 20 is not settled");
    (400..800).for_each(|step| extents.tick(&medium, step * 10_000, 20));
    extents.check(&medium).unwrap();
    assert_eq!(extents.stats(&medium).reclaimed_pages, 0);
    assert!(medium.len() < longest / 8, "{} of {longest}", medium.len());
}

fn store(medium: &SimCached, plan: &Plan) {
    medium.store(plan.home.at, plan.home.value);
}

#[test]
fn wrong_pages_and_damage_are_refused() {
    let (config, medium) = (config(), medium());
    let extents = FrameExtents::create(&medium, config).unwrap();
    let plan = extents.plan_alloc(&medium, 20, ExtentKind::Object).unwrap();
    store(&medium, &plan);
    for page in [plan.page + 1, 0, 255, u64::MAX, 1 << 40] {
        assert_eq!(extents.plan_free(&medium, page), Err(ExtentError::NotAllocated { page }));
    }
    assert_eq!(extents.plan_alloc(&medium, 0, ExtentKind::Object), Err(ExtentError::Pages { pages: 0 }));
    assert_eq!(extents.plan_alloc(&medium, 50_000, ExtentKind::Object), Err(ExtentError::NoMemory));
    extents.check(&medium).unwrap();
    extents.close(&medium);
    let image = medium.now().seen();
    let (extents, freed) = FrameExtents::open(&SimCached::from_image(&image), config, false).unwrap();
    assert_eq!((freed, extents.list(&medium).len()), (0, 1));
    let open = |image: &Image| FrameExtents::open(&SimCached::from_image(image), config, false).map(drop);
    for bit in 0..64 {
        let mut bad = image.clone();
        bad.set_word(plan.home.at, image.word(plan.home.at) ^ 1 << bit);
        let refused = Err(ExtentError::Corrupt { what: "entry of an extent", at: plan.home.at });
        assert_eq!(open(&bad), refused, "bit {bit}");
    }
    let mut short = image;
    short.set_len(DATA);
    assert!(matches!(open(&short), Err(ExtentError::Corrupt { .. })));
}

#[test]
fn a_full_disk_is_an_error_and_changes_nothing() {
    let (config, medium) = (config(), medium());
    let extents = FrameExtents::create(&medium, config).unwrap();
    medium.fail(Fallible::Allocate, FaultRule::From(1));
    assert_eq!(extents.plan_alloc(&medium, 5, ExtentKind::Object), Err(ExtentError::NoMemory));
    medium.fail(Fallible::Allocate, FaultRule::Never);
    medium.fail(Fallible::Resize, FaultRule::From(1));
    assert_eq!(extents.plan_alloc(&medium, 17, ExtentKind::Object), Err(ExtentError::NoMemory));
    extents.check(&medium).unwrap();
    assert_eq!(extents.stats(&medium).used_pages, 0);
    assert!(extents.plan_alloc(&medium, 5, ExtentKind::Object).is_ok());
}
