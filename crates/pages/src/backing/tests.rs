extern crate std;
use super::*;
use crate::testing::{Counting, trackers};
use craton_base::{Huge64K, Residency};
use std::vec::Vec;

const BYTES: usize = 8 * craton_base::PAGE_SIZE;

struct World {
    backing: Backing<Huge64K>,
    trackers: Trackers<Huge64K>,
    floor: Counting,
}

impl World {
    fn new(from: u32) -> Self {
        let backing = Backing::new(HugeBacking { from: HugePageId(from) });
        let mut w = Self { backing, trackers: trackers(16), floor: Counting::new(16) };
        w.backing.grown(&mut w.floor, HugePages(0), HugePages(16));
        w
    }

    fn expect(&mut self, first: u32, len: u32, demand: u32) {
        self.alloc(first, len, true, demand);
    }

    fn alloc(&mut self, first: u32, len: u32, fills_up: bool, demand: u32) {
        let taken = (HugePageId(first), HugePages(len));
        let span = Use { pages: Huge64K::pages(HugePages(len)), fills_up, later: false };
        self.backing.expect(&mut self.trackers, &mut self.floor, taken, span, HugePages(demand));
    }

    fn alloc_unsure(&mut self, id: u32) {
        self.alloc(id, 1, false, 1);
        self.trackers[id as usize].occupy(0, 8);
    }

    fn alloc_later(&mut self, id: u32) {
        let slabs = Use { pages: Pages(1), fills_up: true, later: true };
        self.backing.expect(&mut self.trackers, &mut self.floor, (HugePageId(id), HugePages(1)), slabs, HugePages(1));
    }

    fn intact(&self) -> Vec<u32> {
        (0..16).filter(|i| self.trackers[*i as usize].intact).collect()
    }

    fn verify_some(&mut self) -> (bool, Vec<u32>) {
        let mut seen = Vec::new();
        let asked = self.backing.verify_some(&mut self.trackers, &mut self.floor, HugePages(16), |t, id, resident| {
            t[id.0 as usize].came_in_parts(resident);
            seen.push(id.0);
        });
        (asked, seen)
    }
}

#[test]
fn a_small_heap_stays_on_small_pages_and_what_lies_behind_is_huge() {
    let mut w = World::new(8);
    assert_eq!(w.floor.advised, [(Huge64K::run(HugePageId(8), HugePages(8)), Advice::Huge)]);
    w.expect(0, 2, 2);
    w.expect(9, 2, 4);
    assert_eq!((w.intact(), w.backing.front()), (Vec::from([9, 10]), 8));
    assert_eq!([7, 8].map(|i| w.backing.usual(HugePageId(i), &w.trackers[i as usize])), [Advice::Small, Advice::Huge]);
}

#[test]
fn in_front_hugepages_are_asked_for_when_a_span_is_long_or_the_heap_has_grown() {
    for (len, demand, asked) in [(1, 8, 0), (1, 9, 1), (LONG.0, 4, LONG.0)] {
        let mut w = World::new(8);
        w.expect(0, len, demand);
        assert_eq!(w.intact().len() as u32, asked, "{len} at a demand of {demand}");
    }
    let mut w = World::new(8);
    w.expect(0, 1, 9);
    w.trackers[0].unbacked();
    w.expect(0, 1, 5);
    assert!(w.trackers[0].asked, "down to half of the threshold");
    w.trackers[0].unbacked();
    w.expect(0, 1, 4);
    assert!(!w.trackers[0].asked && w.intact().is_empty());
}

#[test]
fn a_span_that_may_stay_untouched_gets_hugepages_when_earlier_ones_were_dense() {
    let mut w = World::new(0);
    w.backing.wanted.from = HugePageId(1);
    w.floor.residency = Residency { resident_bytes: BYTES / 8, huge_bytes: Some(0) };
    (1..5).for_each(|id| w.alloc_unsure(id));
    assert_eq!((w.intact(), w.backing.small_ranges), (Vec::new(), 1), "sparse");
    w.floor.residency.resident_bytes = BYTES;
    (5..16).for_each(|id| w.alloc_unsure(id));
    assert!(!w.trackers[5].intact && w.trackers[15].intact, "{:?}", w.intact());
    let small = |w: &World| (1..16).filter(|i| w.trackers[*i as usize].is_small()).collect::<Vec<u32>>();
    assert_eq!(small(&w).len() + w.intact().len(), 15);
    assert_eq!(w.floor.advised.last(), Some(&(Huge64K::range(HugePageId(small(&w).pop().unwrap())), Advice::Small)));
}

