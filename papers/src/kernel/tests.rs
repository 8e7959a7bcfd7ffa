use super::*;
use crate::objects::{Arena, Caches, FastFits, LazyBuddy, Policy, PowerOfTwo};
use std::collections::HashSet;

#[test]
fn the_same_seed_is_the_same_trace_and_each_object_is_given_back_once() {
    let kinds = kinds();
    let trace = Trace::new(&kinds, 1, 7, Load::Usual);
    assert_eq!(trace.ops, Trace::new(&kinds, 1, 7, Load::Usual).ops);
    assert_ne!(trace.ops, Trace::new(&kinds, 1, 8, Load::Usual).ops);
    let mut out = HashSet::new();
    for op in &trace.ops {
        match op {
            Op::Get { kind, place } => {
                assert!(usize::from(*kind) < kinds.len() && (*place as usize) < trace.places);
                assert!(out.insert(*place), "the place {place} is not empty");
            }
            Op::Put { place } => assert!(out.remove(place), "the place {place} is empty"),
            Op::Second | Op::Step => {}
        }
    }
    assert_eq!(trace.ops.iter().filter(|op| **op == Op::Step).count(), STEPS.len());
}

#[test]
fn kinds_have_names_of_their_own_and_sizes_that_caches_take() {
    let kinds = kinds();
    let names: HashSet<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names.len(), kinds.len());
    assert!(kinds.len() > 200 && kinds.iter().all(|kind| (8..=8192).contains(&kind.bytes)));
}

#[test]
fn slabs_waste_less_than_powers_of_two_and_their_parts_make_up_the_whole() {
    let kinds = kinds();
    let trace = Trace::new(&kinds, 1, 0, Load::Usual);
    let arena = || Arena::new(4096);
    let slabs = play(&trace, &kinds, &mut Caches::new(arena(), &kinds, Policy::USUAL).unwrap()).unwrap();
    for held in &slabs {
        let unasked: usize = held.unasked.unwrap().named().iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(unasked, held.consumed - held.requested);
    }
    let bsd = play(&trace, &kinds, &mut PowerOfTwo::new(arena())).unwrap();
    let svr4 = play(&trace, &kinds, &mut LazyBuddy::new(arena())).unwrap();
    let sunos = play(&trace, &kinds, &mut FastFits::new(arena())).unwrap();
    for step in 0..STEPS.len() {
        assert!(slabs[step].fragmentation() < bsd[step].fragmentation());
        assert!(slabs[step].requested == sunos[step].requested && slabs[step].requested == svr4[step].requested);
    }
    let kept = Policy { interval_s: u64::MAX, ..Policy::USUAL };
    let kept = play(&trace, &kinds, &mut Caches::new(arena(), &kinds, kept).unwrap()).unwrap();
    assert!(kept[1].consumed > slabs[1].consumed && kept[1].consumed == kept[1].most);
}

#[test]
fn a_fast_fits_that_keeps_its_pages_wastes_more_than_slabs_after_a_spike() {
    let kinds = kinds();
    for load in [Load::Usual, Load::SmallSpike, Load::Between] {
        let trace = Trace::new(&kinds, 1, 0, load);
        let arena = || Arena::new(4096);
        let slabs = play(&trace, &kinds, &mut Caches::new(arena(), &kinds, Policy::USUAL).unwrap()).unwrap();
        let gives = play(&trace, &kinds, &mut FastFits::new(arena())).unwrap();
        let keeps = play(&trace, &kinds, &mut FastFits::keeping(arena())).unwrap();
        assert!(keeps[0].fragmentation() < slabs[0].fragmentation(), "after boot, as in the paper");
        for step in 1..STEPS.len() {
            let all = [&gives, &slabs, &keeps].map(|heap| heap[step].fragmentation());
            assert!(all.is_sorted(), "{load:?} {}: {all:?}", STEPS[step]);
        }
    }
}

#[test]
fn a_heap_without_room_names_the_object() {
    let kinds = kinds();
    let trace = Trace::new(&kinds, 1, 0, Load::Usual);
    let mut heap = Caches::new(Arena::new(64), &kinds, Policy::USUAL).unwrap();
    let why = play(&trace, &kinds, &mut heap).unwrap_err();
    assert!(why.contains("was refused"), "{why}");
}
