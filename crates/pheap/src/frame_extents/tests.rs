use super::{FrameConfig, FrameExtents, FrameMemory};
use crate::extents::{ExtentError, ExtentKind, Plan, UNIT_PAGES};
use craton_base::atomic::{AtomicU32, AtomicU64, Ordering};
use craton_base::{Medium, Space, SpaceError};
use craton_sim::Rng;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Words in DRAM. Half words are in an array apart, as two kinds of atomics share no memory.
struct Arrays {
    words: Vec<AtomicU64>,
    halves: Vec<AtomicU32>,
    halves_at: u64,
    discarded: Mutex<Vec<(u64, u64)>>,
}

impl Arrays {
    fn new(len: u64, config: &FrameConfig) -> Self {
        let words = (0..len / 8).map(|_| AtomicU64::new(0)).collect();
        let halves = (0..config.sizes().children + 16).map(|_| AtomicU32::new(0)).collect();
        Self { words, halves, halves_at: config.children(), discarded: Mutex::default() }
    }
}

impl Medium for Arrays {
    const FLUSHES: bool = false;

    fn len(&self) -> u64 {
        8 * self.words.len() as u64
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        &self.words[at as usize / 8]
    }

    fn flush(&self, _: u64) {}

    fn fence(&self) {}

    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        // From the next line on, wherever the allocator put the array.
        let skipped = (64 - self.words.as_ptr().addr() % 64) % 64 / 8;
        self.words.get(skipped + at as usize / 8..)?.get(..words)
    }

    fn half_words(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        assert_eq!(at, self.halves_at);
        let skipped = (64 - self.halves.as_ptr().addr() % 64) % 64 / 4;
        self.halves.get(skipped..)?.get(..words)
    }
}

impl Space for Arrays {
    fn resize(&self, _: u64) -> Result<(), SpaceError> {
        Err(SpaceError::Fixed)
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        self.discarded.lock().unwrap().push((at, len));
        Ok(())
    }

    fn limit(&self) -> u64 {
        self.len()
    }
}

/// The table as the zone sees it: `words` may be shifted against `word`.
fn store(extents: &FrameExtents<'_, Arrays>, plan: &Plan) {
    let frame = (plan.home.at - extents.config.table()) / 8;
    extents.table[frame as usize].store(plan.home.value, Ordering::Release);
}

fn config() -> FrameConfig {
    FrameConfig { meta: 4096, data: 1 << 20, pages: 40_000, processors: 2, salt: 3 }
}

fn medium() -> Arrays {
    Arrays::new((1 << 20) + 64, &config())
}

#[test]
fn records_fit_before_the_data() {
    let config = config();
    assert!(config.meta + config.meta_bytes() <= config.data);
}

#[test]
fn nf1_nf2_extents_survive_and_plans_do_not() {
    let (config, medium, mut rng) = (config(), medium(), Rng::new(5));
    let mut live: BTreeMap<u64, u32> = BTreeMap::new();
    for generation in 0..12 {
        let memory = FrameMemory::new(&config);
        let extents = match generation {
            0 => FrameExtents::create(&medium, &memory, config).unwrap(),
            _ => FrameExtents::open(&medium, &memory, config).unwrap().0,
        };
        let found: BTreeMap<u64, u32> = extents.list().iter().map(|there| (there.page, there.pages)).collect();
        assert_eq!(found, live);
        let used: u64 = live.values().map(|pages| u64::from(*pages)).sum();
        assert_eq!(extents.free_pages(), config.pages - used);
        for step in 0..400_u64 {
            if rng.below(2) == 0 || live.is_empty() {
                let pages = [1, 5, 16, 16, 16, 20, 100, 700, 1024, 3000][rng.below(10) as usize];
                let kind = if pages == 16 { ExtentKind::Slab } else { ExtentKind::Object };
                let Ok(plan) = extents.plan_alloc(pages, kind) else { continue };
                let end = plan.page + u64::from(pages);
                assert!(live.iter().all(|(page, n)| end <= *page || page + u64::from(*n) <= plan.page));
                if u64::from(pages) % UNIT_PAGES == 0 {
                    assert_eq!(plan.page % UNIT_PAGES, 0);
                }
                match rng.below(8) {
                    0 => extents.cancel(&plan),
                    _ => {
                        store(&extents, &plan);
                        live.insert(plan.page, pages);
                        assert_eq!(extents.extent_at(end - 1).unwrap().page, plan.page);
                    }
                }
            } else {
                let page = *live.keys().nth(rng.below(live.len() as u64) as usize).unwrap();
                let plan = extents.plan_free(page).unwrap();
                assert_eq!(extents.plan_free(page), Err(ExtentError::NotAllocated { page }));
                match rng.below(8) {
                    0 => extents.cancel(&plan),
                    _ => {
                        store(&extents, &plan);
                        extents.finish_free(&plan, generation);
                        live.remove(&page);
                    }
                }
            }
            extents.tick(step * 60, generation);
        }
        // A crash with a plan of each kind, and a free that is committed and not ended.
        let _ = extents.plan_alloc(20, ExtentKind::Object);
        if generation % 3 != 0 {
            let pages: Vec<u64> = live.keys().copied().take(2).collect();
            let plans: Vec<_> = pages.iter().map(|page| extents.plan_free(*page).unwrap()).collect();
            store(&extents, &plans[0]);
            live.remove(&pages[0]);
        } else {
            // Closed with a plan lost would count wrong: end it first.
            drop(extents);
        }
    }
    assert!(!medium.discarded.lock().unwrap().is_empty());
}

#[test]
fn wrong_pages_and_damage_are_refused() {
    let (config, medium) = (config(), medium());
    let memory = FrameMemory::new(&config);
    let extents = FrameExtents::create(&medium, &memory, config).unwrap();
    let plan = extents.plan_alloc(20, ExtentKind::Object).unwrap();
    store(&extents, &plan);
    for page in [plan.page + 1, 0, 255, u64::MAX, 1 << 40] {
        assert_eq!(extents.plan_free(page), Err(ExtentError::NotAllocated { page }));
    }
    assert_eq!(extents.plan_alloc(0, ExtentKind::Object), Err(ExtentError::Pages { pages: 0 }));
    assert_eq!(extents.plan_alloc(50_000, ExtentKind::Object), Err(ExtentError::NoMemory));
    assert_eq!(extents.free_pages(), config.pages - 20);
    extents.close();
    let memory = FrameMemory::new(&config);
    let (extents, freed) = FrameExtents::open(&medium, &memory, config).unwrap();
    assert_eq!((freed, extents.list().len()), (0, 1));
    let frame = (plan.page - config.data / 4096) as usize;
    let word = extents.table[frame].load(Ordering::Relaxed);
    for bit in 0..64 {
        extents.table[frame].store(word ^ 1 << bit, Ordering::Relaxed);
        let memory = FrameMemory::new(&config);
        let refused = FrameExtents::open(&medium, &memory, config).map(|_| ());
        assert_eq!(refused, Err(ExtentError::Corrupt { what: "entry of an extent", at: plan.home.at }), "bit {bit}");
    }
}
