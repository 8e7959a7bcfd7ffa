use super::*;
use crate::{BumpSpans, SimFloor, ThpMode};
use craton_base::HugePageId;

struct Scripted(Vec<PageRange>);

impl SpanSource for Scripted {
    fn alloc(&mut self, _: Pages, _: Pages, _: Density) -> Result<Span, SpanError> {
        self.0.pop().map(|range| Span { range, zeroed: false }).ok_or(SpanError::NoMemory)
    }
    fn free(&mut self, _: PageRange, _: Density) -> Result<(), SpanError> {
        Ok(())
    }
    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Ok(false)
    }
}

fn range(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

fn scripted(spans: &[(u32, u32)]) -> Checked<Scripted> {
    Checked::new(Scripted(spans.iter().rev().map(|(first, len)| range(*first, *len)).collect()))
}

fn alloc(spans: &mut impl SpanSource, pages: u32, align: u32) -> PageRange {
    spans.alloc(Pages(pages), Pages(align), Density::Sparse).expect("the script goes on").range
}

#[test]
fn neighbours_are_not_an_overlap() {
    let mut spans = scripted(&[(4, 4), (0, 4), (8, 1)]);
    assert_ne!(alloc(&mut spans, 4, 4), alloc(&mut spans, 4, 4));
    alloc(&mut spans, 1, 1);
    assert_eq!(spans.spans().collect::<Vec<_>>(), [range(0, 4), range(4, 4), range(8, 1)]);
    assert_eq!((spans.live(), spans.alloc(Pages(1), Pages(1), Density::Dense)), (Pages(9), Err(SpanError::NoMemory)));
    spans.free(range(4, 4), Density::Sparse).unwrap();
    assert_eq!(spans.resize(range(0, 4), Pages(8)), Ok(false));
    assert_eq!(spans.live(), Pages(9));
}

#[test]
#[should_panic(expected = "overlaps")]
fn a_span_given_twice_is_caught() {
    let mut spans = scripted(&[(4, 4), (7, 2)]);
    alloc(&mut spans, 4, 1);
    alloc(&mut spans, 2, 1);
}

#[test]
#[should_panic(expected = "overlaps")]
fn a_span_that_swallows_another_is_caught() {
    let mut spans = scripted(&[(4, 1), (2, 6)]);
    alloc(&mut spans, 1, 1);
    alloc(&mut spans, 6, 1);
}

#[test]
#[should_panic(expected = "multiple of 4 pages")]
fn a_misaligned_span_is_caught() {
    alloc(&mut scripted(&[(2, 4)]), 4, 4);
}

#[test]
#[should_panic(expected = "was given with 4 pages")]
fn freeing_a_part_is_caught() {
    let mut spans = scripted(&[(0, 4)]);
    alloc(&mut spans, 4, 1);
    spans.free(range(0, 3), Density::Sparse).unwrap();
}

#[test]
#[should_panic(expected = "is not out")]
fn freeing_twice_is_caught() {
    let mut spans = scripted(&[(0, 4)]);
    let span = alloc(&mut spans, 4, 1);
    spans.free(span, Density::Sparse).unwrap();
    spans.free(span, Density::Sparse).unwrap();
}

#[test]
#[should_panic(expected = "another density")]
fn freeing_with_another_density_is_caught() {
    let mut spans = Checked::new(BumpSpans::new(Pages(4)));
    let span = alloc(&mut spans, 4, 1);
    spans.free(span, Density::Dense).unwrap();
}

#[test]
#[should_panic(expected = "overlaps")]
fn growing_over_a_neighbour_is_caught() {
    let mut spans = scripted(&[(0, 4), (4, 4)]);
    let span = alloc(&mut spans, 4, 1);
    alloc(&mut spans, 4, 1);
    let _ = spans.resize(span, Pages(5));
}

#[test]
fn a_sound_floor_passes() {
    let sim = SimFloor::new(HugePages(4), ThpMode::Never);
    let mut floor = Checked::new(sim.clone());
    floor.reserve(HugePages(2)).unwrap();
    floor.reserve(HugePages(5)).unwrap_err();
    floor.advise(HugePageId(0).range(), Advice::Huge);
    floor.back(range(3, 300)).unwrap();
    floor.collapse(HugePageId(0).range()).unwrap();
    floor.unback(range(0, 512)).unwrap();
    assert_eq!(sim.backed_bytes().0, 0);
    floor.collapse(HugePageId(0).range()).unwrap_err();
}

#[test]
#[should_panic(expected = "back: pages 512..513 reach beyond the 2 hugepages")]
fn a_range_beyond_the_grant_is_caught() {
    let mut floor = Checked::new(SimFloor::new(HugePages(4), ThpMode::Never));
    floor.reserve(HugePages(2)).unwrap();
    let _ = floor.back(range(512, 1));
}
