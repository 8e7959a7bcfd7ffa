extern crate std;
use super::*;
use crate::cache_limit::{CACHE_MIN_HUGEPAGES, WINDOW_NS};
use crate::growth::SLOW_NS;
use crate::release::Breaking;
use crate::testing::{Counting, trackers};
use crate::{PageHeapExt, Took};
use core::cell::Cell;
use craton_base::{Advice, CollapseError, Huge2M, HugePageId, NoMemory, PageId};
use std::rc::Rc;
use std::vec::Vec;

struct Ticks(Rc<Cell<u64>>);
impl Clock for Ticks {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

type Heap = Temeraire<Counting, Ticks>;

fn heap(capacity: u32) -> (Heap, Rc<Cell<u64>>) {
    let now = Rc::new(Cell::new(WINDOW_NS));
    let (floor, ticks) = (Counting::new(capacity), Ticks(now.clone()));
    (Temeraire::new(floor, ticks, trackers(capacity), HugePages(capacity), HugeBacking::AUTO), now)
}

fn sure(capacity: u32) -> (Heap, Rc<Cell<u64>>) {
    let (mut heap, now) = heap(capacity);
    heap.set_backing(HugeBacking::ALWAYS);
    (heap, now)
}

fn alloc(heap: &mut Heap, pages: u32) -> PageRange {
    let span = heap.alloc(Pages(pages), Pages(1), Density::Sparse).expect("room");
    heap.check().unwrap();
    span.range
}

fn free(heap: &mut Heap, span: PageRange) {
    heap.free(span, Density::Sparse).expect("the span is out");
    heap.check().unwrap();
}

#[test]
fn a_full_hugepage_is_preferred_to_an_empty_one() {
    let (mut heap, _) = heap(64);
    let a: Vec<_> = (0..4).map(|_| alloc(&mut heap, 64)).collect();
    let b = alloc(&mut heap, 100);
    assert_eq!((a[3].first.hugepage(), b.first.hugepage()), (HugePageId(0), HugePageId(1)));
    free(&mut heap, a[1]);
    // The fuller one's longest free range is smaller.
    assert_eq!(alloc(&mut heap, 64), a[1]);
}

#[test]
fn slack_of_a_large_span_is_donated_and_comes_back_with_it() {
    let (mut heap, _) = heap(64);
    let large = alloc(&mut heap, 2 * 256 + 64);
    assert_eq!(heap.stats().in_use, Pages(2 * 256 + 64));
    let small = alloc(&mut heap, 64);
    assert_eq!(small.first.hugepage(), HugePageId(large.first.hugepage().0 + 2));
    free(&mut heap, large);
    assert_eq!(heap.stats().in_use, Pages(64));
    free(&mut heap, small);
    assert_eq!((heap.stats().in_use, heap.in_demand()), (Pages(0), HugePages(0)));
}

#[test]
fn a_drop_goes_back_to_the_system_at_once_but_for_the_minimum() {
    let (mut heap, _) = sure(256);
    let spans: Vec<_> = (0..100).map(|_| alloc(&mut heap, 256)).collect();
    spans.into_iter().for_each(|s| free(&mut heap, s));
    assert_eq!(heap.cache.total(), CACHE_MIN_HUGEPAGES);
    assert_eq!(heap.stats().released_total, u64::from(100 - CACHE_MIN_HUGEPAGES.0) * 256);
}

#[test]
fn memory_of_spans_that_may_stay_untouched_goes_back_with_the_last_span() {
    let (mut heap, _) = heap(2048);
    for pages in [40, 256, 600] {
        let spans: Vec<_> = (0..20).map(|_| alloc(&mut heap, pages)).collect();
        spans.into_iter().for_each(|s| free(&mut heap, s));
        assert_eq!(heap.stats().backed, Pages(0), "spans of {pages} pages");
    }
    let spans: Vec<_> = (0..40).map(|_| alloc(&mut heap, 150)).collect();
    let gone = spans.iter().find(|span| heap.trackers[span.first.hugepage().0 as usize].place == Place::Region);
    let (gone, unbacked) = (*gone.expect("a region"), heap.floor.unbacked.len());
    free(&mut heap, gone);
    assert_eq!(heap.floor.unbacked[unbacked..], [gone]);
    heap.floor.keeps = true;
    spans.into_iter().filter(|span| *span != gone).for_each(|s| free(&mut heap, s));
    assert!(heap.stats().backed > Pages(20 * 150));
}

#[test]
fn demand_that_returns_is_kept_from_then_on() {
    let (mut heap, now) = sure(256);
    for round in 0..4 {
        let spans: Vec<_> = (0..100).map(|_| alloc(&mut heap, 256)).collect();
        spans.into_iter().for_each(|s| free(&mut heap, s));
        now.set(now.get() + WINDOW_NS / 20);
        if round == 1 {
            heap.floor.unbacked.clear();
        }
    }
    assert!(heap.floor.unbacked.is_empty(), "an oscillation was released again");
    now.set(now.get() + 2 * WINDOW_NS);
    let one = alloc(&mut heap, 1);
    free(&mut heap, one);
    assert_eq!(heap.cache.total(), CACHE_MIN_HUGEPAGES);
}

#[test]
fn hugepages_are_asked_for_from_the_threshold_on() {
    let (mut heap, _) = heap(256);
    let first = alloc(&mut heap, 1);
    let asked: Vec<_> = heap.floor.advised.iter().filter(|(_, advice)| *advice == Advice::Huge).collect();
    assert!(!asked.is_empty() && asked.iter().all(|(r, _)| r.first.hugepage() >= HugeBacking::AUTO.from));
    free(&mut heap, first);
}

#[test]
fn a_span_grows_and_shrinks_where_it_stands() {
    let (mut heap, _) = heap(64);
    let mut span = alloc(&mut heap, 10);
    let mut grow = |heap: &mut Heap, pages: u32| {
        let zeroed = heap.resize(span, Pages(pages));
        heap.check().unwrap();
        if zeroed.is_ok() {
            span.len = Pages(pages);
        }
        zeroed
    };
    assert_eq!(grow(&mut heap, 200), Ok(true));
    assert_eq!(grow(&mut heap, 256), Ok(true));
    assert_eq!(grow(&mut heap, 300), Ok(true));
    assert_eq!(grow(&mut heap, 5000), Ok(true));
    assert_eq!(grow(&mut heap, 600), Ok(true));
    assert_eq!(grow(&mut heap, 601), Ok(false), "pages used before do not read as zeros");
    assert_eq!(grow(&mut heap, 64 * 256 + 1), Err(SpanError::TooLong(Pages(64 * 256 + 1))));
    assert_eq!(heap.stats().in_use, Pages(601));
    let behind = alloc(&mut heap, 10);
    assert_eq!(behind.first, span.end(), "the donated slack serves others");
    assert_eq!(heap.resize(span, Pages(602)), Err(SpanError::NoMemory));
    assert_eq!(heap.resize(span, Pages(1)), Ok(true));
    heap.check().unwrap();
    free(&mut heap, PageRange::new(span.first, Pages(1)));
    free(&mut heap, behind);
    assert_eq!(heap.stats().in_use, Pages(0));
}

#[test]
fn neighbours_become_one_span_and_one_becomes_several() {
    let (mut heap, _) = heap(64);
    let span = |first, len| PageRange::new(PageId(first), Pages(len));
    for first in 0..4 {
        assert_eq!(heap.alloc(Pages(1), Pages(1), Density::Dense).unwrap().range, span(first, 1));
    }
    assert_eq!(heap.alloc(Pages(4), Pages(1), Density::Dense).unwrap().range, span(4, 4));
    let wrong = |page| Err(SpanError::WrongLength(PageId(page)));
    assert_eq!(heap.recut(span(5, 2), Pages(1)), wrong(5), "no span begins there");
    assert_eq!(heap.recut(span(3, 2), Pages(2)), wrong(3), "one goes on behind it");
    assert_eq!(heap.recut(span(6, 4), Pages(4)), wrong(6), "some are free");
    assert_eq!(heap.recut(span(0, 3), Pages(2)), wrong(0), "one page is left");
    assert_eq!(heap.recut(span(2, 2), Pages(2)), Ok(()));
    assert_eq!(heap.recut(span(4, 4), Pages(1)), Ok(()));
    heap.check().unwrap();
    assert_eq!(heap.free(span(3, 1), Density::Dense), Err(SpanError::NeverGiven(PageId(3))));
    assert_eq!(heap.free(span(2, 1), Density::Dense), wrong(2));
    assert_eq!(heap.free(span(5, 1), Density::Dense), Ok(()));
    assert!(!heap.alloc_at(span(4, 2)) && !heap.alloc_at(span(300, 1)) && !heap.alloc_at(span(20, 1)));
    assert!(heap.alloc_at(span(5, 1)) && !heap.alloc_at(span(5, 1)));
    assert_eq!(heap.recut(span(0, 8), Pages(8)), Ok(()));
    heap.check().unwrap();
    assert_eq!(heap.recut(span(0, 8), Pages(2)), Ok(()));
    for first in [0, 4, 2, 6] {
        assert_eq!(heap.free(span(first, 2), Density::Dense), Ok(()));
        heap.check().unwrap();
    }
    assert_eq!(heap.in_use(), Pages(0));
}

#[test]
fn release_takes_whole_hugepages_first_and_breaks_others_only_when_allowed() {
    let (mut heap, _) = sure(64);
    let spans: Vec<_> = (0..8).map(|_| alloc(&mut heap, 64)).collect();
    let (keep, lose) = (spans[0], spans[1]);
    free(&mut heap, lose);
    let whole = alloc(&mut heap, 512);
    free(&mut heap, whole);
    assert_eq!(heap.release(Pages(256), Breaking::Never), Ok(256));
    assert_eq!(heap.release_all(Breaking::Never), 256);
    assert_eq!(heap.release_all(Breaking::Always), 64);
    heap.check().unwrap();
    assert_eq!(heap.release_all(Breaking::Always), 0);
    let again = heap.alloc(Pages(64), Pages(1), Density::Sparse).unwrap();
    assert!(again.zeroed && again.range == lose, "a broken hugepage is used when nothing else has room");
    free(&mut heap, keep);
}

#[test]
fn bad_requests_are_refused_with_the_state_unchanged() {
    let (mut heap, _) = heap(4);
    let before = heap.stats();
    for (pages, align, error) in [
        (0, 1, SpanError::Empty),
        (u32::MAX, 1, SpanError::TooLong(Pages(u32::MAX))),
        (5 * 256, 1, SpanError::TooLong(Pages(5 * 256))),
        (1, 1 << 20, SpanError::TooLong(Pages(1 << 20))),
        (1, 3, SpanError::Alignment(Pages(3))),
    ] {
        assert_eq!(heap.alloc(Pages(pages), Pages(align), Density::Dense), Err(error));
        assert_eq!(heap.stats(), before);
    }
    let span = heap.alloc(Pages(1), Pages(512), Density::Sparse).unwrap();
    assert_eq!(span.range.first.0 % 512, 0);
}

#[test]
fn a_span_that_is_not_out_just_so_is_refused_with_its_fault() {
    let (mut heap, _) = heap(64);
    let spans = [alloc(&mut heap, 10), alloc(&mut heap, 20), alloc(&mut heap, 300), alloc(&mut heap, 512)];
    let [a, b, c, d] = spans;
    free(&mut heap, b);
    let before = heap.stats();
    let range = |first: PageId, len: u32| PageRange::new(first, Pages(len));
    let (inside, beyond) = (PageId(a.first.0 + 1), PageId(64 * 256));
    for (span, error) in [
        (b, SpanError::AlreadyFree(b.first)),
        (range(inside, 9), SpanError::NeverGiven(inside)),
        (range(a.first, 9), SpanError::WrongLength(a.first)),
        (range(a.first, 11), SpanError::WrongLength(a.first)),
        (range(c.first, 256), SpanError::WrongLength(c.first)),
        (range(c.first, 301), SpanError::WrongLength(c.first)),
        (range(PageId(c.first.0 + 256), 44), SpanError::NeverGiven(PageId(c.first.0 + 256))),
        (range(d.first, 256), SpanError::WrongLength(d.first)),
        (range(d.first, 0), SpanError::WrongLength(d.first)),
        (range(beyond, 1), SpanError::NeverGiven(beyond)),
        (range(PageId(u32::MAX), 1), SpanError::NeverGiven(PageId(u32::MAX))),
        (range(d.first, u32::MAX), SpanError::NeverGiven(d.first)),
    ] {
        assert_eq!(heap.free(span, Density::Sparse), Err(error), "{span:?}");
        assert_eq!(heap.resize(span, Pages(5)), Err(error), "{span:?}");
        assert_eq!(heap.stats(), before);
        heap.check().unwrap();
    }
    [a, c, d].into_iter().for_each(|span| free(&mut heap, span));
}

#[test]
fn more_than_there_is_cannot_be_released() {
    let (mut heap, _) = heap(64);
    let (keep, lose) = (alloc(&mut heap, 64), alloc(&mut heap, 64));
    free(&mut heap, lose);
    let before = heap.stats();
    let error = heap.release(Pages(65), Breaking::Always).unwrap_err();
    assert_eq!((error.asked, error.there), (Pages(65), Pages(64)));
    assert_eq!(heap.stats(), before);
    assert_eq!(heap.release(Pages(64), Breaking::Always), Ok(64));
    free(&mut heap, keep);
}

fn dense(heap: &mut Heap, hugepages: u32) -> Vec<PageRange> {
    let spans = (0..hugepages * 256).map(|_| heap.alloc(Pages(1), Pages(1), Density::Dense).expect("room").range);
    let spans = spans.collect();
    heap.check().unwrap();
    spans
}

#[test]
fn a_kind_goes_to_hugepages_of_the_other_only_where_its_own_have_no_room() {
    let (mut heap, _) = heap(64);
    let small = dense(&mut heap, 8);
    let sparse = alloc(&mut heap, 8);
    assert_eq!(sparse.first.hugepage(), HugePageId(8), "the dense hugepages are full");
    small[..16].iter().for_each(|s| free(&mut heap, *s));
    assert_eq!(alloc(&mut heap, 8).first.hugepage(), HugePageId(8));
    let last = alloc(&mut heap, 240);
    assert_eq!(last.first.hugepage(), HugePageId(8));
    small[16..1024].iter().for_each(|s| free(&mut heap, *s));
    assert!(alloc(&mut heap, 8).first.hugepage() < HugePageId(8));
    assert_eq!(alloc(&mut heap, 100).first.hugepage(), HugePageId(0), "which came wholly free");
}

#[test]
fn a_small_heap_takes_no_hugepage_for_one_kind_while_the_other_has_room() {
    for (hugepages, shared) in [(8, true), (128, true), (129, false)] {
        let (mut heap, _) = heap(256);
        let small = dense(&mut heap, hugepages);
        small[..16].iter().for_each(|s| free(&mut heap, *s));
        let first = alloc(&mut heap, 8).first.hugepage();
        assert_eq!(first, HugePageId(if shared { 0 } else { hugepages }), "with {hugepages} dense hugepages");
    }
}

#[test]
fn what_the_cache_cannot_serve_does_not_come_on_top_of_it() {
    let (mut heap, now) = sure(64);
    let spans: Vec<_> = (0..8).map(|_| alloc(&mut heap, 256)).collect();
    for _ in 0..2 {
        let more: Vec<_> = (0..12).map(|_| alloc(&mut heap, 256)).collect();
        more.into_iter().for_each(|s| free(&mut heap, s));
        now.set(now.get() + WINDOW_NS / 20);
    }
    spans.iter().step_by(2).for_each(|s| free(&mut heap, *s));
    let backed = heap.stats().backed;
    let longer = alloc(&mut heap, 20 * 256);
    assert_eq!(heap.stats().backed.0, backed.0.max(24 * 256), "of {backed:?}");
    free(&mut heap, longer);
}

#[test]
fn what_a_region_takes_does_not_come_on_top_of_the_cache() {
    let (mut heap, now) = sure(2048);
    for _ in 0..3 {
        let spans: Vec<_> = (0..60).map(|_| alloc(&mut heap, 256)).collect();
        spans.into_iter().for_each(|s| free(&mut heap, s));
        now.set(now.get() + WINDOW_NS / 20);
    }
    assert_eq!(heap.cache.total(), HugePages(60), "it will be wanted again");
    let odd: Vec<_> = (0..60).map(|_| alloc(&mut heap, 150)).collect();
    assert!(odd.iter().any(|span| heap.trackers[span.first.hugepage().0 as usize].place == Place::Region));
    assert!(heap.stats().backed <= Pages(62 * 256), "{:?}", heap.stats());
}

#[test]
fn a_dense_hugepage_of_which_little_is_left_takes_long_spans() {
    let (mut heap, _) = heap(64);
    let small = dense(&mut heap, 1);
    small[..192].iter().for_each(|s| free(&mut heap, *s));
    assert_eq!(alloc(&mut heap, 100).first.hugepage(), HugePageId(1), "a quarter is left");
    free(&mut heap, small[192]);
    assert_eq!(alloc(&mut heap, 190).first.hugepage(), HugePageId(0));
}

fn helped() -> (Heap, Rc<Cell<u64>>) {
    let (mut heap, now) = heap(512);
    heap.set_helped(true);
    (0..HugeBacking::AUTO.from.0).for_each(|_| _ = alloc(&mut heap, 256));
    (heap, now)
}

fn grow(heap: &mut Heap) -> bool {
    let first = dense(heap, 1)[0];
    heap.trackers[first.first.hugepage().0 as usize].intact
}

#[test]
fn slabs_that_come_slowly_begin_on_small_pages_and_are_collapsed() {
    let (mut heap, now) = helped();
    let front = heap.backing.left_small().0;
    let wholes: Vec<_> = [1_000, 1, 1, 1, 500, 1]
        .map(|ms| {
            now.set(now.get() + ms * 1_000_000);
            grow(&mut heap)
        })
        .into();
    assert_eq!(wholes, [false, true, true, true, false, true]);
    assert_eq!(heap.backing.left_small().0 - front, 2);
    let mut collapsed = 0;
    while let Some(id) = heap.begin_collapse() {
        heap.end_collapse(id, Ok(()), Took::busy(0));
        collapsed += 1;
    }
    assert_eq!((collapsed, heap.backing.left_small().0), (2, front));
    heap.set_backing(HugeBacking::ALWAYS);
    now.set(now.get() + WINDOW_NS);
    assert!(grow(&mut heap), "as the option wants");
}

#[test]
fn after_a_slow_fault_or_collapse_no_hugepage_is_asked_for_until_the_pause_ends() {
    for slow in 0..3 {
        let (mut heap, now) = helped();
        now.set(now.get() + 1_000_000_000);
        assert!(!grow(&mut heap) && grow(&mut heap));
        match slow {
            0 => heap.record_slow(),
            1 => {
                let id = heap.begin_collapse().expect("the first");
                heap.end_collapse(id, Ok(()), Took::busy(SLOW_NS));
            }
            _ => {
                let id = heap.begin_collapse().expect("the first");
                heap.end_collapse(id, Err(CollapseError::NoMemory), Took::busy(0));
            }
        }
        assert!((0..20).all(|_| !grow(&mut heap)), "{slow}");
        let long = alloc(&mut heap, 1024);
        assert!(!heap.trackers[long.first.hugepage().0 as usize].intact);
        now.set(now.get() + 1_000_000_000);
        heap.tick_step();
        grow(&mut heap);
        assert!(grow(&mut heap), "{slow}: the pause is over");
    }
}

fn broken(heap: &Heap) -> usize {
    (0..512).filter(|i| heap.trackers[*i].broken).count()
}

#[test]
fn a_rise_after_a_release_refills_broken_hugepages_no_faster_than_it_grows() {
    let (mut heap, now) = helped();
    let spans: Vec<_> = (0..64 * 8).map(|_| alloc(&mut heap, 32)).collect();
    let (kept, gone): (Vec<_>, Vec<_>) = spans.into_iter().enumerate().partition(|(i, _)| i % 8 == 0);
    gone.into_iter().for_each(|(_, span)| free(&mut heap, span));
    heap.release_all(Breaking::Always);
    now.set(now.get() + 1_000_000_000);
    heap.tick_step();
    assert_eq!((heap.refill_due(), heap.begin_refill(), broken(&heap)), (Pages(0), None, 64));
    let mut refilled = 0;
    let mut risen = Vec::new();
    while risen.len() < 64 * 7 {
        risen.extend((0..16).map(|_| alloc(&mut heap, 32)));
        while let Some(id) = heap.begin_refill() {
            heap.end_collapse(id, Ok(()), Took::busy(200_000));
            heap.check().unwrap();
            refilled += 1;
        }
        let grown = (risen.len() * 32) as u32;
        assert!(refilled * 224 <= grown + 224, "{refilled} {grown}");
    }
    assert!(refilled > 30, "half of the rise at least: {refilled}");
    let whole = |span: &PageRange| heap.trackers[span.first.hugepage().0 as usize].intact;
    assert_eq!(kept.iter().filter(|(_, span)| whole(span)).count(), refilled as usize);
}

#[test]
fn a_failed_refill_ends_those_of_the_tick() {
    let (mut heap, now) = helped();
    let spans: Vec<_> = (0..64 * 8).map(|_| alloc(&mut heap, 32)).collect();
    spans.into_iter().enumerate().filter(|(i, _)| i % 8 > 0).for_each(|(_, span)| free(&mut heap, span));
    heap.release_all(Breaking::Always);
    now.set(now.get() + 1_000_000_000);
    heap.tick_step();
    (0..64).for_each(|_| _ = alloc(&mut heap, 32));
    let id = heap.begin_refill().expect("2,048 pages more than at the tick");
    heap.end_collapse(id, Err(CollapseError::Busy), Took::busy(0));
    heap.check().unwrap();
    assert_eq!((heap.refill_due(), heap.begin_refill()), (Pages(0), None));
    heap.tick_step();
    (0..64).for_each(|_| _ = alloc(&mut heap, 32));
    assert!(heap.begin_refill().is_some());
}

fn growing() -> (Heap, Rc<Cell<u64>>) {
    let (mut heap, now) = helped();
    for _ in 0..32 {
        now.set(now.get() + 50_000_000);
        grow(&mut heap);
    }
    assert!(heap.growth.clears());
    (heap, now)
}

#[test]
fn a_hugepage_cleared_ahead_serves_the_next_slabs_whole_and_zeroed() {
    let (mut heap, now) = growing();
    let before = heap.backed();
    let id = heap.begin_clear().expect("growth wants one");
    heap.check().unwrap();
    assert_eq!((heap.begin_clear(), heap.growth.clears(), heap.backed()), (None, false, HugePages(before.0 + 1)));
    heap.end_clear(id, Ok(()), Took::default());
    now.set(now.get() + 50_000_000);
    let span = heap.alloc(Pages(8), Pages(1), Density::Dense).expect("room");
    assert_eq!((span.range.first.hugepage(), span.zeroed), (id, true));
    assert!(heap.trackers[id.0 as usize].intact && heap.growth.clears());
    let next = heap.begin_clear().expect("the next");
    heap.end_clear(next, Ok(()), Took::default());
    heap.growth.begins_small(HugePages(64), now.get() + 50_000_000);
    assert_eq!((heap.growth.clears(), heap.begin_clear()), (true, None), "one waits");
}

#[test]
fn a_failed_or_useless_clear_leaves_no_memory() {
    let (mut heap, _) = growing();
    let before = heap.backed();
    let id = heap.begin_clear().expect("growth wants one");
    heap.floor.unbacked.clear();
    heap.end_clear(id, Err(NoMemory), Took::default());
    heap.check().unwrap();
    assert_eq!((heap.backed(), heap.floor.unbacked.as_slice()), (before, &[Huge2M::range(id)][..]));
    let (mut heap, _) = growing();
    let id = heap.begin_clear().expect("growth wants one");
    heap.release_all(Breaking::Never);
    heap.floor.unbacked.clear();
    heap.end_clear(id, Ok(()), Took::default());
    heap.check().unwrap();
    assert_eq!(heap.floor.unbacked, [Huge2M::range(id)], "it was released before it was cleared");
}

#[test]
fn a_slow_clear_pauses_and_nothing_is_cleared_where_hugepages_are_not_wanted() {
    let (mut heap, now) = growing();
    let id = heap.begin_clear().expect("growth wants one");
    heap.end_clear(id, Ok(()), Took::busy(SLOW_NS));
    assert!(heap.is_paused());
    (0..2).for_each(|_| _ = grow(&mut heap));
    now.set(now.get() + 50_000_000);
    grow(&mut heap);
    assert_eq!((heap.growth.clears(), heap.begin_clear()), (true, None));
    let (mut heap, _) = growing();
    heap.set_backing(HugeBacking::NEVER);
    assert_eq!(heap.begin_clear(), None);
    heap.check().unwrap();
}
