//! Giving memory back to the system: when asked, and by itself.
//!
//! **From.** TEMERAIRE §4.6: whole free hugepages first; breaking hugepages up is the last resort, since it cannot be undone
//! cheaply. What recent demand will want back is left alone unless all is asked for ([`crate::demand`]). Hugepages that are
//! broken already go before intact ones, sparse before dense ones, and those with the fewest used pages before others.
//! By itself memory goes back at a rate ([`PageHeap::tick`]): whole hugepages are more than was due, and the next ticks
//! release less for it.

use crate::filler::Family;
use crate::fit::Fit;
use crate::heap::PageHeap;
use crate::lists::LISTS;
use crate::tracker::Place;
use craton_base::{
    Clock, Floor, FrameSource, HugePageId, HugePages, PAGE_SHIFT, PAGE_SIZE, PAGES_PER_HUGEPAGE, PageId, PageRange,
    Pages,
};

/// How far a release may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breaking {
    /// Whole free hugepages only.
    Never,
    /// Hugepages may be broken up for what recent demand will not want back, less a sixteenth.
    Surplus,
    /// All free pages may go.
    Always,
}

/// More was to be released than there is. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMuch {
    /// Pages asked for.
    pub asked: Pages,
    /// Pages that can be released in this way.
    pub there: Pages,
}

impl core::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} pages were to be released, and {} can be", self.asked.0, self.there.0)
    }
}

/// What a [`PageHeap::tick`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tick {
    /// Pages that lost their memory.
    pub released: u64,
    /// Hugepages that were collapsed.
    pub collapsed: u32,
    /// More is due; nothing but the length of a step kept it.
    pub more: bool,
}

/// Pages that a step of a tick releases: with one system call each they take half a millisecond, while others wait.
const STEP: Pages = Pages(512);

/// The rate of release, and where it stands.
pub(crate) struct Pace {
    bytes_per_s: u64,
    last_ns: u64,
    /// Bytes due; below 0 after more was released than was due.
    due: i64,
}

impl Pace {
    pub(crate) const STILL: Self = Self { bytes_per_s: 0, last_ns: 0, due: 0 };

    /// The pages due now; what was not there to be released is not due for longer than a second, or than a page takes.
    fn due(&mut self, now_ns: u64) -> u32 {
        let passed = now_ns.saturating_sub(core::mem::replace(&mut self.last_ns, now_ns));
        let more = u128::from(self.bytes_per_s) * u128::from(passed) / 1_000_000_000;
        let most = if self.bytes_per_s > 0 { self.bytes_per_s.max(PAGE_SIZE as u64) } else { 0 };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.due = self.due.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)).min(most);
        u32::try_from((self.due >> PAGE_SHIFT).max(0)).unwrap_or(u32::MAX)
    }

    fn released(&mut self, pages: u64) {
        self.due = self.due.saturating_sub_unsigned(pages << PAGE_SHIFT);
    }
}

/// One part in so many of what will be wanted stays on top of it: the last free pages between spans are the dearest, since for each
/// of them many used ones lose their hugepage.
const MARGIN_PART: u32 = 16;

