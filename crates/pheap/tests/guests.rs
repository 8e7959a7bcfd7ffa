//! Guests, and crashes meanwhile.

use crate::common::{Sim, create, options, table};
use crate::morph::{OBJECTS, check, crash};
use craton_pheap::{Error, Heap, Model, Offset, Slot};
use craton_sim::Rng;

fn guests<const F: bool>(heap: &Heap<Sim<F>>) -> u32 {
    heap.slabs().iter().map(|slab| slab.guests).sum()
}

/// Frees every second run of `run` objects. Returns the free slots.
fn make_gaps<const F: bool>(heap: &Heap<Sim<F>>, slots: &[Slot], size: u64, run: usize) -> Vec<Slot> {
    slots.iter().for_each(|slot| _ = heap.alloc_to(*slot, size).unwrap());
    let mut by_place = slots.to_vec();
    by_place.sort_by_key(|slot| heap.read(slot.0));
    let free: Vec<Slot> = by_place.chunks(run).step_by(2).flatten().copied().collect();
    free.iter().for_each(|slot| heap.free_from(*slot).unwrap());
    free
}

fn host<const F: bool>(from: u64, to: u64) {
    let (medium, heap) = create::<F>(Model::Log, 8 << 20);
    let slots = table(&heap, OBJECTS);
    let mut rng = Rng::new(from);
    // Whole slabs: one just begun would change its class.
    let first = heap.alloc_to(slots[0], from).unwrap();
    let objects = 64_512 / heap.size_of(first).unwrap();
    heap.free_from(slots[0]).unwrap();
    let fill = (OBJECTS / objects).min(5) as usize * objects as usize;
    let free = make_gaps(&heap, &slots[..fill], from, (to / from) as usize + 2);
    let slabs = heap.stats().slabs;
    // More than two refills serve.
    let made = &free[..8];
    for slot in made {
        crash(&medium, &heap, &mut rng, || _ = heap.alloc_to(*slot, to).unwrap());
    }
    assert!(guests(&heap) >= 8, "{from} to {to}: {} guests", guests(&heap));
    assert_eq!((heap.stats().mixed, heap.stats().slabs), (0, slabs), "{from} to {to}");
    made.iter().for_each(|slot| assert!(heap.size_of(Offset(heap.read(slot.0))).unwrap() >= to));
    let values = check(&heap);
    let (again, _) = Heap::open(Sim::<F>::from_image(&medium.now().seen()), options()).unwrap();
    let again = Heap::open(again.close(), options()).unwrap().0;
    assert_eq!((check(&again), guests(&again)), (values, guests(&heap)));
    // Its place serves again.
    let at = heap.read(made[0].0);
    crash(&medium, &heap, &mut rng, || heap.free_from(made[0]).unwrap());
    heap.set(free[20], at).unwrap();
    assert_eq!(heap.free_from(free[20]).unwrap_err(), heap.size_of(Offset(at)).unwrap_err());
    assert!(matches!(heap.size_of(Offset(at)), Err(Error::AlreadyFree { .. } | Error::NotAnObject { .. })));
    assert!(matches!(
        heap.size_of(Offset(heap.read(made[1].0) + 16)),
        Err(Error::NotAnObject { .. } | Error::AlreadyFree { .. })
    ));
    heap.set(free[20], 0).unwrap();
    crash(&medium, &heap, &mut rng, || _ = heap.alloc_to(made[0], to).unwrap());
    crash(&medium, &heap, &mut rng, || _ = heap.realloc(made[2], from).unwrap());
    for slot in &slots[..fill] {
        if heap.read(slot.0) != 0 {
            heap.free_from(*slot).unwrap();
        }
    }
    assert_eq!(guests(&heap), 0);
    check(&heap);
}

#[test]
fn a_gap_serves_another_class() {
    for (from, to) in [(200, 64), (200, 500), (100, 250), (300, 1500), (1000, 5000)] {
        host::<true>(from, to);
        host::<false>(from, to);
    }
}

#[test]
fn a_random_load_over_gaps_survives_crashes() {
    for seed in 0..6 {
        let (medium, heap) = create::<true>(Model::Log, 2 << 20);
        let slots = table(&heap, OBJECTS);
        let mut rng = Rng::new(seed);
        make_gaps(&heap, &slots[..1300], 150, 3);
        let mut heap = Some(heap);
        let mut medium = medium;
        for round in 0..40 {
            let there = heap.take().unwrap();
            for _ in 0..60 {
                let slot = *rng.pick(&slots);
                if there.read(slot.0) == 0 {
                    match there.alloc_to(slot, *rng.pick(&[64, 150, 150, 230, 400, 1000, 2000])) {
                        Ok(_) | Err(Error::NoMemory) => {}
                        Err(error) => panic!("{error}"),
                    }
                } else {
                    there.free_from(slot).unwrap();
                }
            }
            let before = check(&there);
            if round % 4 == 3 {
                drop(there);
                medium = Sim::<true>::from_image(&medium.now().durable());
                let again = Heap::open(medium.clone(), options()).unwrap().0;
                assert_eq!(check(&again), before);
                heap = Some(again);
            } else {
                heap = Some(there);
            }
        }
    }
}
