use super::*;
use craton_sim::{Call, FaultPlan, FaultRule, Rng, SimSystem};
use std::collections::BTreeMap;

fn entry(at: usize, len: u32) -> Entry {
    Entry { at, bytes: len as usize * HUGEPAGE_SIZE }
}

fn give(stretches: &mut Stretches, system: &SimSystem, entry: Entry) {
    if let Some(empty) = stretches.give(entry) {
        system.unmap(empty.at, empty.bytes);
    }
}

#[test]
fn objects_never_overlap_and_empty_stretches_go_but_for_a_short_one() {
    let (system, mut stretches, mut rng) = (SimSystem::default(), Stretches::NONE, Rng::new(11));
    let mut live: BTreeMap<usize, u32> = BTreeMap::new();
    for round in 0..30_000 {
        let grows = round % 10_000 < 5_000;
        if rng.below(10) < if grows { 6 } else { 4 } {
            let len = 2 + rng.below(15) as u32;
            let at = stretches.take(&system, HugePages(len)).unwrap();
            live.insert(at, len);
        } else if let Some((&at, &len)) = live.iter().nth(rng.below(1 + live.len() as u64) as usize) {
            live.remove(&at);
            if rng.below(4) == 0 && stretches.lengthen(entry(at, len), (len as usize + 1) * HUGEPAGE_SIZE) {
                live.insert(at, len + 1);
            } else {
                give(&mut stretches, &system, entry(at, len));
            }
        }
        assert!(live.keys().all(|at| stretches.hold(*at)));
        let mut end = 0;
        for (at, len) in &live {
            assert!(*at >= end, "{at:#x} begins in another");
            end = at + *len as usize * HUGEPAGE_SIZE;
        }
        let bytes: usize = live.values().map(|len| *len as usize * HUGEPAGE_SIZE).sum();
        assert_eq!(system.mapped(), bytes + stretches.free_bytes());
    }
    assert!(stretches.end > 2, "several stretches were in use");
    live.into_iter().for_each(|(at, len)| give(&mut stretches, &system, entry(at, len)));
    assert!(system.mapped() <= FIRST as usize * HUGEPAGE_SIZE);
    assert!(!stretches.hold(0));
}

#[test]
fn addresses_of_a_freed_object_serve_the_next_one_and_what_follows_a_longer_one() {
    let (system, mut stretches) = (SimSystem::default(), Stretches::NONE);
    let take = |stretches: &mut Stretches, len| stretches.take(&system, HugePages(len)).unwrap();
    let (a, b) = (take(&mut stretches, 4), take(&mut stretches, 4));
    assert_eq!(b, a + 4 * HUGEPAGE_SIZE);
    assert!(!stretches.lengthen(entry(a, 4), 5 * HUGEPAGE_SIZE), "the next object lies behind it");
    assert_eq!(stretches.give(entry(b, 4)), None);
    assert!(stretches.lengthen(entry(a, 4), 5 * HUGEPAGE_SIZE));
    assert_eq!(take(&mut stretches, 4), a + 5 * HUGEPAGE_SIZE);
    assert!(!stretches.lengthen(entry(a, 5), 64 * HUGEPAGE_SIZE), "longer than the stretch");
}

#[test]
fn without_memory_or_places_nothing_is_taken() {
    let faults = FaultPlan::default();
    let (system, mut stretches) = (SimSystem::new(faults.clone()), Stretches::NONE);
    faults.set_only(Call::Map, FaultRule::Nth(1));
    assert_eq!(stretches.take(&system, HugePages(2)), None);
    assert_eq!((stretches.end, stretches.free_bytes()), (0, 0));
    assert!(stretches.take(&system, HugePages(2)).is_some());
    assert_eq!(stretches.take(&system, HugePages(LONGEST + 1)), None, "longer than any stretch");
}
