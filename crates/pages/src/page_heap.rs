//! The seam between the allocator and page heaps. A heap may answer acts that it does not know with
//! [`Answer::Nothing`], as does the one in `tests/all/third.rs`.

use crate::backing::HugeBacking;
use crate::collapse::{CollapseStats, Took};
use crate::release::{Breaking, Tick, TooMuch};
use craton_base::{
    Advice, CollapseError, Density, HugePageId, HugePages, NoMemory, PageRange, Pages, Span, SpanError, SpanSource,
};

/// From here on a thread is worth its start.
const MANY_DENSE: HugePages = HugePages(8);

pub trait PageHeap: SpanSource {
    fn figures(&self) -> Figures;

    /// In address order.
    fn for_each_span(&self, each: impl FnMut(PageRange, Density));

    fn act(&mut self, act: Act) -> Answer;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    pub granted: HugePages,
    /// The floor may grant them.
    pub capacity: HugePages,
    pub in_use: Pages,
    /// In spans or free.
    pub backed_pages: Pages,
    /// With a page in use, or free and backed.
    pub backed: HugePages,
    pub backing: HugeBacking,
    /// Broken, and advised against hugepages.
    pub guarded: HugePages,
    /// On small pages until seen to be used densely.
    pub left_small: HugePages,
    /// Free hugepages that may stay backed.
    pub cache_limit: HugePages,
    /// Pages, since the start.
    pub released_total: u64,
    pub collapses: CollapseStats,
    /// Of broken hugepages, to back now for a rise.
    pub refill_due: Pages,
    pub clear_due: bool,
    /// Filled on small pages since the last round of collapses.
    pub dense_small: HugePages,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    AllocBacked(Pages, Pages, Density),
    IsBetterApart(Pages),
    Recut(PageRange, Pages),
    AllocAt(PageRange),
    Movable(PageRange),
    FreeMoved(PageRange),
    Advise(PageRange, Advice),
    Unadvise(PageRange, Advice),
    SetBacking(HugeBacking),
    SetRegions(bool),
    SetReleaseRate(u64),
    TickStep,
    Tick,
    Releasable(Breaking),
    Release(Pages, Breaking),
    ReleaseAll(Breaking),
    CollapseIsDue,
    BeginCollapse,
    EndCollapse(HugePageId, Result<(), CollapseError>, Took),
    BeginRefill,
    BeginClear,
    EndClear(HugePageId, Result<(), NoMemory>, Took),
    SetHelped(bool),
    RecordSlow,
    CountCollapse(Result<(), CollapseError>, Took),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done, or nothing to do; to a question: no.
    Nothing,
    Yes,
    Pages(u64),
    HugePages(HugePages),
    At(HugePageId),
    Span(Span),
    Tick(Tick),
    /// No span has these bounds. Nothing has changed.
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

pub trait PageHeapExt: PageHeap {
    fn granted(&self) -> HugePages {
        self.figures().granted
    }

    fn capacity(&self) -> HugePages {
        self.figures().capacity
    }

    fn in_use(&self) -> Pages {
        self.figures().in_use
    }

    fn backed_pages(&self) -> Pages {
        self.figures().backed_pages
    }

    fn backed(&self) -> HugePages {
        self.figures().backed
    }

    fn backing(&self) -> HugeBacking {
        self.figures().backing
    }

    /// `None`: it would need new memory.
    fn alloc_backed(&mut self, pages: Pages, align: Pages, density: Density) -> Option<Span> {
        if let Answer::Span(span) = self.act(Act::AllocBacked(pages, align, density)) { Some(span) } else { None }
    }

    /// Whether the span would take new memory of which a program touches little.
    fn is_better_apart(&mut self, pages: Pages) -> bool {
        self.act(Act::IsBetterApart(pages)) == Answer::Yes
    }

    /// Adjacent spans, up to a quarter of one hugepage, into spans of `each` pages.
    fn recut(&mut self, range: PageRange, each: Pages) -> Result<(), SpanError> {
        self.act(Act::Recut(range, each)).faultless()
    }

    /// If free, backed, and beside other short spans.
    fn alloc_at(&mut self, range: PageRange) -> bool {
        self.act(Act::AllocAt(range)) == Answer::Yes
    }

    /// At the span's front; their memory can be moved away.
    fn movable(&mut self, span: PageRange) -> HugePages {
        if let Answer::HugePages(whole) = self.act(Act::Movable(span)) { whole } else { HugePages(0) }
    }