#[test]
fn hugepages_of_unsure_spans_are_known_in_front_and_where_the_system_gives_none() {
    let mut w = World::new(8);
    let kind = |w: &World, id: usize| w.trackers[id].left;
    w.alloc_unsure(0);
    w.expect(1, 1, 1);
    w.alloc_later(2);
    assert_eq!((kind(&w, 0), kind(&w, 1), kind(&w, 2)), (Left::Unsure, Left::Not, Left::Not));
    w.alloc_later(8);
    w.alloc_unsure(9);
    assert_eq!((kind(&w, 8), kind(&w, 9)), (Left::Later, Left::Unsure));
    w.backing.in_vain = true;
    w.alloc_unsure(10);
    let advised = w.floor.advised.len();
    w.backing.wanted = HugeBacking::NEVER;
    w.alloc_unsure(11);
    assert_eq!((kind(&w, 10), kind(&w, 11)), (Left::Unsure, Left::Unsure));
    assert_eq!(w.floor.advised.len(), advised);
}

#[test]
fn the_users_wish_for_hugepages_goes_before_what_was_seen() {
    let mut w = World::new(0);
    w.alloc_unsure(3);
    assert_eq!((w.intact(), w.floor.advised.len()), (Vec::from([3]), 1));
}

#[test]
fn ranges_of_hugepages_on_small_pages_are_counted() {
    let mut w = World::new(0);
    let mut set = |id: u32, small: bool| {
        w.backing.record_left(&mut w.trackers, id, if small { Left::Unsure } else { Left::Not });
        w.backing.small_ranges
    };
    assert_eq!([(3, true), (5, true), (15, true), (4, true)].map(|(id, small)| set(id, small)), [1, 2, 3, 2]);
    assert_eq!(
        [(4, false), (4, false), (15, false), (5, false), (3, false)].map(|(id, small)| set(id, small)),
        [3, 3, 2, 1, 0]
    );
}

#[test]
fn one_call_leaves_unused_hugepages_behind_small_too() {
    let mut w = World::new(1);
    (0..16).for_each(|i| w.trackers[i].place = Place::Unbacked);
    w.trackers[14].guarded = true;
    let small = |w: &World| (0..16).filter(|i| w.trackers[*i].is_small()).collect::<Vec<_>>();
    w.alloc_unsure(2);
    assert_eq!(w.floor.advised.pop(), Some((Huge64K::run(HugePageId(2), HugePages(8)), Advice::Small)));
    let before = w.floor.advised.len();
    (3..10).for_each(|id| w.alloc_unsure(id));
    assert_eq!((w.floor.advised.len(), small(&w)), (before, (2..10).collect()), "no more calls");
    w.alloc_unsure(10);
    assert_eq!(w.floor.advised.pop(), Some((Huge64K::run(HugePageId(10), HugePages(4)), Advice::Small)));
    w.expect(12, 1, 1);
    assert_eq!(w.floor.advised.pop(), Some((Huge64K::range(HugePageId(12)), Advice::Huge)));
    assert_eq!((w.trackers[12].intact, w.backing.small), (true, 11));
}

#[test]
fn a_collapse_ends_the_stay_on_small_pages() {
    let mut w = World::new(0);
    w.backing.wanted.from = HugePageId(1);
    w.alloc_unsure(3);
    assert!(w.trackers[3].is_small());
    w.backing.begin_collapse(&mut w.trackers, &mut w.floor, HugePageId(3));
    assert_eq!(w.floor.advised.last(), Some(&(Huge64K::range(HugePageId(3)), Advice::Huge)));
    w.trackers[3].collapsing = false;
    w.backing.end_collapse(&mut w.trackers, &mut w.floor, HugePageId(3));
    assert_eq!(w.floor.advised.last(), Some(&(Huge64K::range(HugePageId(3)), Advice::Small)), "it failed");
    w.backing.begin_collapse(&mut w.trackers, &mut w.floor, HugePageId(3));
    (w.trackers[3].collapsing, w.trackers[3].intact) = (false, true);
    w.backing.end_collapse(&mut w.trackers, &mut w.floor, HugePageId(3));
    assert_eq!((w.trackers[3].is_small(), w.backing.small_ranges), (false, 0));
}

