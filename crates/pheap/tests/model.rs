//! A heap against a list of what each slot has.

use crate::common::{config, create, options, slots_of, table};
use craton_pheap::{Error, Heap, Model, Offset};
use craton_sim::SimPersistent;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Act {
    Alloc(usize, u64),
    Free(usize),
    Realloc(usize, u64),
    Move(usize, usize),
    Reopen,
    Crash,
    Maintain(u64),
}

const SLOTS: usize = 24;

fn act() -> impl Strategy<Value = Act> {
    let slot = 0..SLOTS;
    let size = prop_oneof![4 => 1u64..300, 3 => 300u64..17_000, 1 => 17_000u64..200_000];
    prop_oneof![
        8 => (slot.clone(), size.clone()).prop_map(|(slot, size)| Act::Alloc(slot, size)),
        6 => slot.clone().prop_map(Act::Free),
        3 => (slot.clone(), size).prop_map(|(slot, size)| Act::Realloc(slot, size)),
        2 => (slot.clone(), slot).prop_map(|(a, b)| Act::Move(a, b)),
        1 => Just(Act::Reopen),
        1 => Just(Act::Crash),
        1 => (0u64..100_000).prop_map(Act::Maintain),
    ]
}

fn run<const F: bool>(kind: Model, acts: &[Act]) {
    let (mut medium, heap) = create::<F>(kind, 1 << 20);
    table(&heap, SLOTS as u64);
    let mut heap = Some(heap);
    let mut model: Vec<Option<(u64, u64)>> = vec![None; SLOTS];
    for (i, act) in acts.iter().enumerate() {
        let there = heap.take().unwrap();
        let slots = slots_of(Offset(there.read(there.root(b"table").unwrap().slot.0)), SLOTS as u64);
        let mark = i as u64 + 1;
        let next = match *act {
            Act::Alloc(slot, size) if model[slot].is_none() => {
                match there.alloc_with(slots[slot], size.max(8), |heap, at| heap.write(at, 0, mark)) {
                    Ok(at) => {
                        assert!(there.size_of(at).unwrap() >= size);
                        model[slot] = Some((mark, size));
                    }
                    Err(error) => assert_eq!(error, Error::NoMemory),
                }
                there
            }
            Act::Alloc(slot, _) | Act::Free(slot) => {
                let result = there.free_from(slots[slot]);
                assert_eq!(result.is_ok(), model[slot].take().is_some(), "{result:?}");
                there
            }
            Act::Realloc(slot, size) if model[slot].is_some() => {
                match there.realloc(slots[slot], size.max(8)) {
                    Ok(_) => model[slot] = model[slot].map(|(mark, _)| (mark, size)),
                    Err(error) => assert_eq!(error, Error::NoMemory),
                }
                there
            }
            Act::Move(a, b) if a != b && model[b].is_none() => {
                let mut batch = there.batch();
                batch.set(slots[b], there.read(slots[a].0));
                batch.set(slots[a], 0);
                batch.commit().unwrap();
                model.swap(a, b);
                there
            }
            Act::Reopen => Heap::open(there.close(), options()).unwrap().0,
            Act::Crash => {
                drop(there);
                medium = SimPersistent::from_image(&medium.now().durable());
                Heap::open(medium.clone(), options()).unwrap().0
            }
            Act::Maintain(now) => {
                there.maintain(now);
                there
            }
            _ => there,
        };
        next.check().unwrap();
        let mut live = 1;
        for (slot, model) in slots.iter().zip(&model) {
            let at = next.read(slot.0);
            assert_eq!((at != 0).then(|| next.read(at)), model.map(|(mark, _)| mark));
            live += u64::from(at != 0);
        }
        let mut objects = 0;
        next.objects(|_, _| objects += 1);
        assert_eq!(objects, live);
        heap = Some(next);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slots_have_what_the_model_has(acts in proptest::collection::vec(act(), 1..120)) {
        run::<true>(Model::Log, &acts);
        run::<false>(Model::Log, &acts);
        if acts.len() % 3 == 0 {
            run::<true>(Model::Frames, &acts);
            run::<false>(Model::Frames, &acts);
        }
    }
}

#[test]
fn a_full_heap_refuses_and_frees() {
    [Model::Log, Model::Frames].into_iter().for_each(fill);
}

fn fill(model: Model) {
    let (medium, heap) = create::<true>(model, 1 << 20);
    let slots = table(&heap, 2000);
    for size in [64, 1000, 16_000, 20_000] {
        for round in 0..3 {
            let filled = slots.iter().take_while(|slot| heap.alloc_to(**slot, size).is_ok()).count();
            assert!(filled > 10 || size > 15_000 && filled > 5, "round {round}: {filled} objects of {size}");
            let before = heap.stats();
            if filled < slots.len() {
                assert_eq!(heap.alloc_to(slots[filled], size), Err(Error::NoMemory));
                assert_eq!(heap.read(slots[filled].0), 0);
                let after = heap.stats();
                assert_eq!((after.small, after.large), (before.small, before.large));
            }
            slots[..filled].iter().for_each(|slot| heap.free_from(*slot).unwrap());
            heap.check().unwrap();
        }
    }
    let (heap, _) = Heap::open(craton_sim::SimMedium::from_image(&medium.now().durable()), options()).unwrap();
    heap.check().unwrap();
    assert_eq!(heap.uuid(), config(model).uuid);
}
