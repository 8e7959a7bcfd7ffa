use super::*;
use crate::FaultRule;
use craton_base::{PAGE_SIZE, PageId, Pages};

fn byte(floor: &RealFloor, page: u32) -> u8 {
    // SAFETY: only pages of the region, on one thread.
    unsafe { floor.base().add(page as usize * PAGE_SIZE + 5).read() }
}

fn set(floor: &RealFloor, page: u32) {
    // SAFETY: as in `byte`.
    unsafe { floor.base().add(page as usize * PAGE_SIZE + 5).write(0xab) }
}

#[test]
fn the_region_is_aligned_zero_and_writable_to_its_end() {
    let mut floor = RealFloor::new(HugePages(2));
    floor.reserve(HugePages(2)).unwrap();
    assert_eq!(floor.base() as usize % HUGEPAGE_SIZE, 0);
    assert_eq!(floor.memory().capacity(), HugePages(2));
    for page in [0, 255, 256, 511] {
        assert_eq!(byte(&floor, page), 0);
        set(&floor, page);
        assert_eq!(byte(&floor, page), 0xab);
    }
}

#[test]
fn unbacked_pages_read_as_zeros_and_their_neighbours_keep_their_bytes() {
    let plan = FaultPlan::default();
    let mut floor = RealFloor::with_faults(HugePages(1), plan.clone());
    floor.reserve(HugePages(1)).unwrap();
    (9..13).for_each(|page| set(&floor, page));
    let range = PageRange::new(PageId(10), Pages(2));
    plan.set(FaultRule::Nth(1));
    floor.unback(range).unwrap_err();
    assert_eq!([9, 10, 11, 12].map(|page| byte(&floor, page)), [0xab; 4], "refused: contents survive");
    floor.unback(range).unwrap();
    assert_eq!([9, 10, 11, 12].map(|page| byte(&floor, page)), [0xab, 0, 0, 0xab]);
    assert_eq!(floor.sim().calls().unback, 2);
}

#[test]
fn the_memory_outlives_its_floor_when_it_is_held() {
    let memory = RealFloor::new(HugePages(1)).memory().clone();
    // SAFETY: `memory` holds it alive.
    assert_eq!(unsafe { memory.base().read() }, 0);
}

#[test]
#[should_panic(expected = "reach beyond")]
fn a_range_beyond_the_grant_is_never_zeroed() {
    let mut floor = RealFloor::new(HugePages(2));
    floor.reserve(HugePages(1)).unwrap();
    let _ = floor.unback(PageRange::new(PageId(256), Pages(1)));
}
