extern crate std;
use crate::tracker::{Tracker, Trackers};
use craton_base::{Advice, Ask, CollapseError, Floor, Geometry, HugePages, NoMemory, PageRange, Residency};
use std::vec::Vec;

#[derive(Default)]
pub(crate) struct Counting {
    pub(crate) limit: u32,
    pub(crate) granted: Vec<HugePages>,
    pub(crate) unbacked: Vec<PageRange>,
    pub(crate) advised: Vec<(PageRange, Advice)>,
    pub(crate) keeps: bool,
    pub(crate) deaf: bool,
    pub(crate) residency: Residency,
}

impl Counting {
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl Floor for Counting {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        if total.0 > self.limit {
            return Err(NoMemory);
        }
        self.granted.push(total);
        Ok(())
    }
    fn back(&mut self, _: PageRange) -> Result<(), NoMemory> {
        Ok(())
    }
    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        if self.keeps {
            return Err(NoMemory);
        }
        self.unbacked.push(range);
        Ok(())
    }
    fn collapse(&mut self, _: PageRange) -> Result<(), CollapseError> {
        Ok(())
    }
    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        self.advised.push((range, advice));
        !self.deaf
    }
    fn residency(&self, _: PageRange, _: Ask) -> Residency {
        self.residency
    }
}

pub(crate) fn trackers<G: Geometry>(len: u32) -> Trackers<G> {
    Trackers::from_slice((0..len).map(|_| Tracker::default()).collect::<Vec<_>>().leak())
}
