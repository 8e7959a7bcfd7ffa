//! The trait of page heaps: the seam between the allocator and the heaps below it.
//!
//! **What.** [`PageHeap`] has six methods: [`SpanSource`]'s hand out spans, [`PageHeap::figures`]
//! and [`PageHeap::for_each_span`] show them, [`PageHeap::act`] does the rest, act by act. A heap
//! may answer any act that it does not know with [`Answer::Nothing`]. [`PageHeapExt`] has a
//! function for each act. Implemented by [`Temeraire`](crate::Temeraire), and in small by
//! `tests/all/third.rs`.

use crate::backing::HugeBacking;
use crate::collapse::{CollapseStats, Took};
use crate::release::{Breaking, Tick, TooMuch};
use craton_base::{
    Advice, CollapseError, Density, HugePageId, HugePages, NoMemory, PageRange, Pages, Span, SpanError, SpanSource,
};

/// Dense hugepages on small pages from which on a thread is worth its start: 16 MiB.
const MANY_DENSE: HugePages = HugePages(8);

/// A heap of pages.
pub trait PageHeap: SpanSource {
    /// Counts that need no walk.
    fn figures(&self) -> Figures;

    /// Calls `each` with every span in use and its hugepage's density, in address order.
    fn for_each_span(&self, each: impl FnMut(PageRange, Density));

    /// Performs an operation other than handing out spans.
    fn act(&mut self, act: Act) -> Answer;
}

/// Counts that a page heap maintains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    /// Hugepages granted by the floor.
    pub granted: HugePages,
    /// Most hugepages that the floor may grant.
    pub capacity: HugePages,
    /// Pages in spans.
    pub in_use: Pages,
    /// Backed pages, in spans or free.
    pub backed_pages: Pages,
    /// Hugepages with a page in use, and free backed ones.
    pub backed: HugePages,
    /// Where hugepages are requested from.
    pub backing: HugeBacking,
    /// Broken hugepages that are advised against hugepages now.
    pub guarded: HugePages,
    /// Hugepages left on small pages until they are seen to be used densely.
    pub left_small: HugePages,
    /// Free hugepages that may stay backed now.
    pub cache_limit: HugePages,
    /// Pages returned to the system since the start.
    pub released_total: u64,
    /// Collapse counts.
    pub collapses: CollapseStats,
    /// Pages that refills of broken hugepages should back now, for a rise.
    pub refill_due: Pages,
    /// Whether growth wants a hugepage cleared ahead.
    pub clear_due: bool,
    /// Hugepages left on small pages that the program has filled since the last round of collapses.
    pub dense_small: HugePages,
}

/// An operation other than handing out spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// [`PageHeapExt::alloc_backed`].
    AllocBacked(Pages, Pages, Density),
    /// [`PageHeapExt::is_better_apart`].
    IsBetterApart(Pages),
    /// [`PageHeapExt::recut`].
    Recut(PageRange, Pages),
    /// [`PageHeapExt::take_at`].
    TakeAt(PageRange),
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
    EndCollapse(HugePageId, Result<(), CollapseError>, Took),
    /// [`PageHeapExt::begin_refill`].
    BeginRefill,
    /// [`PageHeapExt::begin_clear`].
    BeginClear,
    /// [`PageHeapExt::end_clear`].
    EndClear(HugePageId, Result<(), NoMemory>, Took),
    /// [`PageHeapExt::set_helped`].
    SetHelped(bool),
    /// [`PageHeapExt::note_slow`].
    NoteSlow,
    /// [`PageHeapExt::count_collapse`].
    CountCollapse(Result<(), CollapseError>, Took),
}

/// The result of an act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done, or nothing to do; for a question: no, or none.
    Nothing,
    /// Yes.
    Yes,
    /// A number of pages.
    Pages(u64),
    /// A number of hugepages.
    HugePages(HugePages),
    /// This hugepage.
    At(HugePageId),
    /// This span.
    Span(Span),
    /// The work of a tick.
    Tick(Tick),
    /// The span is not in use with these bounds. Nothing has changed.
    Fault(SpanError),
    /// Fewer pages can be released. Nothing has changed.
    TooMuch(TooMuch),
}

