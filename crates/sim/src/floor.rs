//! Simulated memory: the state of a region's pages (Z1 to Z5), no bytes.

use crate::clock::VirtualClock;
use crate::fault::{Call, FaultPlan};
use crate::frames::HugeFrames;
use craton_base::{
    Advice, Ask, Bytes, CollapseError, Floor, Geometry, Huge2M, HugePageId, HugePages, NoMemory, PageBits, PageRange,
    Pages, Residency,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThpMode {
    /// But where small pages are advised.
    Always,
    Madvise,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FloorCalls {
    /// Refused ones too, as in the four below.
    pub reserve: u64,
    pub back: u64,
    pub unback: u64,
    pub collapse: u64,
    pub advise: u64,
    pub refused: u64,
    /// Also by `back`.
    pub small_faults: u64,
    pub huge_faults: u64,
    pub pages_unbacked: u64,
    /// Pages that it backed.
    pub pages_collapsed: u64,
    /// By a partial `unback`, or a write after a fork.
    pub splits: u64,
    /// First touches that found no frame.
    pub fallbacks: u64,
    /// By a write after a fork.
    pub copies: u64,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Hugepage<G> {
    backed: PageBits<G>,
    written: PageBits<G>,
    advised_huge: PageBits<G>,
    advised_small: PageBits<G>,
    /// In a frame of a hugepage's size.
    framed: PageBits<G>,
    shared: PageBits<G>,
    inherited: bool,
    huge: bool,
}

impl<G: Geometry> Hugepage<G> {
    fn leave_frame(&mut self, frames: &mut HugeFrames, first: u32, len: u32) {
        if !self.framed.is_empty() {
            self.framed.remove(first, len);
            if self.framed.is_empty() {
                frames.leave(core::mem::take(&mut self.inherited));
            }
        }
    }

    fn enter_frame(&mut self, frames: &mut HugeFrames) {
        self.leave_frame(frames, 0, G::PAGES);
        (self.backed, self.framed, self.huge) = (PageBits::ALL, PageBits::ALL, true);
    }
}

struct State<G> {
    thp: ThpMode,
    granted: u32,
    hugepages: Vec<Hugepage<G>>,
    calls: FloorCalls,
    backed_pages: u64,
    huge: u64,
    faults: FaultPlan,
    collapse_error: CollapseError,
    frames: HugeFrames,
    forked: bool,
    collapse_cost: Option<(VirtualClock, u64)>,
}

/// Clones share the memory.
#[derive(Clone)]
pub struct SimFloor<G = Huge2M> {
    state: Arc<Mutex<State<G>>>,
}

impl<G: Geometry> State<G> {
    fn assert_granted(&self, call: &str, range: PageRange) {
        let end = u64::from(range.first.0) + u64::from(range.len.0);
        let granted = u64::from(self.granted) * u64::from(G::PAGES);
        assert!(
            end <= granted,
            "{call}: pages {}..{end} reach beyond the {granted} pages ({} hugepages) that reserve granted",
            range.first.0,
            self.granted
        );
    }

    fn refuse(&mut self) -> Result<(), NoMemory> {
        self.calls.refused += 1;
        Err(NoMemory)
    }

    fn may_be_huge(&self, page: &Hugepage<G>) -> bool {
        match self.thp {
            ThpMode::Always => page.advised_small.is_empty(),
            ThpMode::Madvise => page.advised_huge.len() == G::PAGES,
            ThpMode::Never => false,
        }
    }

    /// As Linux: the mode does not matter.
    fn may_collapse(&self, range: PageRange) -> Result<(), CollapseError> {
        if self.faults.refuses(Call::Collapse) {
            return Err(self.collapse_error);
        }
        let mut pages = G::parts(range).map(|(id, ..)| &self.hugepages[id.0 as usize]);
        pages.try_for_each(|page| match () {
            () if page.backed.is_empty() || !page.advised_small.is_empty() => Err(CollapseError::Unsupported),
            () if !page.huge && !page.shared.is_empty() => Err(CollapseError::Busy),
            () => Ok(()),
        })
    }

    fn fault_in(&mut self, range: PageRange, write: bool) {
        for (id, first, len) in G::parts(range) {
            let mut page = self.hugepages[id.0 as usize];
            let may_be_huge = page.backed.is_empty() && self.may_be_huge(&page);
            if may_be_huge && self.frames.take(1) {
                page.enter_frame(&mut self.frames);
                self.huge += 1;
                self.calls.huge_faults += 1;
                self.backed_pages += u64::from(G::PAGES);
            } else {
                let new = u64::from(len - page.backed.count(first, len));
                page.backed.insert(first, len);
                self.calls.fallbacks += u64::from(may_be_huge);
                self.calls.small_faults += new;
                self.backed_pages += new;
            }
            if write {
                if self.forked {
                    self.copy_shared(&mut page, first, len);
                }
                page.written.insert(first, len);
            }
            self.hugepages[id.0 as usize] = page;
        }
    }

    fn copy_shared(&mut self, page: &mut Hugepage<G>, first: u32, len: u32) {
        for i in first..first + len {
            if !page.shared.contains(i) {
                continue;
            }
            page.shared.remove(i, 1);
            page.leave_frame(&mut self.frames, i, 1);
            self.calls.copies += 1;
            if core::mem::take(&mut page.huge) {
                self.huge -= 1;
                self.calls.splits += 1;
            }
        }
    }

    fn drop_memory(&mut self, range: PageRange) {
        for (id, first, len) in G::parts(range) {
            let page = &mut self.hugepages[id.0 as usize];
            let gone = u64::from(page.backed.count(first, len));
            page.backed.remove(first, len);
            page.written.remove(first, len);
            page.shared.remove(first, len);
            page.leave_frame(&mut self.frames, first, len);
            if page.huge {
                page.huge = false;
                self.huge -= 1;
                self.calls.splits += u64::from(len < G::PAGES);
            }
            self.calls.pages_unbacked += gone;
            self.backed_pages -= gone;
        }
    }
}

impl SimFloor {
    /// None is granted yet.
    pub fn new(capacity: HugePages, thp: ThpMode) -> Self {
        Self::with_faults(capacity, thp, FaultPlan::default())
    }
}

impl<G: Geometry> SimFloor<G> {
    pub fn with_faults(capacity: HugePages, thp: ThpMode, faults: FaultPlan) -> Self {
        let state = State {
            thp,
            granted: 0,
            hugepages: vec![Hugepage::default(); capacity.0 as usize],
            calls: FloorCalls::default(),
            backed_pages: 0,
            huge: 0,
            faults,
            collapse_error: CollapseError::NoMemory,
            frames: HugeFrames::ENDLESS,
            forked: false,
            collapse_cost: None,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State<G>> {
        // After an expected panic the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn touch(&self, range: PageRange) {
        let mut s = self.lock();
        s.assert_granted("touch", range);
        s.fault_in(range, true);
    }

    /// Since they last lost their memory.
    pub fn written(&self, range: PageRange) -> Pages {
        let s = self.lock();
        s.assert_granted("written", range);
        Pages(G::parts(range).map(|(id, first, len)| s.hugepages[id.0 as usize].written.count(first, len)).sum())
    }

    pub fn is_huge(&self, id: HugePageId) -> bool {
        let s = self.lock();
        s.assert_granted("is_huge", G::range(id));
        s.hugepages[id.0 as usize].huge
    }

    /// `None` if none or mixed.
    pub fn advice(&self, id: HugePageId) -> Option<Advice> {
        let s = self.lock();
        s.assert_granted("advice", G::range(id));
        let page = &s.hugepages[id.0 as usize];
        match () {
            () if page.advised_huge == PageBits::ALL => Some(Advice::Huge),
            () if page.advised_small == PageBits::ALL => Some(Advice::Small),
            () => None,
        }
    }

    pub fn granted(&self) -> HugePages {
        HugePages(self.lock().granted)
    }

    pub fn backed_bytes(&self) -> Bytes {
        Bytes(self.lock().backed_pages as usize * Pages(1).bytes().0)
    }

    pub fn huge_bytes(&self) -> Bytes {
        Bytes(self.lock().huge as usize * G::pages(HugePages(1)).bytes().0)
    }

    pub fn calls(&self) -> FloorCalls {
        self.lock().calls
    }

    pub fn set_thp(&self, thp: ThpMode) {
        self.lock().thp = thp;
    }

    pub fn set_collapse_error(&self, error: CollapseError) {
        self.lock().collapse_error = error;
    }

    /// `None`: endless.
    pub fn set_free_frames(&self, free: Option<u32>) {
        self.lock().frames.set_free(free);
    }

    pub fn free_frames(&self) -> Option<u32> {
        self.lock().frames.free()
    }

    /// Of requests for frames, chosen by the seed.
    pub fn set_failing_frames(&self, percent: u32, seed: u64) {
        self.lock().frames.set_failing(percent, seed);
    }

    pub fn set_collapse_cost(&self, clock: VirtualClock, ns: u64) {
        self.lock().collapse_cost = Some((clock, ns));
    }

    /// Until [`Self::end_child`]; one at a time.
    pub fn fork(&self) {
        let mut s = self.lock();
        assert!(!s.forked, "fork: a child is running");
        s.forked = true;
        for page in &mut s.hugepages {
            (page.shared, page.inherited) = (page.backed, !page.framed.is_empty());
        }
    }

    pub fn end_child(&self) {
        let mut s = self.lock();
        assert!(s.forked, "end_child: no child is running");
        s.forked = false;
        s.frames.end_child();
        for page in &mut s.hugepages {
            (page.shared, page.inherited) = (PageBits::EMPTY, false);
        }
    }

    pub fn is_forked(&self) -> bool {
        self.lock().forked
    }

    /// `used` has a set for each hugepage.
    pub fn backed_beyond(&self, used: &[PageBits<G>]) -> Pages {
        let s = self.lock();
        let of = |(i, page): (usize, &Hugepage<G>)| match used.get(i) {
            Some(used) => page.backed.minus(used).len(),
            None => page.backed.len(),
        };
        Pages(s.hugepages[..s.granted as usize].iter().enumerate().map(of).sum())
    }

    /// Walks Z1 to Z5.
    pub fn check(&self) -> Result<(), (&'static str, HugePageId)> {
        let s = self.lock();
        let (mut backed, mut huge) = (0, 0);
        for (i, page) in s.hugepages.iter().enumerate() {
            let fail = |what| Err((what, HugePageId(i as u32)));
            if !page.written.minus(&page.backed).is_empty() {
                return fail("Z1");
            }
            if page.huge && page.backed.len() != G::PAGES {
                return fail("Z2");
            }
            if i >= s.granted as usize && *page != Hugepage::default() {
                return fail("Z3");
            }
            if page.advised_huge.minus(&page.advised_small) != page.advised_huge {
                return fail("Z4");
            }
            let has_frame = !page.huge || page.framed == PageBits::ALL;
            if !has_frame || !page.framed.minus(&page.backed).is_empty() || !page.shared.minus(&page.backed).is_empty()
            {
                return fail("Z5");
            }
            backed += u64::from(page.backed.len());
            huge += u64::from(page.huge);
        }
        if (backed, huge) != (s.backed_pages, s.huge) { Err(("sums", HugePageId(s.granted))) } else { Ok(()) }
    }
}

impl<G: Geometry> Floor for SimFloor<G> {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        let mut s = self.lock();
        assert!(total.0 >= s.granted, "reserve: the grant of {} hugepages cannot shrink to {}", s.granted, total.0);
        s.calls.reserve += 1;
        if s.faults.refuses(Call::Reserve) || total.0 as usize > s.hugepages.len() {
            return s.refuse();
        }
        let old = core::mem::replace(&mut s.granted, total.0);
        s.hugepages[old as usize..total.0 as usize].iter_mut().for_each(|page| page.advised_small = PageBits::ALL);
        Ok(())
    }

    fn back(&mut self, range: PageRange) -> Result<(), NoMemory> {
        let mut s = self.lock();
        s.assert_granted("back", range);
        s.calls.back += 1;
        if s.faults.refuses(Call::Back) {
            return s.refuse();
        }
        s.fault_in(range, false);
        Ok(())
    }

    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        let mut s = self.lock();
        s.assert_granted("unback", range);
        s.calls.unback += 1;
        if s.faults.refuses(Call::Unback) {
            return s.refuse();
        }
        s.drop_memory(range);
        Ok(())
    }

    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError> {
        let mut s = self.lock();
        s.assert_granted("collapse", range);
        assert!(
            G::in_hugepage(range.first) == 0 && G::in_hugepage(range.end()) == 0,
            "collapse: {} pages from page {} on are not whole hugepages",
            range.len.0,
            range.first.0
        );
        s.calls.collapse += 1;
        if let Some((clock, ns)) = &s.collapse_cost {
            clock.advance(*ns);
        }
        let small = |page: &Hugepage<G>| u32::from(!page.huge);
        let frames = G::parts(range).map(|(id, ..)| small(&s.hugepages[id.0 as usize])).sum();
        let refused = match s.may_collapse(range) {
            Ok(()) if frames > 0 && !s.frames.take(frames) => Err(CollapseError::NoMemory),
            other => other,
        };
        if refused.is_err() {
            s.calls.refused += 1;
            return refused;
        }
        for (id, ..) in G::parts(range) {
            let State { hugepages, frames, .. } = &mut *s;
            let page = &mut hugepages[id.0 as usize];
            if !page.huge {
                let new = u64::from(G::PAGES - page.backed.len());
                page.enter_frame(frames);
                s.calls.pages_collapsed += new;
                s.backed_pages += new;
                s.huge += 1;
            }
        }
        Ok(())
    }

    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        let mut s = self.lock();
        s.assert_granted("advise", range);
        s.calls.advise += 1;
        let call = if advice == Advice::Huge { Call::AdviseHuge } else { Call::AdviseSmall };
        if s.faults.refuses(call) {
            s.calls.refused += 1;
            return false;
        }
        for (id, first, len) in G::parts(range) {
            let page = &mut s.hugepages[id.0 as usize];
            let (on, off) = match advice {
                Advice::Huge => (&mut page.advised_huge, &mut page.advised_small),
                Advice::Small => (&mut page.advised_small, &mut page.advised_huge),
            };
            on.insert(first, len);
            off.remove(first, len);
        }
        advice == Advice::Small || s.thp != ThpMode::Never
    }

    fn residency(&self, range: PageRange, _: Ask) -> Residency {
        let s = self.lock();
        s.assert_granted("residency", range);
        let pages: u32 =
            G::parts(range).map(|(id, first, len)| s.hugepages[id.0 as usize].backed.count(first, len)).sum();
        let huge: u32 = G::parts(range).map(|(id, _, len)| if s.hugepages[id.0 as usize].huge { len } else { 0 }).sum();
        Residency { resident_bytes: Pages(pages).bytes().0, huge_bytes: Some(Pages(huge).bytes().0) }
    }
}

#[cfg(test)]
mod tests;
