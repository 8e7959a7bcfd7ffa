//! A long deterministic walk: 2·10^6 operations, 10^8 with `CRATON_FULL=1`.

mod common;

use common::{Op, P, World, full};
use craton_base::HugePageId;
use craton_pages::{Breaking, HugeBacking};
use craton_sim::{FaultRule, Rng, ThpMode};

/// Demand moves between these many pages, so that the heap is filled, thinned out and filled again.
const TIDES: [u32; 5] = [80 * P, 8 * P, 160 * P, 2 * P, 120 * P];

fn soak(seed: u64, thp: ThpMode, ops: u64) {
    let mut rng = Rng::new(seed);
    let mut world = World::new(256, thp, HugeBacking::AUTO);
    let mut refused = 0u64;
    for i in 0..ops {
        let tide = TIDES[(i / 50_000) as usize % TIDES.len()];
        let nth = rng.next_u64() as usize;
        let pages = if rng.one_in(50) { rng.size(8 * u64::from(P)) } else { rng.size(u64::from(P / 4)) } as u32;
        let op = match rng.below(1000) {
            0 => {
                let breaking = [Breaking::Never, Breaking::Surplus, Breaking::Always][rng.below(3) as usize];
                if rng.one_in(2) {
                    Op::ReleaseAll(breaking)
                } else {
                    Op::Release { pages: rng.size(20 * u64::from(P)) as u32, breaking }
                }
            }
            1 => Op::Back(HugeBacking { from: HugePageId(rng.below(300) as u32) }),
            2 => {
                // For a while the floor refuses some calls, then none.
                let rule = if rng.one_in(2) { FaultRule::Every(1 + rng.below(5)) } else { FaultRule::Never };
                world.faults.set(rule);
                continue;
            }
            3 => Op::Rate { bytes_per_s: rng.size(1 << 30) },
            4..20 => Op::Tick,
            20..100 => Op::Wait { ns: rng.below(20_000_000) },
            100..200 => Op::Resize { nth, pages },
            _ if world.heap.live().0 < tide || rng.one_in(3) => Op::Alloc {
                pages,
                align: if rng.one_in(10) { 1 << rng.below(u64::from(2 * P.ilog2()) - 6) } else { 1 },
                dense: rng.one_in(2),
            },
            _ => Op::Free { nth },
        };
        let refused_below = world.faults.refused();
        if world.step(op).is_err() {
            refused += 1;
            if let Op::Alloc { pages, align, .. } = op {
                let faulty = world.faults.refused() > refused_below;
                assert!(faulty || world.refusal_is_right(pages, align), "{op:?} was refused without need");
            }
        }
        if i % 20_000 == 0 {
            world.check();
        }
    }
    assert!(refused < ops / 2, "{refused} of {ops} operations were refused");
    world.faults.set(FaultRule::Never);
    world.drain();
}

fn operations() -> u64 {
    if full() { 50_000_000 } else { 1_000_000 }
}

#[test]
fn a_million_operations_on_small_pages() {
    soak(1, ThpMode::Never, operations());
}

#[test]
fn a_million_operations_on_hugepages() {
    soak(2, ThpMode::Always, operations());
}
