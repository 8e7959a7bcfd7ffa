extern crate std;
use super::*;
use crate::backing::HugeBacking;
use crate::fit::LongestFreeFirst;
use crate::testing::{Counting, trackers};
use craton_base::{Huge64K, PageRange};
use std::vec::Vec;

struct World {
    filler: Filler<LongestFreeFirst, Huge64K>,
    trackers: Trackers<Huge64K>,
    backing: Backing<Huge64K>,
    floor: Counting,
}

impl World {
    fn new(hugepages: &[(Density, u32)]) -> Self {
        let mut w = Self {
            filler: Filler::EMPTY,
            trackers: trackers(hugepages.len() as u32),
            backing: Backing::new(HugeBacking::ALWAYS),
            floor: Counting::new(0),
        };
        for (i, (density, used)) in hugepages.iter().enumerate() {
            let t = &mut w.trackers[i];
            t.reset();
            t.occupy(0, 8);
            t.reset();
            t.dense = *density == Density::Dense;
            t.occupy(0, *used);
            w.filler.adopt(&mut w.trackers, HugePageId(i as u32));
        }
        w
    }

    fn find(&self, pages: u32, density: Density) -> Option<(u32, u32)> {
        self.filler.find(&self.trackers, pages, 1, density).map(|(id, at)| (id.0, at))
    }

    fn release(&mut self, want: u64) -> u64 {
        self.filler.release(&mut self.trackers, &mut self.floor, &mut self.backing, want)
    }
}

const SPARSE: Density = Density::Sparse;
const DENSE: Density = Density::Dense;

#[test]
fn the_smallest_gap_that_will_do_is_filled_and_kinds_stay_apart() {
    let w = World::new(&[(SPARSE, 2), (SPARSE, 5), (DENSE, 4)]);
    assert_eq!((w.find(3, SPARSE), w.find(4, SPARSE), w.find(7, SPARSE)), (Some((1, 5)), Some((0, 2)), None));
    assert_eq!((w.find(4, DENSE), w.find(8, DENSE)), (Some((2, 4)), None));
    assert_eq!((w.filler.len(), w.filler.sums()), (3, Sums { used: 11, backed: 24 }));
}

#[test]
fn donated_slack_is_used_after_sparse_hugepages_and_before_broken_ones() {
    let mut w = World::new(&[(SPARSE, 1), (SPARSE, 1), (SPARSE, 1)]);
    w.filler.update(&mut w.trackers, HugePageId(0), |t| t.broken = true);
    w.filler.update(&mut w.trackers, HugePageId(1), |t| t.donated = true);
    assert_eq!(w.filler.slack(), 7);
    for (id, expected) in [(2, Some((2, 1))), (1, Some((1, 1))), (0, Some((0, 1)))] {
        assert_eq!(w.find(7, SPARSE), expected);
        w.filler.update(&mut w.trackers, HugePageId(id), |t| t.occupy(1, 7));
    }
    assert_eq!((w.find(1, SPARSE), w.filler.slack()), (None, 0));
}

#[test]
fn the_other_kind_shares_hugepages_and_in_need_any() {
    let w = World::new(&[(DENSE, 4)]);
    let other = w.filler.find_in_other(&w.trackers, 2, 1, SPARSE);
    assert_eq!((w.find(2, SPARSE), other), (None, Some((HugePageId(0), 4))));
    let mut w = World::new(&[(DENSE, 1)]);
    w.filler.update(&mut w.trackers, HugePageId(0), |t| t.occupy(4, 4));
    assert_eq!(w.find(3, DENSE), None, "pages 1 to 3 are no aligned block");
    assert_eq!(w.filler.find_in_need(&w.trackers, 3, 1, DENSE), Some((HugePageId(0), 1)));
}

#[test]
fn a_hugepage_that_leaves_is_on_no_list() {
    let mut w = World::new(&[(SPARSE, 1), (DENSE, 1)]);
    [0, 1].into_iter().for_each(|i| w.filler.expel(&mut w.trackers, HugePageId(i)));
    assert_eq!((w.filler.len(), w.filler.sums(), w.find(1, SPARSE)), (0, Sums::default(), None));
}

#[test]
fn broken_hugepages_go_first_then_the_emptiest_and_sparse_before_dense() {
    let mut w = World::new(&[(DENSE, 2), (SPARSE, 7), (SPARSE, 2), (SPARSE, 6)]);
    assert_eq!(w.filler.unback(&mut w.trackers, &mut w.floor, HugePageId(3), 6, 1), 1);
    let order: Vec<u64> = (0..5).map(|_| w.release(1)).collect();
    assert_eq!(order, [1, 6, 6, 1, 0]);
    let at: Vec<u32> = w.floor.unbacked.iter().map(|r| Huge64K::hugepage(r.first).0).collect();
    assert_eq!((at.as_slice(), w.backing.guarded()), (&[3, 3, 2, 0, 1][..], HugePages(3)));
}

#[test]
fn a_hugepage_of_which_the_floor_keeps_everything_stays_whole() {
    let mut w = World::new(&[(SPARSE, 2)]);
    w.floor.keeps = true;
    assert_eq!((w.release(9), w.trackers[0].broken, w.backing.guarded()), (0, false, HugePages(0)));
    w.floor.keeps = false;
    w.trackers[0].collapsing = true;
    assert_eq!((w.release(9), w.floor.unbacked.len()), (0, 0), "nor does one lose memory that is being collapsed");
    w.trackers[0].collapsing = false;
    assert_eq!(
        (w.release(9), w.floor.unbacked[0]),
        (6, PageRange::new(Huge64K::page(HugePageId(0), 2), craton_base::Pages(6)))
    );
}
