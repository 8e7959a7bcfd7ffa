//! Every sequence of up to three or four operations, six in the full form, on three hugepages.

use super::{P, World};
use crate::common::{Op, full};
use craton_pages::{Breaking, HugeBacking};
use craton_sim::ThpMode;

/// On both sides of each border.
const OPS: [Op; 15] = [
    Op::alloc(1, 1),
    Op::Alloc { pages: 2, align: 2, dense: true },
    Op::alloc(P / 2 - 1, P / 4),
    Op::alloc(P - 1, 1),
    Op::alloc(P, 1),
    Op::alloc(P + P / 4, 1),
    Op::alloc(3, 2 * P),
    Op::Free { nth: 0 },
    Op::Free { nth: usize::MAX },
    Op::Resize { nth: 0, pages: P / 2 - 2 },
    Op::Resize { nth: 0, pages: P },
    Op::Resize { nth: 0, pages: P + P / 2 },
    Op::Resize { nth: 0, pages: 2 * P },
    Op::Release { pages: 1, breaking: Breaking::Never },
    Op::ReleaseAll(Breaking::Always),
];

/// Checks after the last step: beginnings are sequences too.
fn run(mut code: u32, len: u32, thp: ThpMode) {
    let mut world = World::new(3, thp, HugeBacking::ALWAYS);
    let mut done = [None; 8];
    for i in 0..len {
        let op = OPS[code as usize % OPS.len()];
        code /= OPS.len() as u32;
        done[i as usize] = Some(op);
        let before = (i + 1 == len).then(|| world.snapshot());
        let refused = world.step(op).is_err();
        if let (Some(before), true) = (before, refused) {
            assert_eq!(world.snapshot(), before, "a refusal changed the state: {done:?}");
            if let Op::Alloc { pages, align, .. } = op {
                assert!(world.refusal_is_right(pages, align), "refused without need: {done:?}");
            }
        }
    }
    world.check();
    world.drain();
}

fn every_sequence(longest: u32, thp: ThpMode) {
    for len in 1..=longest {
        (0..(OPS.len() as u32).pow(len)).for_each(|code| {
            // A panic of the heap does not know its sequence.
            let result = std::panic::catch_unwind(|| run(code, len, thp));
            assert!(result.is_ok(), "sequence {code} of {len} operations, {thp:?}");
        });
    }
}

/// With hugepages of 8 pages one operation reaches more.
fn longest() -> u32 {
    match full() {
        true => 6,
        false if P < 256 => 4,
        false => 3,
    }
}

#[test]
fn every_short_sequence_keeps_the_invariants_on_small_pages() {
    every_sequence(longest(), ThpMode::Never);
}

#[test]
fn every_short_sequence_keeps_the_invariants_on_hugepages() {
    every_sequence(longest(), ThpMode::Always);
}
