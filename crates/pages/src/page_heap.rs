//! The trait of page heaps: the seam between the allocator and the heaps below it.
//!
//! **What.** [`PageHeap`] has six methods: those of [`SpanSource`] hand out spans,
//! [`PageHeap::figures`] and [`PageHeap::for_each_span`] show them, [`PageHeap::act`] does
//! everything else, act by act. A heap answers the acts that it knows; [`Answer::Nothing`] to the
//! others is always right. [`PageHeapExt`] has a function for each act.
//!
//! **Implementations.** [`Temeraire`](crate::Temeraire), whose filler's lists or page frames place
//! short spans. A third takes one file: `tests/all/third.rs` has a small one.

use crate::backing::HugeBacking;
use crate::collapse::CollapseStats;
use crate::release::{Breaking, Tick, TooMuch};
use craton_base::{Advice, CollapseError, Density, HugePageId, HugePages, PageRange, Pages, SpanError, SpanSource};

/// A heap of pages.
pub trait PageHeap: SpanSource {
    /// Counts that are at hand.
    fn figures(&self) -> Figures;

    /// Hands every span that is out to `each`, in the order of their places, with the density of
    /// its hugepage.
    fn for_each_span(&self, each: impl FnMut(PageRange, Density));

    /// Does something besides handing out spans.
    fn act(&mut self, act: Act) -> Answer;
}

/// Counts that a page heap keeps as it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    /// Hugepages that the floor granted so far.
    pub granted: HugePages,
    /// The most hugepages that the floor may be asked for.
    pub capacity: HugePages,
    /// Pages in spans.
    pub in_use: Pages,
    /// Pages with memory, in spans or free.
    pub backed_pages: Pages,
    /// Hugepages that may have memory: those with a page in use, and free ones that are backed.
    pub backed: HugePages,
    /// From where on hugepages are asked for.
    pub backing: HugeBacking,
    /// Hugepages that are advised against hugepages at the moment, because they were broken up.
    pub guarded: HugePages,
    /// Free hugepages that may keep their memory at the moment.
    pub cache_limit: HugePages,
    /// Pages given back to the system since the start.
    pub released_total: u64,
    /// How collapses went.
    pub collapses: CollapseStats,
}

/// An operation besides handing out spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// [`PageHeapExt::has_memory_for`].
    HasMemory(Pages, Pages, Density),
    /// [`PageHeapExt::join`].
    Join(PageRange, PageRange),
    /// [`PageHeapExt::movable`].
    Movable(PageRange),
    /// [`PageHeapExt::free_moved`].
    FreeMoved(PageRange),
    /// [`PageHeapExt::advise_span`].
    Advise(PageRange, Advice),
    /// [`PageHeapExt::unadvise_span`].
    Unadvise(PageRange, Advice),
    /// [`PageHeapExt::set_backing`].
    SetBacking(HugeBacking),
    /// [`PageHeapExt::set_regions`].
    SetRegions(bool),
    /// [`PageHeapExt::set_release_rate`].
    SetReleaseRate(u64),
    /// [`PageHeapExt::tick_step`].
    TickStep,
    /// [`PageHeapExt::tick`].
    Tick,
    /// [`PageHeapExt::releasable`].
    Releasable(Breaking),
    /// [`PageHeapExt::release`].
    Release(Pages, Breaking),
    /// [`PageHeapExt::release_all`].
    ReleaseAll(Breaking),
    /// [`PageHeapExt::collapse_is_due`].
    CollapseIsDue,
    /// [`PageHeapExt::begin_collapse`].
    BeginCollapse,
    /// [`PageHeapExt::end_collapse`].
    EndCollapse(HugePageId, Result<(), CollapseError>, u64),
}

/// The result of an act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It was done, or there was nothing to do; of a question: no, or none.
    Nothing,
    /// Of a question: yes.
    Yes,
    /// A number of pages.
    Pages(u64),
    /// A number of hugepages.
    HugePages(HugePages),
    /// This hugepage.
    At(HugePageId),
    /// The work of a tick.
    Tick(Tick),
    /// The span is not out just so. Nothing has changed.
    Fault(SpanError),
    /// Fewer pages can be released. Nothing has changed.
    TooMuch(TooMuch),
}

impl Answer {
    /// Yes or no.
    #[inline(always)]
    pub(crate) fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::Nothing }
    }

    #[inline(always)]
    fn pages(self) -> u64 {
        if let Self::Pages(pages) = self { pages } else { 0 }
    }

    #[inline(always)]
    fn faultless(self) -> Result<(), SpanError> {
        if let Self::Fault(fault) = self { Err(fault) } else { Ok(()) }
    }
}

impl From<Result<(), SpanError>> for Answer {
    #[inline(always)]
    fn from(result: Result<(), SpanError>) -> Self {
        result.map_or_else(Self::Fault, |()| Self::Nothing)
    }
}

/// A function for each act and for most figures.
pub trait PageHeapExt: PageHeap {
    /// Hugepages that the floor granted so far.
    fn granted(&self) -> HugePages {
        self.figures().granted
    }

    /// The most hugepages that the floor may be asked for.
    fn capacity(&self) -> HugePages {
        self.figures().capacity
    }

