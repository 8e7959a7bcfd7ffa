//! Large requests, and objects that stay in place.

use super::world::world;
use crate::Found;
use crate::beyond::small_stays;
use crate::huge::HUGE_MIN;
use crate::size_class::{self, CLASSES, MAX_CLASSED};
use craton_base::{HUGEPAGE_SIZE, Pages};
use craton_sim::{Call, FaultRule};

const MIB: usize = 1 << 20;

#[test]
fn a_small_object_stays_until_it_grows_beyond_its_class_or_shrinks_to_half_of_it() {
    for class in 1..=CLASSES {
        let size = size_class::size_of_class(class);
        assert!(small_stays(class, size) && small_stays(class, size / 2 + 1), "class {class}");
        assert!(!small_stays(class, size + 1), "class {class}");
        let half = size / 2;
        assert_eq!(small_stays(class, half), size_class::class_of(half) == class, "class {class}");
        assert_eq!(small_stays(class, 1), class == 1, "class {class}");
    }
}

#[test]
fn a_large_object_is_resized_where_it_stands_unless_a_class_holds_it() {
    let w = world(32, 0);
    let object = w.large(2 * MIB);
    let resize = |size| w.heap.resize(object, w.heap.find(object), size);
    assert_eq!(resize(2 * MIB - 8191), Some(object));
    assert_eq!(w.usable(object), Ok(2 * MIB), "the same pages");
    assert_eq!(resize(MAX_CLASSED / 2), None, "so short it must be copied into a class");
    assert_eq!((resize(MAX_CLASSED / 2 + 1), w.usable(object)), (Some(object), Ok(MAX_CLASSED / 2 + 8192)));
    assert_eq!((resize(5 * MIB), w.usable(object)), (Some(object), Ok(5 * MIB)));
    let found = w.heap.find(object);
    assert_eq!(w.heap.resize(object, found, usize::MAX), None, "no mapping is so long");
    assert_eq!(w.heap.find(object), found);
}

#[test]
fn a_large_object_with_a_neighbour_behind_it_stays_as_it_was_and_must_be_copied() {
    let w = world(8, 0);
    let (object, next) = (w.large(300 << 10), w.large(300 << 10));
    assert_eq!(w.page(next).0, w.page(object).0 + 38);
    let (found, in_use) = (w.heap.find(object), w.heap.in_use());
    assert_eq!(w.heap.resize(object, found, 400 << 10), None);
    assert_eq!((w.heap.find(object), w.heap.in_use()), (found, in_use));
    w.give(next).unwrap();
    w.heap.release(|| ());
    assert_eq!(w.heap.resize(object, found, 400 << 10), Some(object), "now there is room");
}

#[test]
fn bad_pointers_and_objects_of_other_heaps_are_not_resized() {
    let w = world(8, 0);
    let object = w.large(MIB);
    w.give(object).unwrap();
    assert_eq!(w.heap.resize(object, w.heap.find(object), MIB), None);
    let small = w.take(size_class::class_of(100));
    assert_eq!(w.heap.resize(small, w.heap.find(small), 101), Some(small));
    assert_eq!(w.heap.resize(small, w.heap.find(small), 1000), None);
}

#[test]
fn from_32_mib_on_an_object_has_a_mapping_and_below_it_pages() {
    let w = world(64, 0);
    let (below, above) = (w.large(HUGE_MIN - 1), w.large(HUGE_MIN));
    assert!(matches!(w.heap.find(below), Found::Large { pages: Pages(4096), .. }));
    assert!(matches!(w.heap.find(above), Found::Huge(entry) if entry.bytes == HUGE_MIN));
    assert_eq!(above as usize % HUGEPAGE_SIZE, 0);
}

#[test]
fn each_of_region_and_mappings_serves_what_the_other_refuses() {
    let w = world(4, 0);
    let object = w.large(20 * MIB);
    assert!(matches!(w.heap.find(object), Found::Huge(_)), "the region has 8 MiB");
    let w = world(64, 0);
    w.faults.set_only(Call::Map, FaultRule::From(1));
    let object = w.large(HUGE_MIN);
    assert!(matches!(w.heap.find(object), Found::Large { .. }), "there is no mapping");
    assert!(w.large(usize::MAX - 4096).is_null() && w.large(isize::MAX as usize).is_null());
}

#[test]
fn alignments_are_kept_wherever_the_object_goes() {
    let w = world(64, 0);
    for (size, align) in
        [(300 << 10, 64 << 10), (MIB, MIB), (3 * MIB, HUGEPAGE_SIZE), (MIB, 4 << 20), (40 * MIB, 64 << 20)]
    {
        let object = w.heap.allocate_large(size, align, false);
        assert!(!object.is_null() && (object as usize).is_multiple_of(align), "{size} bytes at {align}");
        assert!(w.usable(object).unwrap() >= size);
        assert_eq!(matches!(w.heap.find(object), Found::Huge(_)), align > HUGEPAGE_SIZE, "{size} bytes at {align}");
        w.give(object).unwrap();
    }
}

#[test]
fn a_small_object_of_a_large_alignment_has_a_mapping_while_there_are_not_too_many() {
    let w = world(64, 0);
    let align = HUGEPAGE_SIZE / 4;
    let lonely = |size| matches!(w.heap.find(w.heap.allocate_large(size, align, false)), Found::Huge(_));
    assert!(lonely(64) && lonely(align / 4) && !lonely(align / 4 + 1));
    assert!(!w.heap.is_lonely(64, align / 2), "small objects share hugepages");
    for _ in 0..1022 {
        assert!(w.heap.is_lonely(64, align));
        w.heap.allocate_huge(1, 1, false);
    }
    assert!(!w.heap.is_lonely(64, align) && !lonely(64));
    let w = world(64, 0);
    w.faults.set_only(Call::Map, FaultRule::From(1));
    let object = w.heap.allocate_large(64, align, false);
    assert!(matches!(w.heap.find(object), Found::Large { .. }), "without a mapping the region serves");
}

#[test]
fn zeroed_objects_read_as_zeros_where_others_lay() {
    let w = world(4, 0);
    for zero in [false, true, true] {
        let object = w.heap.allocate_large(400 << 10, 1, zero);
        // SAFETY: the object is ours.
        unsafe {
            assert!(!zero || (0..400 << 10).step_by(64).all(|at| object.add(at).read() == 0));
            object.write_bytes(7, 400 << 10);
        }
        w.give(object).unwrap();
    }
}

#[test]
fn memory_at_hand_is_what_was_freed_a_moment_ago_and_not_too_long() {
    let w = world(8, 0);
    let object = w.large(300 << 10);
    assert!(w.heap.large_at_hand(300 << 10).is_null());
    w.give(object).unwrap();
    assert!(w.heap.large_at_hand(310 << 10).is_null(), "another length");
    assert_eq!(w.heap.large_at_hand((300 << 10) - 10), object);
    assert!(w.heap.large_at_hand(300 << 10).is_null(), "it is out");
    assert!(w.heap.large_at_hand(3 * MIB).is_null());
    // It lies at another processor's place.
    w.give(object).unwrap();
    w.system.set_cpu(1);
    assert!(w.heap.large_at_hand(300 << 10).is_null());
    w.system.set_cpu(0);
    assert_eq!(w.heap.large_at_hand(300 << 10), object);
}
