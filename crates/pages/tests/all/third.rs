//! A third page heap, and what every one must do.

use crate::common::frames;
use craton_base::{
    Density, Floor, HugePages, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages, Span, SpanError, SpanSource, Table,
};
use craton_pages::{
    Act, Answer, Breaking, CollapseStats, Figures, FrameHeap, HugeBacking, PageHeap, PageHeapExt, Temeraire, Tracker,
};
use craton_sim::{Rng, SimFloor, ThpMode, VirtualClock};
use std::collections::BTreeMap;

const CAPACITY: HugePages = HugePages(40);

struct FirstFit<F> {
    floor: F,
    granted: HugePages,
    /// Length and density.
    spans: BTreeMap<u32, (u32, Density)>,
    touched: Vec<bool>,
}

impl<F: Floor> FirstFit<F> {
    fn new(floor: F) -> Self {
        Self { floor, granted: HugePages(0), spans: BTreeMap::new(), touched: vec![false; CAPACITY.pages().0 as usize] }
    }

    fn gaps(&self) -> Vec<PageRange> {
        let (mut at, mut gaps) = (0, Vec::new());
        for (first, len) in self.spans.iter().map(|(f, (l, _))| (*f, *l)).chain([(CAPACITY.pages().0, 0)]) {
            gaps.push(PageRange::new(PageId(at), Pages(first - at)));
            at = first + len;
        }
        gaps
    }

    fn fault(&self, span: PageRange) -> Result<(), SpanError> {
        let within = self.spans.range(..=span.first.0).next_back();
        match within {
            Some((first, (len, _))) if *first == span.first.0 && *len == span.len.0 => Ok(()),
            Some((first, _)) if *first == span.first.0 => Err(SpanError::WrongLength(span.first)),
            Some((first, (len, _))) if span.first.0 < first + len => Err(SpanError::NeverGiven(span.first)),
            _ => Err(SpanError::AlreadyFree(span.first)),
        }
    }

    fn use_pages(&mut self, range: PageRange) -> Result<bool, SpanError> {
        let need = Pages(range.end().0).hugepages_up();
        if need > self.granted {
            self.floor.reserve(need)?;
            self.granted = need;
        }
        let pages = &mut self.touched[range.first.0 as usize..range.end().0 as usize];
        let zeroed = !pages.contains(&true);
        pages.fill(true);
        Ok(zeroed)
    }
}

impl<F: Floor> SpanSource for FirstFit<F> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let places = self.gaps().into_iter().map(|gap| (gap.first.0.next_multiple_of(align.0), gap.end().0));
        let first = { places }.find(|(at, end)| at + pages.0 <= *end).ok_or(SpanError::NoMemory)?.0;
        let range = PageRange::new(PageId(first), pages);
        let zeroed = self.use_pages(range)?;
        self.spans.insert(first, (pages.0, density));
        Ok(Span { range, zeroed })
    }

    fn free(&mut self, span: PageRange, _: Density) -> Result<(), SpanError> {
        self.fault(span)?;
        self.spans.remove(&span.first.0);
        Ok(())
    }

    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError> {
        self.fault(span)?;
        let mut zeroed = true;
        if pages > span.len {
            let more = PageRange::new(span.end(), Pages(pages.0 - span.len.0));
            if !self.gaps().iter().any(|gap| gap.first == more.first && gap.len >= more.len) {
                return Err(SpanError::NoMemory);
            }
            zeroed = self.use_pages(more)?;
        }
        self.spans.get_mut(&span.first.0).unwrap().0 = pages.0;
        Ok(zeroed)
    }
}

impl<F: Floor> PageHeap for FirstFit<F> {
    fn figures(&self) -> Figures {
        Figures {
            granted: self.granted,
            capacity: CAPACITY,
            in_use: Pages(self.spans.values().map(|(len, _)| len).sum()),
            backed_pages: Pages(self.touched.iter().filter(|touched| **touched).count() as u32),
            backed: self.granted,
            backing: HugeBacking::NEVER,
            guarded: HugePages(0),
            left_small: HugePages(0),
            cache_limit: HugePages(0),
            released_total: 0,
            collapses: CollapseStats::default(),
            refill_due: Pages(0),
            clear_due: false,
            dense_small: HugePages(0),
        }
    }

    fn for_each_span(&self, mut each: impl FnMut(PageRange, Density)) {
        self.spans
            .iter()
            .for_each(|(first, (len, density))| each(PageRange::new(PageId(*first), Pages(*len)), *density));
    }

