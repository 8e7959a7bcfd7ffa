use super::*;
use crate::testing::{Counting, trackers};
use craton_base::Huge64K;

type Set = Regions<Huge64K>;
const ALL: u32 = Huge64K::REGION * Huge64K::PAGES;

fn regions(count: u32) -> (Set, Trackers<Huge64K>) {
    let (mut set, mut t) = (Set::EMPTY, trackers(count * Huge64K::REGION));
    (0..count).for_each(|i| set.begin(&mut t, HugePageId(i * Huge64K::REGION)));
    (set, t)
}

fn alloc(set: &mut Set, t: &mut Trackers<Huge64K>, pages: u32, align: u32) -> Option<(u32, Occupied)> {
    let range = set.find(t, pages, align, false)?;
    Some((range.first.0, set.occupy(t, range, true, |_, _| false)))
}

fn free(set: &mut Set, t: &mut Trackers<Huge64K>, first: u32, len: u32) -> Option<HugePageId> {
    set.vacate(t, PageRange::new(PageId(first), Pages(len)), true)
}

fn check(set: &Set, t: &Trackers<Huge64K>) {
    let mut held = Held::default();
    for head in set.walk(t) {
        assert!(set.is_listed(t, head) && t[head.0 as usize].run == longest(t, head));
        (head.0..head.0 + Huge64K::REGION).for_each(|i| held.add(Held::of(&t[i as usize])));
    }
    assert_eq!(held, set.held());
}

#[test]
fn spans_lie_side_by_side_across_hugepages() {
    let (mut set, mut t) = regions(1);
    let occupied = |missing| Occupied { zeroed: true, missing: HugePages(missing) };
    assert_eq!(alloc(&mut set, &mut t, 5, 1), Some((0, occupied(1))));
    assert_eq!(alloc(&mut set, &mut t, 6, 1), Some((5, occupied(1))));
    assert_eq!(alloc(&mut set, &mut t, 3, 4), Some((12, occupied(0))));
    assert_eq!(alloc(&mut set, &mut t, 2, 1), None, "page 11 and page 15 are left");
    assert_eq!((t[1].continues(), t[1].allocs()), (true, 2));
    check(&set, &t);
}

#[test]
fn the_fullest_region_with_room_is_filled_first() {
    let (mut set, mut t) = regions(2);
    let (first, _) = alloc(&mut set, &mut t, 9, 1).unwrap();
    assert_eq!(alloc(&mut set, &mut t, 7, 1).map(|(at, _)| at), Some(first + 9));
    assert_eq!(alloc(&mut set, &mut t, 1, 1).map(|(at, _)| at / ALL), Some(1 - first / ALL));
    check(&set, &t);
}

#[test]
fn a_region_ends_with_its_last_span() {
    let (mut set, mut t) = regions(1);
    let spans = [5, 6].map(|len| (alloc(&mut set, &mut t, len, 1).unwrap().0, len));
    assert_eq!(free(&mut set, &mut t, spans[0].0, 5), None);
    check(&set, &t);
    assert_eq!(free(&mut set, &mut t, spans[1].0, 6), Some(HugePageId(0)));
    assert_eq!(set.held(), Held { idle: 2, idle_backed: 2, idle_pages: 11, between: 0 });
    set.end(&mut t, HugePageId(0));
    assert_eq!((set.held(), set.walk(&t).count()), (Held::default(), 0));
}

#[test]
fn a_span_grows_over_free_pages_but_not_out_of_its_region() {
    let (mut set, mut t) = regions(2);
    let (first, _) = alloc(&mut set, &mut t, 12, 1).unwrap();
    let behind = |at: u32, len| PageRange::new(PageId(first + at), Pages(len));
    assert!(set.is_free(&t, behind(12, 4)) && !set.is_free(&t, behind(12, 5)) && !set.is_free(&t, behind(11, 1)));
    set.occupy(&mut t, behind(12, 4), false, |_, _| false);
    assert_eq!((t[1].allocs() + t[3].allocs(), t[1].starts().len() + t[3].starts().len()), (1, 0));
    assert_eq!(set.vacate(&mut t, behind(6, 10), false), None, "the span is shorter, not gone");
    assert_eq!(t[first as usize / 8].used_pages(), 6);
    check(&set, &t);
}

#[test]
fn idle_hugepages_go_back_whole_and_free_pages_between_spans_one_by_one() {
    let (mut set, mut t) = regions(1);
    let mut floor = Counting::new(2);
    let spans = [4, 8, 4].map(|len| (alloc(&mut set, &mut t, len, 1).unwrap().0, len));
    free(&mut set, &mut t, spans[1].0, 8);
    free(&mut set, &mut t, spans[2].0, 4);
    assert_eq!(set.held(), Held { idle: 1, idle_backed: 1, idle_pages: 8, between: 4 });
    assert_eq!(set.shrink(&mut t, &mut floor, 9), (1, 8));
    assert_eq!(set.break_up(&mut t, &mut floor, HugePages(2), 1), 4);
    assert_eq!(floor.unbacked, [Huge64K::range(HugePageId(1)), Huge64K::part(HugePageId(0), 4, 4)]);
    check(&set, &t);
    let again = alloc(&mut set, &mut t, 12, 1);
    assert_eq!(again, Some((4, Occupied { zeroed: true, missing: HugePages(1) })));
}

#[test]
fn memory_that_the_floor_keeps_is_counted_as_before() {
    let (mut set, mut t) = regions(1);
    let mut floor = Counting { keeps: true, ..Counting::new(2) };
    let spans = [4, 12].map(|len| (alloc(&mut set, &mut t, len, 1).unwrap().0, len));
    free(&mut set, &mut t, spans[1].0, 12);
    let before = set.held();
    assert_eq!((set.shrink(&mut t, &mut floor, 9), set.break_up(&mut t, &mut floor, HugePages(2), 9)), ((0, 0), 0));
    assert_eq!(set.held(), before);
}