    /// Its [`Self::movable`] hugepages have lost their memory.
    fn free_moved(&mut self, span: PageRange) -> Result<(), SpanError> {
        self.act(Act::FreeMoved(span)).faultless()
    }

    /// On hugepages that the span fully covers; [`Self::unadvise_span`] before its free.
    fn advise_span(&mut self, span: PageRange, advice: Advice) {
        self.act(Act::Advise(span, advice));
    }

    fn unadvise_span(&mut self, span: PageRange, advice: Advice) {
        self.act(Act::Unadvise(span, advice));
    }

    /// Also advises granted memory anew.
    fn set_backing(&mut self, backing: HugeBacking) {
        self.act(Act::SetBacking(backing));
    }

    /// Allowed at first.
    fn set_regions(&mut self, allowed: bool) {
        self.act(Act::SetRegions(allowed));
    }

    /// 0, as at first: no background release.
    fn set_release_rate(&mut self, bytes_per_s: u64) {
        self.act(Act::SetReleaseRate(bytes_per_s));
    }

    /// Lowers the cache limit, releases due memory, and collapses. Call each second, also when
    /// idle.
    fn tick(&mut self) -> Tick {
        if let Answer::Tick(tick) = self.act(Act::Tick) { tick } else { Tick::default() }
    }

    /// Bounded, without collapses; call again if there is more.
    fn tick_step(&mut self) -> Tick {
        if let Answer::Tick(tick) = self.act(Act::TickStep) { tick } else { Tick::default() }
    }

    fn releasable(&mut self, breaking: Breaking) -> Pages {
        Pages(self.act(Act::Releasable(breaking)).pages() as u32)
    }

    /// Returns pages: a few more, since hugepages go whole, or fewer where the system refuses.
    ///
    /// # Errors
    /// Fewer can be released.
    fn release(&mut self, pages: Pages, breaking: Breaking) -> Result<u64, TooMuch> {
        match self.act(Act::Release(pages, breaking)) {
            Answer::TooMuch(too_much) => Err(too_much),
            done => Ok(done.pages()),
        }
    }

    /// Returns pages.
    fn release_all(&mut self, breaking: Breaking) -> u64 {
        self.act(Act::ReleaseAll(breaking)).pages()
    }

    /// Ask once a round: failures make it skip rounds.
    fn collapse_is_due(&mut self) -> bool {
        self.act(Act::CollapseIsDue) == Answer::Yes
    }

    /// Backed until [`Self::end_collapse`]; the caller may release the lock meanwhile.
    fn begin_collapse(&mut self) -> Option<HugePageId> {
        if let Answer::At(id) = self.act(Act::BeginCollapse) { Some(id) } else { None }
    }

    /// Whether the round may go on.
    fn end_collapse(&mut self, id: HugePageId, result: Result<(), CollapseError>, took: Took) -> bool {
        self.act(Act::EndCollapse(id, result, took)) == Answer::Yes
    }

    #[inline(always)]
    fn is_growing(&self) -> bool {
        let figures = self.figures();
        figures.refill_due > Pages(0) || figures.clear_due
    }

    #[inline(always)]
    fn has_dense_small(&self) -> bool {
        self.figures().dense_small >= MANY_DENSE
    }

    #[inline(always)]
    fn refill_due(&self) -> Pages {
        self.figures().refill_due
    }

    /// A mostly unbacked hugepage; collapse it, as of [`Self::begin_collapse`].
    fn begin_refill(&mut self) -> Option<HugePageId> {
        if let Answer::At(id) = self.act(Act::BeginRefill) { Some(id) } else { None }
    }

    /// [`Self::end_clear`] must follow. The caller may release the lock meanwhile: a first touch
    /// clears it too.
    fn begin_clear(&mut self) -> Option<HugePageId> {
        if let Answer::At(id) = self.act(Act::BeginClear) { Some(id) } else { None }
    }

    fn end_clear(&mut self, id: HugePageId, result: Result<(), NoMemory>, took: Took) {
        self.act(Act::EndClear(id, result, took));
    }

    /// Whether a thread collapses hugepages.
    fn set_helped(&mut self, helped: bool) {
        self.act(Act::SetHelped(helped));
    }

    /// The first touch of a hugepage took long.
    fn record_slow(&mut self) {
        self.act(Act::RecordSlow);
    }

    /// Whether the round may go on.
    fn count_collapse(&mut self, result: Result<(), CollapseError>, took: Took) -> bool {
        self.act(Act::CountCollapse(result, took)) == Answer::Yes
    }
}

impl<H: PageHeap> PageHeapExt for H {}