impl Answer {
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
    /// [`Figures::granted`].
    fn granted(&self) -> HugePages {
        self.figures().granted
    }

    /// [`Figures::capacity`].
    fn capacity(&self) -> HugePages {
        self.figures().capacity
    }

    /// [`Figures::in_use`].
    fn in_use(&self) -> Pages {
        self.figures().in_use
    }

    /// [`Figures::backed_pages`].
    fn backed_pages(&self) -> Pages {
        self.figures().backed_pages
    }

    /// [`Figures::backed`].
    fn backed(&self) -> HugePages {
        self.figures().backed
    }

    /// [`Figures::backing`].
    fn backing(&self) -> HugeBacking {
        self.figures().backing
    }

    /// Hands out a span of memory that the heap has; `None` if it would need new memory.
    fn alloc_backed(&mut self, pages: Pages, align: Pages, density: Density) -> Option<Span> {
        if let Answer::Span(span) = self.act(Act::AllocBacked(pages, align, density)) { Some(span) } else { None }
    }

    /// Whether a span of that length would take new memory, of which a program touches little: its
    /// trackers and records would weigh more than that.
    fn is_better_apart(&mut self, pages: Pages) -> bool {
        self.act(Act::IsBetterApart(pages)) == Answer::Yes
    }

    /// Makes spans of `each` pages of the adjacent spans that are a range, up to a quarter of one
    /// hugepage.
    fn recut(&mut self, range: PageRange, each: Pages) -> Result<(), SpanError> {
        self.act(Act::Recut(range, each)).faultless()
    }

    /// Takes a range as a span if it is free, backed, and beside other short spans.
    fn take_at(&mut self, range: PageRange) -> bool {
        self.act(Act::TakeAt(range)) == Answer::Yes
    }

    /// Whole hugepages at the front of a span whose memory can be moved away.
    fn movable(&mut self, span: PageRange) -> HugePages {
        if let Answer::HugePages(whole) = self.act(Act::Movable(span)) { whole } else { HugePages(0) }
    }

    /// Frees a span whose whole hugepages ([`Self::movable`]) have lost their memory.
    fn free_moved(&mut self, span: PageRange) -> Result<(), SpanError> {
        self.act(Act::FreeMoved(span)).faultless()
    }

    /// Advises the backing of the hugepages that a span fully covers, until [`Self::unadvise_span`]
    /// before the span's free. Refused advice changes nothing.
    fn advise_span(&mut self, span: PageRange, advice: Advice) {
        self.act(Act::Advise(span, advice));
    }

    /// Reverts [`Self::advise_span`], with the same arguments.
    fn unadvise_span(&mut self, span: PageRange, advice: Advice) {
        self.act(Act::Unadvise(span, advice));
    }

    /// Sets where hugepages are requested from, and advises granted memory anew.
    fn set_backing(&mut self, backing: HugeBacking) {
        self.act(Act::SetBacking(backing));
    }

    /// Allows regions for spans that cross hugepages; allowed at first.
    fn set_regions(&mut self, allowed: bool) {
        self.act(Act::SetRegions(allowed));
    }

    /// Sets the background release rate in bytes per second; 0, as at first, for none.
    fn set_release_rate(&mut self, bytes_per_s: u64) {
        self.act(Act::SetReleaseRate(bytes_per_s));
    }

    /// Call each second, also when idle: lowers the cache limit, releases what is due, collapses.
    fn tick(&mut self) -> Tick {
        if let Answer::Tick(tick) = self.act(Act::Tick) { tick } else { Tick::default() }
    }

