//! 10^6 operations in each geometry, 10^8 with `CRATON_FULL=1`.

use super::{P, World};
use crate::common::{Op, full};
use craton_base::{CollapseError, HugePageId};
use craton_pages::{Breaking, HugeBacking};
use craton_sim::{FaultRule, Rng, ThpMode};

/// Fills, thins out, fills again.
const TIDES: [u32; 5] = [80 * P, 8 * P, 160 * P, 2 * P, 120 * P];
const ERRORS: [Option<CollapseError>; 6] = [
    None,
    None,
    Some(CollapseError::NoMemory),
    Some(CollapseError::Busy),
    Some(CollapseError::Again),
    // Eight in a row would end collapses.
    Some(CollapseError::Unsupported),
];

#[derive(Clone, Copy)]
struct Course {
    capacity: u32,
    thp: ThpMode,
    /// One span in this many has up to eight hugepages.
    large: u64,
    /// In parts of a hundred.
    of_all: u64,
}

fn background(rng: &mut Rng, world: &World) -> Option<Op> {
    Some(match rng.below(1000) {
        0 => {
            let breaking = [Breaking::Never, Breaking::Surplus, Breaking::Always][rng.below(3) as usize];
            if rng.one_in(2) {
                Op::ReleaseAll(breaking)
            } else {
                Op::Release { pages: rng.size(20 * u64::from(P)) as u32, breaking }
            }
        }
        1 => Op::Back(HugeBacking { from: HugePageId(rng.below(300) as u32) }),
        // Some calls, then none.
        2 => Op::Refuse(if rng.one_in(2) { FaultRule::Every(1 + rng.below(5)) } else { FaultRule::Never }),
        3 => Op::Rate { bytes_per_s: rng.size(1 << 30) },
        4 => {
            let end = u64::from((world.sim.granted().0 + 1) * P);
            Op::Misuse { page: rng.below(end) as u32, len: rng.size(2 * u64::from(P)) as u32 }
        }
        5 => Op::Regions(!rng.one_in(4)),
        6..15 => Op::Tick,
        15..20 => Op::BeginCollapse,
        20..30 => Op::EndCollapse { error: *rng.pick(&ERRORS), took_ns: rng.below(60_000_000) },
        30..34 => Op::BeginRefill,
        34 => Op::Clear { fails: rng.one_in(8) },
        35 => Op::Helped(!rng.one_in(4)),
        36 if rng.one_in(8) => Op::RecordSlow,
        36..100 => Op::Wait { ns: rng.below(20_000_000) },
        _ => return None,
    })
}

/// Returns how often there were regions.
fn soak(seed: u64, course: Course) -> u32 {
    let ops = course.of_all * if full() { 1_000_000 } else { 10_000 };
    let mut rng = Rng::new(seed);
    let mut world = World::new(course.capacity, course.thp, HugeBacking::AUTO);
    let (mut refused, mut with_regions) = (0u64, 0);
    for i in 0..ops {
        let tide = TIDES[(i / (ops / 16).min(50_000)) as usize % TIDES.len()];
        let nth = rng.next_u64() as usize;
        let most = if rng.one_in(course.large) { 8 * P } else { P / 4 };
        let pages = rng.size(most.into()) as u32;
        let op = background(&mut rng, &world).unwrap_or_else(|| match rng.below(9) {
            0 => Op::Resize { nth, pages },
            _ if world.heap.live().0 < tide || rng.one_in(3) => {
                let align = if rng.one_in(10) { 1 << rng.below(u64::from(P.ilog2()) + 2) } else { 1 };
                Op::Alloc { pages, align, dense: rng.one_in(2) }
            }
            _ => Op::Free { nth },
        });
        let refused_below = world.faults.refused();
        if world.step(op).is_err() {
            refused += 1;
            if let Op::Alloc { pages, align, .. } = op {
                let faulty = world.faults.refused() > refused_below;
                assert!(faulty || world.refusal_is_right(pages, align), "{op:?} was refused without need");
            }
        }
        if i % (ops / 40).min(20_000) == 0 {
            world.check();
            with_regions += u32::from(world.heap.inner().stats().region.0 > 0);
        }
    }
    assert!(refused < ops / 2, "{refused} of {ops} operations were refused");
    world.faults.set(FaultRule::Never);
    world.drain();
    with_regions
}

#[test]
fn a_long_walk_on_small_pages() {
    soak(1, Course { capacity: 256, thp: ThpMode::Never, large: 50, of_all: 30 });
}

#[test]
fn a_long_walk_on_hugepages() {
    soak(2, Course { capacity: 256, thp: ThpMode::Always, large: 50, of_all: 30 });
}

#[test]
fn a_long_walk_where_hugepages_are_asked_for() {
    soak(3, Course { capacity: 256, thp: ThpMode::Madvise, large: 50, of_all: 30 });
}

#[test]
fn a_long_walk_with_regions() {
    let seen = soak(4, Course { capacity: 1100, thp: ThpMode::Madvise, large: 2, of_all: 10 });
    assert!(seen > 0, "no regions were seen");
}