/// The families in the order in which they are broken up, each with the free pages that a hugepage must have to give: what is
/// broken already, then those that are mostly free, and the nearly full ones last, since all of their used pages lose the
/// hugepage for a few free ones.
fn order() -> impl Iterator<Item = (Family, u32)> {
    const WHOLE: [Family; 3] = [Family::Sparse, Family::Donated, Family::Dense];
    let broken = [(Family::SparseBroken, 1), (Family::DenseBroken, 1)].into_iter();
    let quarters = [3, 2, 1].map(|n| n * (PAGES_PER_HUGEPAGE / 4)).into_iter().chain([1]);
    broken.chain(quarters.flat_map(|least| WHOLE.map(|family| (family, least))))
}

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// How much memory goes back by itself, in bytes per second, from now on; 0, as at the start, for none.
    pub fn set_release_rate(&mut self, bytes_per_s: u64) {
        self.pace = Pace { bytes_per_s, last_ns: self.clock.now_ns(), due: 0 };
    }

    /// What the heap does by itself; to be called about every second, also in an idle process: lowers the cache's limit to what
    /// recent demand justifies, releases what is due, and collapses some hugepages.
    pub fn tick(&mut self) -> Tick {
        let mut all = Tick::default();
        loop {
            let step = self.tick_step();
            all.released += step.released;
            if !step.more {
                return Tick { collapsed: self.collapse_round(), ..all };
            }
        }
    }

    /// As [`PageHeap::tick`], for a caller who collapses by himself, without the heap's lock, and who lets go of the lock between
    /// steps: to be called again at once if there is more.
    pub fn tick_step(&mut self) -> Tick {
        let now = self.clock.now_ns();
        self.demand.fold(self.in_use().0, now);
        self.note_demand();
        self.look_up_backing();
        let mut released = self.shrink_to_limit();
        let due = Pages(self.pace.due(now));
        let mut more = false;
        if due.0 > 0 {
            let pages = due.min(self.releasable(Breaking::Surplus));
            let paced = self.release_some(pages.min(STEP), Breaking::Surplus);
            self.pace.released(paced);
            released += paced;
            // Where the system refuses, the next tick tries again.
            more = pages > STEP && paced >= u64::from(STEP.0);
        }
        Tick { released, collapsed: 0, more }
    }

    /// Pages that a release of this kind can give back.
    pub fn releasable(&mut self, breaking: Breaking) -> Pages {
        let all = self.free_backed().0;
        match breaking {
            Breaking::Never => Pages(self.cached.backed().0 + self.regions.held().idle_pages),
            Breaking::Always => Pages(all),
            Breaking::Surplus => {
                let now = self.clock.now_ns();
                self.demand.fold(self.in_use().0, now);
                let have = self.in_use().0 + all;
                let wanted = self.demand.wanted(now);
                let kept = wanted.saturating_add(wanted / MARGIN_PART);
                Pages(have.saturating_sub(kept).min(all))
            }
        }
    }

    /// Gives the memory of `pages` pages back to the system, or of a few more since hugepages go as a whole; of fewer where the
    /// system refuses. Returns how many.
    ///
    /// # Errors
    /// There are not so many to release.
    pub fn release(&mut self, pages: Pages, breaking: Breaking) -> Result<u64, TooMuch> {
        let there = self.releasable(breaking);
        if pages > there {
            return Err(TooMuch { asked: pages, there });
        }
        Ok(self.release_some(pages, breaking))
    }

    /// Gives back what a release of this kind can; returns how many pages lost their memory.
    pub fn release_all(&mut self, breaking: Breaking) -> u64 {
        let there = self.releasable(breaking);
        self.release_some(there, breaking)
    }

    fn release_some(&mut self, pages: Pages, breaking: Breaking) -> u64 {
        let mut done = 0;
        // Not all of a free hugepage need have memory.
        while done < u64::from(pages.0) {
            let want = Pages(pages.0 - done as u32).hugepages_up();
            match self.shrink(want.min(self.free_backed_hugepages())) {
                0 => break,
                more => done += more,
            }
        }
        if breaking == Breaking::Never {
            return done;
        }
        for (family, least) in order() {
            // Lists are ordered by how full their hugepages are: the last ones are the emptiest.
            let mut to = LISTS;
            while done < u64::from(pages.0)
                && let Some(at) = self.filler.lists(family).last_before(to)
            {
                to = at;
                let mut next = self.filler.lists(family).head(at);
                while let Some(id) = next
                    && done < u64::from(pages.0)
                {
                    // The hugepage may go to another list.
                    let t = &self.trackers[id.0 as usize];
                    next = t.next.checked_sub(1).map(HugePageId);
                    if t.backed_pages() - t.used_pages() >= least {
                        done += self.break_up(id);
                    }
                }
            }
        }
        if done < u64::from(pages.0) {
            done += self.break_regions(u64::from(pages.0) - done);
        }
        done
    }

    /// Takes the memory of a hugepage's free pages away; returns how many lost theirs.
    fn break_up(&mut self, id: HugePageId) -> u64 {
        let t = &self.trackers[id.0 as usize];
        let gone = t.free_backed();
        if gone.is_empty() || t.collapsing {
            return 0;
        }
        let was_broken = t.broken;
        if !was_broken {
            self.guard(id);
        }
        let mut pages = 0;
        for (at, len) in gone.complement().clear_runs() {
            pages += self.unback_free(id, at, len);
        }
        if pages == 0 && !was_broken {
            // The system would not take any: it stays whole.
            self.unguard(id, HugePages(1));
        }
        pages
    }

    /// Takes the memory of some free pages of a hugepage of the filler away.
    pub(crate) fn unback_free(&mut self, id: HugePageId, at: u32, len: u32) -> u64 {
        let range = PageRange::new(PageId(id.first_page().0 + at), Pages(len));
        if self.trackers[id.0 as usize].collapsing || self.floor.unback(range).is_err() {
            return 0;
        }
        let lost = self.filler.update(&mut self.trackers, id, |t| {
            t.broken = true;
            t.unback(at, len)
        });
        self.released_total += u64::from(lost);
        u64::from(lost)
    }

    /// Takes the memory of free pages between the spans of regions away, of `most` pages or a few more; returns how many.
    fn break_regions(&mut self, most: u64) -> u64 {
        let mut pages = 0;
        let mut next = HugePageId(0);
        while pages < most
            && self.regions.held().between > 0
            && let Some(id) = self.next_between(next)
        {
            let free = self.trackers[id.0 as usize].free_backed();
            for (at, len) in free.complement().clear_runs() {
                let range = PageRange::new(PageId(id.first_page().0 + at), Pages(len));
                if self.floor.unback(range).is_ok() {
                    let t = &mut self.trackers[id.0 as usize];
                    pages += u64::from(self.regions.change(t, |t| t.unback(at, len)));
                }
            }
            next = HugePageId(id.0 + 1);
        }
        self.released_total += pages;
        pages
    }

    /// The next hugepage of a region, from `from` on, that has free pages with memory between spans.
    fn next_between(&self, from: HugePageId) -> Option<HugePageId> {
        (from.0..self.granted.0).map(HugePageId).find(|id| {
            let t = &self.trackers[id.0 as usize];
            t.place == Place::Region && !t.collapsing && t.used_pages() > 0 && t.backed_pages() > t.used_pages()
        })
    }

    /// Free pages with memory.
    fn free_backed(&self) -> Pages {
        let (sums, regions) = (self.filler.sums(), self.regions.held());
        Pages(self.cached.backed().0 + regions.idle_pages + regions.between + (sums.backed - sums.used))
    }

    /// Pages with memory, in spans or free; as [`crate::PageHeapStats::backed`], without a walk.
    pub fn backed_pages(&self) -> Pages {
        Pages(self.in_use().0 + self.free_backed().0)
    }

    /// Hugepages that may have memory: those that serve the program and those that are free and backed.
    pub fn backed(&self) -> HugePages {
        HugePages(self.in_demand().0 + self.free_backed_hugepages().0)
    }
}

const _: () = assert!(PAGES_PER_HUGEPAGE >= 8);
