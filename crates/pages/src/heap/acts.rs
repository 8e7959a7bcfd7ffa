use super::Temeraire;
use crate::fit::Fit;
use crate::page_heap::{Act, Answer, Figures, PageHeap};
use crate::placement::Placement;
use craton_base::{Clock, Density, Floor, Geometry, PageRange};

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> PageHeap for Temeraire<F, C, P, K, G> {
    #[inline(always)]
    fn figures(&self) -> Figures {
        Figures {
            granted: self.granted(),
            capacity: self.capacity(),
            in_use: self.in_use(),
            backed_pages: self.backed_pages(),
            backed: self.backed(),
            backing: self.backing.wanted(),
            guarded: self.backing.guarded(),
            left_small: self.backing.left_small(),
            cache_limit: self.cache_limit(),
            released_total: self.release.total(),
            collapses: self.collapse.stats(),
            refill_due: self.growth.refill_due(self.in_use),
            clear_due: self.growth.clears(),
            dense_small: self.backing.dense_small(),
        }
    }

    fn for_each_span(&self, each: impl FnMut(PageRange, Density)) {
        self.walk_spans(each);
    }

    // The act is constant: the match folds.
    #[inline(always)]
    fn act(&mut self, act: Act) -> Answer {
        match act {
            Act::AllocBacked(pages, align, density) => {
                self.alloc_backed(pages, align, density).map_or(Answer::Nothing, Answer::Span)
            }
            Act::IsBetterApart(pages) => {
                Answer::of(self.backing.is_sparse(pages) && self.cache.total() < G::hugepages_up(pages))
            }
            Act::Recut(range, each) => self.recut(range, each).into(),
            Act::AllocAt(range) => Answer::of(self.alloc_at(range)),
            Act::Movable(span) => Answer::HugePages(self.movable(span)),
            Act::FreeMoved(span) => self.free_moved(span).into(),
            Act::Advise(span, advice) => {
                self.advise_span(span, advice);
                Answer::Nothing
            }
            Act::Unadvise(span, advice) => {
                self.unadvise_span(span, advice);
                Answer::Nothing
            }
            Act::SetBacking(backing) => {
                self.set_backing(backing);
                Answer::Nothing
            }
            Act::SetRegions(allowed) => {
                self.set_regions(allowed);
                Answer::Nothing
            }
            Act::SetReleaseRate(bytes_per_s) => {
                self.release.set_rate(bytes_per_s, self.clock.now_ns());
                Answer::Nothing
            }
            Act::Tick => Answer::Tick(self.tick()),
            Act::TickStep => Answer::Tick(self.tick_step()),
            Act::Releasable(breaking) => Answer::Pages(self.releasable(breaking).0.into()),
            Act::Release(pages, breaking) => self.release(pages, breaking).map_or_else(Answer::TooMuch, Answer::Pages),
            Act::ReleaseAll(breaking) => Answer::Pages(self.release_all(breaking)),
            Act::CollapseIsDue => {
                let due = self.collapse.is_due();
                if due {
                    self.backing.forget_dense_small();
                }
                Answer::of(due)
            }
            Act::BeginCollapse => self.begin_collapse().map_or(Answer::Nothing, Answer::At),
            Act::EndCollapse(id, result, took) => Answer::of(self.end_collapse(id, result, took)),
            Act::BeginRefill => self.begin_refill().map_or(Answer::Nothing, Answer::At),
            Act::BeginClear => self.begin_clear().map_or(Answer::Nothing, Answer::At),
            Act::EndClear(id, result, took) => {
                self.end_clear(id, result, took);
                Answer::Nothing
            }
            Act::SetHelped(helped) => {
                self.growth.set_helped(helped);
                Answer::Nothing
            }
            Act::RecordSlow => {
                self.growth.pause(self.clock.now_ns());
                Answer::Nothing
            }
            Act::CountCollapse(result, took) => Answer::of(self.collapse.record(result, took)),
        }
    }
}
