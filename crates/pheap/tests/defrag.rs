//! Defragmentation, and crashes meanwhile.

use crate::common::{Sim, create, options, slots_of, table};
use craton_pheap::{Error, Heap, Model, Moved, Offset, Slot};
use craton_sim::Rng;

const OBJECTS: u64 = 1300;

/// The slots' values; each object has its mark.
fn check<const F: bool>(heap: &Heap<Sim<F>>) -> Vec<u64> {
    heap.check().unwrap();
    let root = heap.root(b"table").unwrap().slot;
    let slots = slots_of(Offset(heap.read(root.0)), OBJECTS);
    let values: Vec<u64> = slots.iter().map(|slot| heap.read(slot.0)).collect();
    for (i, at) in values.iter().enumerate().filter(|(_, at)| **at != 0) {
        assert_eq!((heap.read(*at), heap.read(at + 136)), (i as u64 + 1, i as u64), "contents of {i}");
    }
    let mut objects = 0;
    heap.objects(|_, _| objects += 1);
    assert_eq!(objects, 1 + values.iter().filter(|at| **at != 0).count());
    values
}

/// A third of the objects is left.
fn sparse<const F: bool>(rng: &mut Rng) -> (Sim<F>, Heap<Sim<F>>, Vec<Slot>) {
    let (medium, heap) = create::<F>(Model::Log, 4 << 20);
    let slots = table(&heap, OBJECTS);
    for (i, slot) in slots.iter().enumerate() {
        let init = |heap: &Heap<Sim<F>>, at| {
            heap.write(at, 0, i as u64 + 1);
            heap.write(at, 136, i as u64);
        };
        heap.alloc_with(*slot, 150, init).unwrap();
    }
    for slot in &slots {
        if !rng.one_in(3) {
            heap.free_from(*slot).unwrap();
        }
    }
    (medium, heap, slots)
}

fn moves<const F: bool>() {
    let mut rng = Rng::new(5);
    let (medium, heap, slots) = sparse::<F>(&mut rng);
    let (before, slabs) = (check(&heap), heap.stats().slabs);
    let mut moved = 0;
    for slot in slots.iter().step_by(9) {
        let before = check(&heap);
        medium.record();
        moved += heap.defrag([*slot]).unwrap().objects;
        let after = check(&heap);
        for moment in medium.take_moments() {
            for image in moment.new_images(6, &mut rng) {
                let (again, _) = Heap::open(Sim::<F>::from_image(&image), options()).unwrap();
                let values = check(&again);
                assert!(values == before || values == after);
            }
        }
        if moved > 12 {
            break;
        }
    }
    assert!(moved > 12);
    let all = heap.defrag(slots.iter().copied()).unwrap();
    assert!(all.objects > 50 && all.bytes == all.objects * 160, "{all:?}");
    let after = check(&heap);
    assert_eq!(before.iter().filter(|at| **at != 0).count(), after.iter().filter(|at| **at != 0).count());
    assert!(heap.stats().slabs < slabs, "{} slabs of {slabs}", heap.stats().slabs);
    let again = heap.defrag(slots.iter().copied()).unwrap();
    assert!(again.objects < all.objects / 2, "{again:?} after {all:?}");
    let (again, _) = Heap::open(Sim::<F>::from_image(&medium.now().seen()), options()).unwrap();
    assert_eq!(check(&again), check(&heap));
}

#[test]
fn objects_move_whole_and_empty_slabs_go() {
    moves::<true>();
    moves::<false>();
}

#[test]
fn slots_without_small_objects_are_passed_over() {
    let (_, heap) = create::<true>(Model::Log, 1 << 20);
    let slots = table(&heap, OBJECTS);
    heap.alloc_to(slots[0], 70_000).unwrap();
    assert_eq!(heap.defrag(slots.iter().copied()), Ok(Moved::default()));
    heap.set(slots[1], heap.read(slots[0].0) + 8).unwrap();
    assert_eq!(heap.defrag([slots[1]]), Ok(Moved::default()));
    assert_eq!(heap.defrag([Slot(12)]), Err(Error::NotASlot { at: 12 }));
}