    fn act(&mut self, act: Act) -> Answer {
        let Act::ReleaseAll(Breaking::Always) = act else { return Answer::Nothing };
        let mut released = 0;
        for gap in self.gaps() {
            let end = gap.end().0.min(self.granted.pages().0);
            let pages = gap.first.0 as usize..end as usize;
            if !pages.is_empty() && self.floor.unback(PageRange::new(gap.first, Pages(end - gap.first.0))).is_ok() {
                released += self.touched[pages.clone()].iter().filter(|touched| **touched).count();
                self.touched[pages].fill(false);
            }
        }
        Answer::Pages(released as u64)
    }
}

fn keeps_its_promises(mut heap: impl PageHeap, sim: &SimFloor) {
    let (mut rng, mut out): (_, Vec<(PageRange, Density)>) = (Rng::new(7), Vec::new());
    for step in 0..4000 {
        if rng.one_in(2) && heap.in_use() < Pages(24 * PAGES_PER_HUGEPAGE) {
            let (pages, align) = (Pages(1 + rng.size(600) as u32), Pages(1 << rng.below(4)));
            let density = if rng.one_in(2) { Density::Dense } else { Density::Sparse };
            let Ok(span) = heap.alloc(pages, align, density) else { continue };
            assert!(span.range.len == pages && span.range.first.0.is_multiple_of(align.0));
            assert!(!span.zeroed || sim.written(span.range) == Pages(0));
            sim.touch(span.range);
            out.push((span.range, density));
        } else if !out.is_empty() {
            let nth = rng.below(out.len() as u64) as usize;
            let (span, density) = out.swap_remove(nth);
            assert_eq!(sim.written(span), span.len, "{span:?} lost contents");
            let longer = PageRange::new(span.first, Pages(span.len.0 + 1));
            assert!(heap.free(longer, density).is_err());
            match heap.resize(span, Pages(span.len.0 / 2 + 1)) {
                Ok(_) if rng.one_in(2) => out.push((PageRange::new(span.first, Pages(span.len.0 / 2 + 1)), density)),
                Ok(_) => heap.free(PageRange::new(span.first, Pages(span.len.0 / 2 + 1)), density).unwrap(),
                Err(error) => panic!("{span:?} cannot become shorter: {error}"),
            }
        }
        if step % 100 == 0 {
            out.sort_by_key(|(span, _)| span.first);
            assert!(out.windows(2).all(|pair| pair[0].0.end() <= pair[1].0.first));
            let mut walked = Vec::new();
            heap.for_each_span(|span, _| walked.push(span));
            assert!(walked.iter().eq(out.iter().map(|(span, _)| span)));
            assert_eq!(heap.in_use(), Pages(out.iter().map(|(span, _)| span.len.0).sum()));
            assert_eq!(heap.backed_pages().bytes(), sim.backed_bytes());
            assert!(heap.granted() <= heap.capacity());
            heap.release_all(Breaking::Always);
            assert_eq!(heap.backed_pages(), heap.in_use(), "free pages have no memory after a full release");
        }
    }
    out.into_iter().for_each(|(span, density)| heap.free(span, density).unwrap());
    heap.release_all(Breaking::Always);
    assert_eq!((heap.in_use(), sim.backed_bytes().0), (Pages(0), 0));
}

fn trackers() -> Table<Tracker> {
    Table::from_slice((0..CAPACITY.0).map(|_| Tracker::default()).collect::<Vec<_>>().leak())
}

#[test]
fn temeraire_is_a_page_heap() {
    let (sim, clock) = (SimFloor::new(CAPACITY, ThpMode::Never), VirtualClock::new(1 << 40));
    let heap: Temeraire<_, _> = Temeraire::new(sim.clone(), clock, trackers(), CAPACITY, HugeBacking::AUTO);
    keeps_its_promises(heap, &sim);
}

#[test]
fn frames_are_a_page_heap() {
    let (sim, clock) = (SimFloor::new(CAPACITY, ThpMode::Never), VirtualClock::new(1 << 40));
    let mut heap: FrameHeap<_, _, frames::Frames> =
        Temeraire::new(sim.clone(), clock, trackers(), CAPACITY, HugeBacking::AUTO);
    heap.set_frames(frames::seat(frames::zone(CAPACITY)));
    keeps_its_promises(heap, &sim);
}

#[test]
fn a_third_page_heap_takes_one_file() {
    let sim = SimFloor::new(CAPACITY, ThpMode::Never);
    keeps_its_promises(FirstFit::new(sim.clone()), &sim);
}
