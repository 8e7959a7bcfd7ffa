extern crate std;
use super::*;
use crate::fit::LongestFreeFirst;
use crate::placement::sealed::Placement;
use crate::testing::trackers;
use core::cell::RefCell;
use craton_base::{Density, Huge2M};
use std::vec::Vec;

/// First fit.
struct Source(RefCell<Vec<bool>>);

#[derive(Clone, Copy, Debug)]
struct Refused;
impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("refused")
    }
}
impl core::error::Error for Refused {}

impl Source {
    fn change(&self, first: usize, frames: usize, from: bool) -> Result<(), Refused> {
        let mut free = self.0.borrow_mut();
        let part = &mut free[first..first + frames];
        if part.iter().any(|f| *f != from) {
            return Err(Refused);
        }
        part.fill(!from);
        Ok(())
    }
}

impl FrameSource for Source {
    type Error = Refused;
    const HUGE_ORDER: u32 = 8;

    fn get(&self, order: u32, _: Density) -> Result<usize, Refused> {
        let blocks = (0..self.0.borrow().len()).step_by(1 << order);
        let first = { blocks }.find(|first| self.0.borrow()[*first..first + (1 << order)].iter().all(|free| *free));
        self.change(first.ok_or(Refused)?, 1 << order, true).map(|()| first.unwrap())
    }
    fn get_at(&self, first: usize, frames: usize) -> Result<(), Refused> {
        self.change(first, frames, true)
    }
    fn put(&self, first: usize, frames: usize) -> Result<(), Refused> {
        self.change(first, frames, false)
    }
    fn online(&self, first: usize, huge_frames: usize) -> Result<(), Refused> {
        self.change(first, 256 * huge_frames, false)
    }
    fn offline(&self, first: usize, huge_frames: usize) -> Result<(), Refused> {
        self.change(first, 256 * huge_frames, true)
    }
    fn reclaim(&self, _: usize) -> Option<usize> {
        None
    }
}

struct World {
    frames: Option<ByFrames<Source>>,
    filler: Filler<LongestFreeFirst, Huge2M>,
    trackers: Trackers<Huge2M>,
}

impl World {
    fn new(frames: bool) -> Self {
        let source = Source(RefCell::new([false; 512].to_vec()));
        let mut w =
            Self { frames: frames.then(|| ByFrames::new(source)), filler: Filler::EMPTY, trackers: trackers(2) };
        w.trackers[0].reset();
        w.trackers[0].occupy(0, 1);
        w.frames.adopt(HugePageId(0), &w.trackers[0]);
        w.filler.adopt(&mut w.trackers, HugePageId(0));
        w
    }

    fn choose(&mut self, pages: u32, align: u32) -> Option<u32> {
        let span = Wanted { pages, align, density: Density::Sparse };
        let (id, at) = self.frames.choose(&self.filler, &self.trackers, span)?;
        self.filler.update(&mut self.trackers, id, |t| t.occupy(at, pages));
        self.check();
        Some(id.first_page().0 + at)
    }

    /// P11.
    fn check(&self) {
        let free = self.frames.as_ref().unwrap().source.0.borrow();
        assert!((0..256).all(|at| free[at as usize] != self.trackers[0].used().contains(at)));
        assert!(free[256..].iter().all(|free| !free));
    }
}

#[test]
fn until_there_are_frames_the_lists_place_spans() {
    let mut w = World::new(false);
    assert!(w.frames.is_by_lists());
    let span = Wanted { pages: 8, align: 1, density: Density::Sparse };
    assert_eq!(w.frames.choose(&w.filler, &w.trackers, span), Some((HugePageId(0), 1)));
}

#[test]
fn blocks_go_where_frames_say_and_other_lengths_into_gaps() {
    let mut w = World::new(true);
    assert_eq!(w.choose(8, 1), Some(8), "aligned to itself");
    assert_eq!(w.choose(5, 1), Some(1), "between page 0 and page 8");
    assert_eq!(w.choose(128, 1), Some(128));
    assert_eq!((w.choose(128, 1), w.choose(100, 64), w.choose(3, 64)), (None, None, Some(64)));
}

#[test]
fn frames_follow_what_happens_to_pages() {
    let mut w = World::new(true);
    assert_eq!(w.choose(64, 1), Some(64));
    let old = *w.trackers[0].used();
    w.filler.update(&mut w.trackers, HugePageId(0), |t| {
        t.truncate(96, 32);
        t.extend(1, 3);
    });
    w.frames.follow(HugePageId(0), &old, &w.trackers[0]);
    w.check();
    w.frames.expel(HugePageId(0), &w.trackers[0]);
    assert!(w.frames.as_ref().unwrap().source.0.borrow().iter().all(|free| !free), "all are offline");
}