    /// Pages in spans.
    fn in_use(&self) -> Pages {
        self.figures().in_use
    }

    /// Pages with memory, in spans or free.
    fn backed_pages(&self) -> Pages {
        self.figures().backed_pages
    }

    /// Hugepages that may have memory.
    fn backed(&self) -> HugePages {
        self.figures().backed
    }

    /// From where on hugepages are asked for.
    fn backing(&self) -> HugeBacking {
        self.figures().backing
    }

    /// Whether a span can be had without memory that the heap does not have yet.
    fn has_memory_for(&mut self, pages: Pages, align: Pages, density: Density) -> bool {
        self.act(Act::HasMemory(pages, align, density)) == Answer::Yes
    }

    /// Makes two spans, of which the second begins where the first ends, one; both lie in one
    /// hugepage, and neither is longer than a quarter of it.
    fn join(&mut self, first: PageRange, second: PageRange) -> Result<(), SpanError> {
        self.act(Act::Join(first, second)).faultless()
    }

    /// The whole hugepages at the front of a span whose memory can be moved elsewhere.
    fn movable(&mut self, span: PageRange) -> HugePages {
        if let Answer::HugePages(whole) = self.act(Act::Movable(span)) { whole } else { HugePages(0) }
    }

    /// Takes a span back whose whole hugepages, as [`Self::movable`] named them, have lost their
    /// memory.
    fn free_moved(&mut self, span: PageRange) -> Result<(), SpanError> {
        self.act(Act::FreeMoved(span)).faultless()
    }

    /// Says how the hugepages that a span covers whole should be backed, for an owner that knows
    /// better, until [`Self::unadvise_span`], which comes before the span is given back. Advice
    /// that the system does not take changes nothing.
    fn advise_span(&mut self, span: PageRange, advice: Advice) {
        self.act(Act::Advise(span, advice));
    }

    /// Takes back what [`Self::advise_span`] said, with the same arguments.
    fn unadvise_span(&mut self, span: PageRange, advice: Advice) {
        self.act(Act::Unadvise(span, advice));
    }

    /// Changes from where on hugepages are asked for; what has been granted already is advised
    /// anew.
    fn set_backing(&mut self, backing: HugeBacking) {
        self.act(Act::SetBacking(backing));
    }

    /// Whether spans that cross hugepages may be packed into regions. They may from the start.
    fn set_regions(&mut self, allowed: bool) {
        self.act(Act::SetRegions(allowed));
    }

    /// How much memory goes back by itself, in bytes per second, from now on; 0, as at the start,
    /// for none.
    fn set_release_rate(&mut self, bytes_per_s: u64) {
        self.act(Act::SetReleaseRate(bytes_per_s));
    }

    /// To be called about every second, also in an idle process: lowers the cache's limit to what
    /// recent demand justifies, releases what is due, and collapses some hugepages.
    fn tick(&mut self) -> Tick {
        if let Answer::Tick(tick) = self.act(Act::Tick) { tick } else { Tick::default() }
    }

    /// As [`Self::tick`], but without collapses, and only for so long; to be called again at once
    /// if there is more.
    fn tick_step(&mut self) -> Tick {
        if let Answer::Tick(tick) = self.act(Act::TickStep) { tick } else { Tick::default() }
    }

    /// Pages that a release of this kind can give back.
    fn releasable(&mut self, breaking: Breaking) -> Pages {
        Pages(self.act(Act::Releasable(breaking)).pages() as u32)
    }

    /// Gives the memory of `pages` pages back to the system, or of a few more since hugepages go as
    /// a whole; of fewer where the system refuses. Returns how many.
    ///
    /// # Errors
    /// Fewer can be released.
    fn release(&mut self, pages: Pages, breaking: Breaking) -> Result<u64, TooMuch> {
        match self.act(Act::Release(pages, breaking)) {
            Answer::TooMuch(too_much) => Err(too_much),
            done => Ok(done.pages()),
        }
    }

    /// Gives back what a release of this kind can; returns how many pages lost their memory.
    fn release_all(&mut self, breaking: Breaking) -> u64 {
        self.act(Act::ReleaseAll(breaking)).pages()
    }

    /// Whether this round may collapse hugepages; to be asked once a round. After bad ones some are
    /// left out.
    fn collapse_is_due(&mut self) -> bool {
        self.act(Act::CollapseIsDue) == Answer::Yes
    }

    /// The next hugepage that is worth a collapse. Until [`Self::end_collapse`] none of its pages
    /// loses its memory by itself; the caller may let go of the heap's lock meanwhile.
    fn begin_collapse(&mut self) -> Option<HugePageId> {
        if let Answer::At(id) = self.act(Act::BeginCollapse) { Some(id) } else { None }
    }

    /// Takes the result of a collapse, and how long it took; returns whether the round may
    /// go on. Of one that was not begun nothing changes.
    fn end_collapse(&mut self, id: HugePageId, result: Result<(), CollapseError>, took_ns: u64) -> bool {
        self.act(Act::EndCollapse(id, result, took_ns)) == Answer::Yes
    }
}

impl<H: PageHeap> PageHeapExt for H {}
