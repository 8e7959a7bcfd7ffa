//! Prints the DRAM of extents: `PAIRS=400000 cargo test --release -p craton-pheap -- cost
//! --nocapture`.

use super::world::{DATA, config};
use crate::extents::{ExtentKind, Extents};
use craton_base::atomic::{AtomicU64, Ordering};
use craton_base::{Medium, Space, SpaceError};
use std::sync::OnceLock;
use std::time::Instant;

const LIMIT: u64 = 1 << 30;

/// Pages made when first touched.
struct Plain {
    pages: Vec<OnceLock<Box<[AtomicU64; 512]>>>,
    len: AtomicU64,
}

impl Medium for Plain {
    const FLUSHES: bool = false;

    fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        let page = self.pages[at as usize / 4096].get_or_init(|| Box::new([const { AtomicU64::new(0) }; 512]));
        &page[at as usize % 4096 / 8]
    }

    fn flush(&self, _: u64) {}

    fn fence(&self) {}
}

impl Space for Plain {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        self.len.store(len, Ordering::Relaxed);
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), SpaceError> {
        Ok(())
    }

    fn limit(&self) -> u64 {
        LIMIT
    }
}

fn measure(name: &str, live: usize, sizes: impl Fn(u64) -> u32) {
    let medium = Plain { pages: (0..LIMIT / 4096).map(|_| OnceLock::new()).collect(), len: AtomicU64::new(DATA) };
    let extents = Extents::create(&medium, config(6, 65_536));
    extents.begin_epoch(1);
    let mut rng = craton_sim::Rng::new(3);
    let alloc = |rng: &mut craton_sim::Rng| {
        let pages = sizes(rng.next_u64());
        let kind = if pages == 16 { ExtentKind::Slab } else { ExtentKind::Object };
        let plan = extents.plan_alloc(&medium, pages, kind).unwrap();
        medium.store(plan.home.at, plan.home.value);
        plan.page
    };
    let free = |page: u64, epoch: u64| {
        let plan = extents.plan_free(&medium, page).unwrap();
        medium.store(plan.home.at, plan.home.value);
        extents.finish_free(&plan, epoch);
    };
    let mut pages: Vec<u64> = (0..live).map(|_| alloc(&mut rng)).collect();
    let mut best = f64::MAX;
    let pairs: u64 = std::env::var("PAIRS").map_or(5000, |pairs| pairs.parse().unwrap());
    let mut epoch = 1;
    for round in 1..=5_u64 {
        let begun = Instant::now();
        for pair in 0..pairs {
            let at = rng.below(live as u64) as usize;
            free(pages[at], epoch);
            pages[at] = alloc(&mut rng);
            if pair % 4096 == 0 {
                epoch += 1;
                extents.begin_epoch(epoch);
                extents.tick(&medium, round * 50, epoch - 2);
            }
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / pairs as f64);
    }
    let stats = extents.stats();
    let free = extents.ranges().len() as u64 - stats.slabs - stats.extents;
    println!("{name}: {best:.0} ns a free and an alloc, {live} live, {free} free ranges; {:?}", stats.log);
    let begun = Instant::now();
    let again = Extents::rebuild(&medium, config(6, 65_536)).unwrap();
    println!("    opened in {} us", begun.elapsed().as_micros());
    assert_eq!(again.list(), extents.list());
}

#[test]
fn cost_of_an_extent() {
    measure("slabs", 1000, |_| 16);
    measure("slabs", 10_000, |_| 16);
    measure("32 to 512 KiB", 1000, |random| 8 + (random % 121) as u32);
    measure("multiples of 32 KiB", 1000, |random| 8 + 8 * (random % 8) as u32);
    measure("16 KiB to 2 MiB", 400, |random| 4 + (random % 509) as u32);
}
