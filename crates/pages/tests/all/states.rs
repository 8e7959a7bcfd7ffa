//! Every state that a few operations reach on a few hugepages, visited once. Spans are named by
//! address, so that the order of requests alone makes no state.

use super::{P, World};
use crate::common::{Op, full};
use craton_base::{CollapseError, HugePageId};
use craton_pages::{Breaking, HugeBacking};
use craton_sim::{FaultRule, ThpMode};
use std::collections::HashSet;

const SECOND: u64 = 1_000_000_000;

/// On both sides of each border: one page, half a hugepage, all but one page of it, a whole one,
/// slack donated, two.
const OPS: [Op; 38] = [
    Op::alloc(1, 1),
    Op::alloc(2, 2),
    Op::alloc(P / 2, 1),
    Op::alloc(P / 2 - 1, P / 4),
    Op::alloc(P - 1, 1),
    Op::alloc(P, 1),
    Op::alloc(P + 1, 1),
    Op::alloc(2 * P, 1),
    Op::alloc(3, 2 * P),
    Op::Alloc { pages: 1, align: 1, dense: true },
    Op::Alloc { pages: 2, align: 2, dense: true },
    Op::Alloc { pages: 3, align: 1, dense: true },
    Op::Free { nth: 0 },
    Op::Free { nth: 1 },
    Op::Free { nth: 2 },
    Op::Free { nth: 3 },
    Op::Resize { nth: 0, pages: 1 },
    Op::Resize { nth: 0, pages: P / 2 },
    Op::Resize { nth: 0, pages: P },
    Op::Resize { nth: 0, pages: 2 * P - 1 },
    Op::Resize { nth: 1, pages: 2 },
    Op::Resize { nth: 1, pages: P - 2 },
    Op::Resize { nth: 1, pages: P + 2 },
    Op::Resize { nth: 2, pages: 3 },
    Op::Resize { nth: 2, pages: P + 1 },
    Op::Release { pages: 1, breaking: Breaking::Never },
    Op::Release { pages: 1, breaking: Breaking::Always },
    Op::ReleaseAll(Breaking::Surplus),
    Op::ReleaseAll(Breaking::Always),
    Op::Wait { ns: 400 * SECOND },
    Op::Tick,
    Op::BeginCollapse,
    Op::EndCollapse { error: None, took_ns: 0 },
    Op::EndCollapse { error: Some(CollapseError::Busy), took_ns: SECOND },
    Op::Back(HugeBacking { from: HugePageId(1) }),
    Op::Back(HugeBacking::NEVER),
    Op::Refuse(FaultRule::Nth(1)),
    Op::Refuse(FaultRule::Every(2)),
];

#[derive(Clone, Copy, Debug)]
struct Start {
    capacity: u32,
    thp: ThpMode,
    backing: HugeBacking,
    first: &'static [Op],
}

/// Shown when the heap panics.
struct Path<'a>(Start, &'a [u8]);

impl Drop for Path<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let ops: Vec<Op> = self.1.iter().map(|code| OPS[usize::from(*code)]).collect();
            eprintln!("from {:?}: {ops:?}", self.0);
        }
    }
}

fn step(world: &mut World, op: Op) -> bool {
    match op {
        // The same as another one.
        Op::Free { nth } | Op::Resize { nth, .. } if nth >= world.out.len() => return true,
        _ => {}
    }
    let done = world.step(op).is_ok();
    world.out.sort_by_key(|span| span.first);
    done
}

fn replay(start: Start, path: &[u8]) -> World {
    let mut world = World::new(start.capacity, start.thp, start.backing);
    let steps = path.iter().map(|code| OPS[usize::from(*code)]);
    for op in start.first.iter().copied().chain(steps) {
        step(&mut world, op);
    }
    world
}

/// Until `most` were extended; returns how many, and how far.
fn walk(start: Start, most: usize) -> (usize, usize) {
    let mut seen = HashSet::from([replay(start, &[]).fingerprint()]);
    let mut frontier: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut next, mut left, mut depth) = (Vec::new(), most, 0);
    while !frontier.is_empty() {
        depth += 1;
        for path in frontier.drain(..) {
            if left == 0 {
                return (seen.len(), depth);
            }
            left -= 1;
            for code in 0..OPS.len() as u8 {
                let path = [path.as_slice(), &[code]].concat();
                let _shown = Path(start, &path);
                let mut world = replay(start, &path[..path.len() - 1]);
                let (before, op) = (world.snapshot(), OPS[usize::from(code)]);
                let refused_below = world.faults.refused();
                if !step(&mut world, op) {
                    assert_eq!(world.snapshot(), before, "a refusal changed the state");
                    if let Op::Alloc { pages, align, .. } = op {
                        let faulty = world.faults.refused() > refused_below;
                        assert!(faulty || world.refusal_is_right(pages, align), "refused without need");
                    }
                }
                if !seen.insert(world.fingerprint()) {
                    continue;
                }
                world.check();
                next.push(path.clone());
                world.faults.set(FaultRule::Never);
                world.drain();
            }
        }
        std::mem::swap(&mut frontier, &mut next);
    }
    (seen.len(), depth)
}

fn most() -> usize {
    let most = if P < 256 { 250 } else { 25 };
    if full() { 200 * most } else { most }
}

fn walk_all(capacity: u32, first: &'static [Op]) {
    for thp in [ThpMode::Never, ThpMode::Madvise, ThpMode::Always] {
        for backing in [HugeBacking::ALWAYS, HugeBacking { from: HugePageId(2) }] {
            let start = Start { capacity, thp, backing, first };
            let (states, depth) = walk(start, most());
            println!("{start:?}: {states} states, up to {depth} operations away");
            assert!(states > most(), "{start:?}: only {states} states");
        }
    }
}

#[test]
fn every_near_state_of_two_hugepages_is_sound() {
    walk_all(2, &[]);
}

#[test]
fn every_near_state_of_three_hugepages_is_sound() {
    walk_all(3, &[]);
}

/// Broken, and one with a donated tail.
const BROKEN: [Op; 5] = [
    Op::alloc(P / 2, 1),
    Op::alloc(P / 2, 1),
    Op::alloc(P + 1, 1),
    Op::Free { nth: 1 },
    Op::ReleaseAll(Breaking::Always),
];

#[test]
fn every_near_state_of_a_broken_and_guarded_heap_is_sound() {
    walk_all(4, &BROKEN);
}

const DONATED: [Op; 3] = [Op::alloc(P + 1, 1), Op::alloc(P + 1, 1), Op::alloc(1, 1)];

#[test]
fn every_near_state_of_a_heap_with_donated_tails_is_sound() {
    walk_all(5, &DONATED);
}