    /// [`Self::tick`] without collapses and bounded in time; call again at once if there is more.
    fn tick_step(&mut self) -> Tick {
        if let Answer::Tick(tick) = self.act(Act::TickStep) { tick } else { Tick::default() }
    }

    /// Pages that a release of this kind can return.
    fn releasable(&mut self, breaking: Breaking) -> Pages {
        Pages(self.act(Act::Releasable(breaking)).pages() as u32)
    }

    /// Returns `pages` pages to the system; a few more, since hugepages go whole, or fewer where
    /// the system refuses. Returns how many.
    ///
    /// # Errors
    /// Fewer can be released.
    fn release(&mut self, pages: Pages, breaking: Breaking) -> Result<u64, TooMuch> {
        match self.act(Act::Release(pages, breaking)) {
            Answer::TooMuch(too_much) => Err(too_much),
            done => Ok(done.pages()),
        }
    }

    /// Releases all that `breaking` allows; returns the pages.
    fn release_all(&mut self, breaking: Breaking) -> u64 {
        self.act(Act::ReleaseAll(breaking)).pages()
    }

    /// Whether this round may collapse hugepages; ask once a round. Failures make it skip rounds.
    fn collapse_is_due(&mut self) -> bool {
        self.act(Act::CollapseIsDue) == Answer::Yes
    }

    /// The next hugepage worth a collapse. It stays backed until [`Self::end_collapse`]; the caller
    /// may release the heap's lock meanwhile.
    fn begin_collapse(&mut self) -> Option<HugePageId> {
        if let Answer::At(id) = self.act(Act::BeginCollapse) { Some(id) } else { None }
    }

    /// Records a collapse's result and time, if begun; whether the round may go on.
    fn end_collapse(&mut self, id: HugePageId, result: Result<(), CollapseError>, took: Took) -> bool {
        self.act(Act::EndCollapse(id, result, took)) == Answer::Yes
    }

    /// Whether a thread should refill or clear hugepages now.
    #[inline(always)]
    fn is_growing(&self) -> bool {
        let figures = self.figures();
        figures.refill_due > Pages(0) || figures.clear_due
    }

    /// Whether enough dense hugepages lie on small pages for a thread to collapse them.
    #[inline(always)]
    fn has_dense_small(&self) -> bool {
        self.figures().dense_small >= MANY_DENSE
    }

    /// [`Figures::refill_due`].
    #[inline(always)]
    fn refill_due(&self) -> Pages {
        self.figures().refill_due
    }

    /// A mostly unbacked hugepage that a rise will refill; collapse it, as [`Self::begin_collapse`]
    /// says.
    fn begin_refill(&mut self) -> Option<HugePageId> {
        if let Answer::At(id) = self.act(Act::BeginRefill) { Some(id) } else { None }
    }

    /// A hugepage to clear ahead of growth, kept in the cache from now on; [`Self::end_clear`] must
    /// follow. The caller may release the heap's lock meanwhile. Until it has cleared the hugepage,
    /// a first touch does.
    fn begin_clear(&mut self) -> Option<HugePageId> {
        if let Answer::At(id) = self.act(Act::BeginClear) { Some(id) } else { None }
    }

    /// Records a clear's result and time.
    fn end_clear(&mut self, id: HugePageId, result: Result<(), NoMemory>, took: Took) {
        self.act(Act::EndClear(id, result, took));
    }

    /// Whether a thread collapses hugepages from now on.
    fn set_helped(&mut self, helped: bool) {
        self.act(Act::SetHelped(helped));
    }

    /// The first touch of a hugepage took long: no more are asked for, for a while.
    fn note_slow(&mut self) {
        self.act(Act::NoteSlow);
    }

    /// Counts a collapse outside of the region; whether the round may go on.
    fn count_collapse(&mut self, result: Result<(), CollapseError>, took: Took) -> bool {
        self.act(Act::CountCollapse(result, took)) == Answer::Yes
    }
}

impl<H: PageHeap> PageHeapExt for H {}
