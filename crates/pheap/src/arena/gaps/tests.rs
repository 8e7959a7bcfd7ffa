use super::*;
use crate::arena::all_free;
use crate::class::{CLASSES, class_of};

/// Of an object of the slabs.
const SIZE: u64 = 128;
const GRANULES_EACH: u32 = (SIZE / GRANULE) as u32;

struct World {
    arena: Arena,
    classes: [Class; CLASSES],
    tcache: Tcache,
}

impl World {
    fn new() -> Self {
        let classes = std::array::from_fn(|class| Class::new(class, 6));
        Self { arena: Arena::new(true), classes, tcache: Tcache::new() }
    }

    fn class(&self) -> &Class {
        &self.classes[class_of(SIZE)]
    }

    fn full_slab(&mut self) -> usize {
        let class = *self.class();
        let at = (1 + self.arena.slabs.len() as u64) << 16;
        let taken = vec![u64::MAX; all_free(&class).len()].into();
        let index = self.arena.insert(at, class_of(SIZE), taken, 0);
        self.arena.relist_found(index, &class);
        index
    }

    fn release(&mut self, slab: usize, objects: impl Iterator<Item = u32> + Clone) {
        let class = *self.class();
        self.arena.release(slab, &class, objects.map(|object| class.mid_of(object)));
        assert!(self.arena.gaps_are_right(slab, &class));
    }

    /// First granules of guests that one search finds.
    fn host(&mut self, granules: u32, most: u32) -> Vec<(u64, u32)> {
        let number = class_of(u64::from(granules) * GRANULE);
        let hosted = self.arena.host(number, &self.classes, &self.tcache, granules, most);
        let class = &self.classes[number];
        let mut found = Vec::new();
        for stripe in 0..class.stripes {
            self.tcache.drain(number, class, stripe, class.cached, &mut found);
        }
        assert_eq!(found.len() as u32, hosted);
        let class = *self.class();
        (0..self.arena.slabs.len()).for_each(|slab| assert!(self.arena.gaps_are_right(slab, &class)));
        found.iter().map(|object| (object.at() >> 16, object.as_guest().first)).collect()
    }
}

#[test]
fn a3_the_shortest_gap_that_serves_has_the_guest() {
    let mut world = World::new();
    let slab = world.full_slab();
    world.release(slab, 0..150);
    // Reads the slab.
    assert_eq!(world.host(2, 1), [(1, 0)]);
    world.release(slab, 300..304);
    world.release(slab, 200..202);
    world.release(slab, 400..403);
    let first = |object: u32| object * GRANULES_EACH;
    assert_eq!(world.host(9, 1), [(1, first(400))]);
    assert_eq!(world.host(8, 1), [(1, first(200))]);
    // The rest of the third.
    assert_eq!(world.host(3, 1), [(1, first(400) + 9)]);
    assert_eq!(world.host(16, 1), [(1, first(300))]);
    // The freed neighbours of guests lengthen a gap.
    world.release(slab, 404..405);
    world.release(slab, 403..404);
    assert_eq!(world.host(8, 1), [(1, first(403))]);
}

#[test]
fn a_slab_takes_back_what_its_objects_took_of_a_gap() {
    let mut world = World::new();
    let slab = world.full_slab();
    world.release(slab, 0..150);
    world.host(2, 1);
    world.release(slab, 200..210);
    // The slab's class takes an object in the middle.
    let class = *world.class();
    let mid = class.mid_of(204);
    world.arena.slabs[slab].taken[(mid / 64) as usize] |= 1 << (mid % 64);
    world.arena.slabs[slab].free -= 1;
    world.arena.relist(slab, class.objects);
    let first = |object: u32| object * GRANULES_EACH;
    assert_eq!(world.host(20, 1), [(1, first(205))]);
    assert_eq!(world.host(16, 1), [(1, first(200))]);
}

#[test]
fn no_gap_is_forgotten_when_a_list_of_the_index_is_full() {
    let mut world = World::new();
    let (slabs, objects) = (6, world.class().objects);
    for _ in 0..slabs {
        let slab = world.full_slab();
        world.release(slab, (0..objects).step_by(2));
    }
    let gaps = slabs * objects / 2;
    assert!(gaps as usize > ENTRIES_MOST);
    let mut all = Vec::new();
    loop {
        let found = world.host(GRANULES_EACH, 1000);
        assert!(found.len() as u32 <= AT_ONCE);
        if found.is_empty() {
            break;
        }
        all.extend(found);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len() as u32, gaps);
}

#[test]
fn an_arena_without_guests_keeps_no_index() {
    let mut world = World { arena: Arena::new(false), ..World::new() };
    let slab = world.full_slab();
    world.release(slab, 0..150);
    assert_eq!(world.host(2, 1), []);
}
