use super::*;
use crate::checked::Checked;
use crate::rng::Rng;

#[test]
fn a_freed_span_serves_the_next_request_of_its_length() {
    let mut spans = BumpSpans::new(Pages(16));
    let a = spans.alloc(Pages(3), Pages(1), Density::Dense).unwrap();
    let b = spans.alloc(Pages(2), Pages(4), Density::Dense).unwrap();
    assert_eq!((a.range.first, b.range.first, a.zeroed), (PageId(0), PageId(4), true));
    spans.free(a.range, Density::Dense).unwrap();
    assert_eq!(spans.alloc(Pages(2), Pages(1), Density::Dense).unwrap().range.first, PageId(6));
    let again = spans.alloc(Pages(3), Pages(2), Density::Dense).unwrap();
    assert_eq!((again.range, again.zeroed), (a.range, false));
}

#[test]
fn the_end_is_refused_with_nothing_changed() {
    let mut spans = BumpSpans::new(Pages(4));
    for (pages, align) in [(5, 1), (u32::MAX, 1), (1, 8)] {
        let before = spans.clone();
        let span = spans.alloc(Pages(pages), Pages(align), Density::Sparse);
        assert_eq!(span.is_ok(), align == 8);
        assert_eq!(spans.next, if span.is_ok() { 1 } else { before.next });
    }
    assert_eq!(spans.alloc(Pages(1), Pages(1 << 31), Density::Sparse), Err(SpanError::NoMemory));
}

#[test]
fn only_the_last_span_grows_and_any_shrinks() {
    let mut spans = BumpSpans::new(Pages(16));
    let a = spans.alloc(Pages(4), Pages(1), Density::Sparse).unwrap().range;
    let b = spans.alloc(Pages(4), Pages(1), Density::Sparse).unwrap().range;
    assert_eq!(spans.resize(a, Pages(5)), Err(SpanError::NoMemory));
    assert_eq!(spans.resize(b, Pages(13)), Err(SpanError::NoMemory));
    assert_eq!(spans.resize(b, Pages(12)), Ok(true));
    assert_eq!(spans.resize(a, Pages(1)), Ok(true));
    assert_eq!(spans.live(), Pages(13));
    assert_eq!(spans.alloc(Pages(3), Pages(1), Density::Sparse).unwrap().range.first, PageId(1));
}

#[test]
fn a_random_walk_keeps_the_contract_of_spans() {
    let mut rng = Rng::new(3);
    let mut spans = Checked::new(BumpSpans::new(Pages(500)));
    let mut out: Vec<PageRange> = Vec::new();
    for _ in 0..5000 {
        let (pages, align) = (Pages(rng.size(20) as u32), Pages(1 << rng.below(4)));
        if rng.one_in(2) {
            out.extend(spans.alloc(pages, align, Density::Sparse).map(|s| s.range));
        } else if !out.is_empty() {
            let span = out.swap_remove(rng.below(out.len() as u64) as usize);
            if rng.one_in(3) {
                let len = spans.resize(span, pages).map_or(span.len, |_| pages);
                out.push(PageRange::new(span.first, len));
            } else {
                spans.free(span, Density::Sparse).unwrap();
            }
        }
        assert_eq!(spans.inner().live(), spans.live());
    }
}
