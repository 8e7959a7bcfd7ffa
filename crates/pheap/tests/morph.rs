//! Slabs that change their class, and crashes meanwhile.

use crate::common::{Sim, create, options, slots_of, table};
use craton_pheap::{Heap, Model, Offset, Slot};
use craton_sim::{Image, Rng};

pub const OBJECTS: u64 = 2100;

/// The table's values; the heap has these objects alone.
pub fn check<const F: bool>(heap: &Heap<Sim<F>>) -> Vec<u64> {
    heap.check().unwrap();
    let root = heap.root(b"table").unwrap().slot;
    let slots = slots_of(Offset(heap.read(root.0)), OBJECTS);
    let values: Vec<u64> = slots.iter().map(|slot| heap.read(slot.0)).collect();
    let mut owned: Vec<u64> = values.iter().copied().filter(|at| *at != 0).chain([heap.read(root.0)]).collect();
    owned.sort_unstable();
    let mut objects = Vec::new();
    let mut end = 0;
    heap.objects(|at, bytes| {
        assert!(at.0 >= end, "objects overlap");
        end = at.0 + bytes;
        objects.push(at.0);
    });
    assert_eq!(owned, objects);
    values
}

fn verify<const F: bool>(image: &Image, before: &[u64], after: &[u64]) {
    let (heap, _) = Heap::open(Sim::<F>::from_image(image), options()).unwrap();
    let values = check(&heap);
    assert!(values == before || values == after);
}

pub fn crash<const F: bool>(medium: &Sim<F>, heap: &Heap<Sim<F>>, rng: &mut Rng, act: impl FnOnce()) {
    let before = check(heap);
    medium.record();
    act();
    let after = check(heap);
    for moment in medium.take_moments() {
        for image in moment.new_images(12, rng) {
            verify::<F>(&image, &before, &after);
        }
    }
}

fn sparse<const F: bool>(from: u64, to: u64) {
    let (medium, heap) = create::<F>(Model::Log, 8 << 20);
    let slots = table(&heap, OBJECTS);
    let mut rng = Rng::new(from);
    // Few objects are left in the first slab.
    let fill = OBJECTS.min(2 * 64_512 / from + 4);
    let slots: Vec<Slot> = slots[..fill as usize].to_vec();
    slots.iter().for_each(|slot| _ = heap.alloc_to(*slot, from).unwrap());
    let kept = (64_512 / from / 8).min(60);
    for (i, slot) in slots.iter().enumerate() {
        let is_kept = i as u64 % (fill / kept) == 3 && (i as u64) < fill / 2;
        if !is_kept {
            heap.free_from(*slot).unwrap();
        }
    }
    let before = heap.stats();
    assert_eq!(before.mixed, 0);
    let free: Vec<Slot> = slots.iter().copied().filter(|slot| heap.read(slot.0) == 0).collect();
    let old: Vec<Slot> = slots.iter().copied().filter(|slot| heap.read(slot.0) != 0).collect();
    let mut made = 0;
    while heap.stats().mixed == 0 && made < free.len() {
        crash(&medium, &heap, &mut rng, || _ = heap.alloc_to(free[made], to).unwrap());
        made += 1;
    }
    assert_eq!(heap.stats().mixed, 1, "{from} to {to}: no slab changed its class");
    // It survives a close.
    let image = medium.now().seen();
    let (again, _) = Heap::open(Sim::<F>::from_image(&image), options()).unwrap();
    assert_eq!(again.stats().mixed, 1);
    assert_eq!(again.size_of(Offset(again.read(old[0].0))), heap.size_of(Offset(heap.read(old[0].0))));
    let again = Heap::open(again.close(), options()).unwrap().0;
    check(&again);
    let few = old.len().saturating_sub(3);
    for (i, slot) in old.iter().enumerate() {
        if i < 3 || i >= few {
            crash(&medium, &heap, &mut rng, || heap.free_from(*slot).unwrap());
        } else {
            heap.free_from(*slot).unwrap();
        }
    }
    assert_eq!(heap.stats().mixed, 0);
    check(&heap);
    for slot in &free[..made] {
        heap.free_from(*slot).unwrap();
    }
    check(&heap);
}

#[test]
fn a_sparse_slab_serves_another_class() {
    for (from, to) in [(64, 200), (64, 1000), (200, 64), (1000, 5000), (5000, 300)] {
        sparse::<true>(from, to);
        sparse::<false>(from, to);
    }
}
