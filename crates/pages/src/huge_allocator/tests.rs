use super::*;
use crate::testing::{Counting, trackers};
use craton_base::Huge64K;

fn allocator(capacity: u32) -> (HugeAllocator<Huge64K>, Trackers<Huge64K>, Counting) {
    (HugeAllocator::new(HugePages(capacity)), trackers(capacity), Counting::new(capacity))
}

const ONE: HugePages = HugePages(1);

#[test]
fn address_space_comes_in_steps_and_is_used_from_the_front() {
    let (mut a, mut t, mut floor) = allocator(100);
    for i in 0..GROW_MIN.0 {
        assert_eq!(a.alloc(&mut t, &mut floor, ONE, ONE, 0), Ok(HugePageId(i)));
    }
    assert_eq!(floor.granted, [GROW_MIN]);
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(3), HugePages(4), 0), Ok(HugePageId(16)));
    assert_eq!((floor.granted.len(), a.granted(), a.free().total()), (2, HugePages(32), HugePages(13)));
}

#[test]
fn a_floor_that_refuses_a_step_grants_what_is_needed() {
    let (mut a, mut t, mut floor) = allocator(100);
    floor.limit = 5;
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(3), ONE, 0), Ok(HugePageId(0)));
    assert_eq!(a.granted(), HugePages(3));
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(3), ONE, 0), Err(NoMemory));
    assert_eq!((a.granted(), a.free().total()), (HugePages(3), HugePages(0)), "nothing changed");
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(2), ONE, 0), Ok(HugePageId(3)));
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(101), ONE, 0), Err(NoMemory));
}

#[test]
fn long_spans_leave_the_front_alone_and_short_ones_go_there_first() {
    let (mut a, mut t, mut floor) = allocator(30);
    assert_eq!(a.alloc(&mut t, &mut floor, LONG, ONE, 8), Ok(HugePageId(8)));
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(3), ONE, 8), Ok(HugePageId(0)));
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(18), ONE, 8), Ok(HugePageId(12)));
    assert_eq!(a.alloc(&mut t, &mut floor, LONG, ONE, 8), Ok(HugePageId(3)), "where nothing else is left");
}

#[test]
fn neighbours_that_come_back_are_one_range() {
    let (mut a, mut t, mut floor) = allocator(16);
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(16), ONE, 0), Ok(HugePageId(0)));
    for (first, len) in [(0, 4), (8, 4), (4, 4)] {
        a.put(&mut t, HugePageId(first), HugePages(len));
    }
    assert_eq!(a.free().run_at_start(&t, HugePageId(0)), HugePages(12));
    a.alloc_at(&mut t, HugePageId(5), HugePages(2));
    assert_eq!(a.free().run_at_start(&t, HugePageId(7)), HugePages(5));
    assert_eq!(a.alloc(&mut t, &mut floor, HugePages(6), ONE, 0), Err(NoMemory));
}