#[test]
fn a_span_that_takes_a_hugepage_during_a_collapse_leaves_its_advice_alone() {
    let mut w = World::new(0);
    w.backing.wanted.from = HugePageId(1);
    w.backing.begin_collapse(&mut w.trackers, &mut w.floor, HugePageId(3));
    let before = w.floor.advised.len();
    w.alloc(2, 3, false, 1);
    assert_eq!(w.floor.advised[before..], [2, 4].map(|id| (Huge64K::range(HugePageId(id)), Advice::Small)));
    assert!(!w.trackers[3].is_small() && w.backing.is_requested(HugePageId(3), &w.trackers[3]));
}

#[test]
fn a_guard_keeps_the_system_away_until_it_is_lifted() {
    let mut w = World::new(0);
    let id = HugePageId(3);
    w.backing.guard(&mut w.trackers, &mut w.floor, id);
    assert_eq!(w.floor.advised.last(), Some(&(Huge64K::range(id), Advice::Small)));
    assert!(!w.backing.is_requested(id, &w.trackers[3]) && w.backing.guarded() == HugePages(1));
    w.backing.unguard(&mut w.trackers, &mut w.floor, HugePageId(0), HugePages(16));
    assert_eq!(w.floor.advised.last(), Some(&(Huge64K::range(id), Advice::Huge)));
    assert!(w.backing.is_requested(id, &w.trackers[3]) && w.backing.guarded() == HugePages(0));
}

#[test]
fn guards_have_a_budget() {
    let len = MOST_GUARDS + 1;
    let mut backing = Backing::<Huge64K>::new(HugeBacking::ALWAYS);
    let (mut t, mut floor) = (trackers(len), Counting::new(len));
    (0..len).for_each(|i| backing.guard(&mut t, &mut floor, HugePageId(i)));
    assert_eq!((backing.guarded(), t[MOST_GUARDS as usize].guarded), (HugePages(MOST_GUARDS), false));
}

#[test]
fn a_change_of_what_is_wanted_goes_over_guards_and_collapses() {
    let mut w = World::new(0);
    w.backing.guard(&mut w.trackers, &mut w.floor, HugePageId(2));
    w.backing.begin_collapse(&mut w.trackers, &mut w.floor, HugePageId(4));
    w.backing.set(&mut w.trackers, &mut w.floor, HugePages(16), HugeBacking::NEVER);
    let asks = |w: &World| -> Vec<u32> {
        (0..16).filter(|i| w.backing.is_requested(HugePageId(*i), &w.trackers[*i as usize])).collect()
    };
    assert_eq!((asks(&w), w.backing.guarded()), (Vec::from([4]), HugePages(0)));
    assert_eq!(w.floor.advised.last(), Some(&(Huge64K::range(HugePageId(4)), Advice::Huge)));
    w.trackers[4].collapsing = false;
    w.backing.end_collapse(&mut w.trackers, &mut w.floor, HugePageId(4));
    assert_eq!(w.floor.advised.last(), Some(&(Huge64K::range(HugePageId(4)), Advice::Small)));
}

#[test]
fn hugepages_that_came_in_parts_are_found() {
    let mut w = World::new(0);
    w.expect(0, 3, 3);
    w.floor.residency = Residency { resident_bytes: 3 * BYTES, huge_bytes: Some(3 * BYTES) };
    assert_eq!(w.verify_some(), (false, Vec::new()), "one question tells that all are huge");
    w.floor.residency = Residency { resident_bytes: 0, huge_bytes: Some(0) };
    assert_eq!(w.verify_some(), (false, Vec::new()), "untouched ones may still come as a whole");
    w.floor.residency = Residency { resident_bytes: 4096, huge_bytes: Some(0) };
    w.trackers[1].collapsing = true;
    assert_eq!((w.verify_some(), w.intact()), ((false, Vec::from([0, 2])), Vec::from([1])));
    w.floor.residency = Residency { resident_bytes: 4096, huge_bytes: None };
    assert_eq!((w.verify_some().1, w.backing.untold), (Vec::new(), true));
}

#[test]
fn a_system_that_gives_none_is_asked_again() {
    let mut w = World::new(0);
    w.floor.deaf = true;
    w.backing.grown(&mut w.floor, HugePages(8), HugePages(16));
    assert!(w.backing.is_in_vain());
    w.expect(0, 1, 1);
    assert!(w.intact().is_empty());
    w.floor.deaf = false;
    let asked: Vec<bool> = (0..ASK_AGAIN).map(|_| w.verify_some().0).collect();
    assert!(asked.iter().rev().skip(1).all(|asked| !asked) && asked.ends_with(&[true]));
    assert!(!w.backing.is_in_vain());
}
