//! 64 GiB of spans of all sizes, and numbers at the limit of 32 bits. Nothing is touched.

use craton_base::{
    Advice, Ask, CollapseError, Density, Floor, HugePages, NoMemory, PageRange, Pages, Residency, SpanError,
    SpanSource, Table,
};
use craton_pages::{Breaking, HugeBacking, PageHeapExt, Temeraire, Tracker};
use craton_sim::{Rng, VirtualClock};

const GIB: u32 = 1 << 17;

struct Limit(HugePages);

impl Floor for Limit {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        if total > self.0 { Err(NoMemory) } else { Ok(()) }
    }
    fn back(&mut self, _: PageRange) -> Result<(), NoMemory> {
        Ok(())
    }
    fn unback(&mut self, _: PageRange) -> Result<(), NoMemory> {
        Ok(())
    }
    fn collapse(&mut self, _: PageRange) -> Result<(), CollapseError> {
        Ok(())
    }
    fn advise(&mut self, _: PageRange, _: Advice) -> bool {
        true
    }
    fn residency(&self, _: PageRange, _: Ask) -> Residency {
        Residency::default()
    }
}

type Heap = Temeraire<Limit, VirtualClock>;

fn heap(capacity: HugePages, limit: HugePages) -> (Heap, VirtualClock) {
    let clock = VirtualClock::new(1 << 40);
    let trackers = Table::from_slice((0..limit.0).map(|_| Tracker::default()).collect::<Vec<_>>().leak());
    (Heap::new(Limit(limit), clock.clone(), trackers, capacity, HugeBacking::AUTO), clock)
}

/// Most pages are in large spans.
fn length(rng: &mut Rng) -> u32 {
    match rng.below(1000) {
        0..700 => rng.size(16) as u32,
        700..950 => rng.size(256) as u32,
        950..999 => rng.size(4096) as u32,
        _ => rng.size(u64::from(GIB)) as u32,
    }
}

fn assert_apart(spans: &[(PageRange, Density)]) {
    let mut sorted: Vec<PageRange> = spans.iter().map(|(span, _)| *span).collect();
    sorted.sort_by_key(|span| span.first);
    for pair in sorted.windows(2) {
        assert!(pair[0].end() <= pair[1].first, "{:?} overlaps {:?}", pair[0], pair[1]);
    }
}

#[test]
fn spans_of_all_sizes_fill_64_gib_and_come_back() {
    let capacity = HugePages(96 * GIB / 256);
    let (mut heap, clock) = heap(capacity, capacity);
    let (mut rng, mut spans) = (Rng::new(64), Vec::new());
    for tide in [64 * GIB, 8 * GIB, 64 * GIB] {
        while heap.in_use().0 < tide {
            let (pages, dense) = (length(&mut rng), rng.one_in(2));
            let density = if dense { Density::Dense } else { Density::Sparse };
            spans.push((heap.alloc(Pages(pages), Pages(1), density).unwrap().range, density));
            clock.advance(rng.below(50_000));
        }
        assert_eq!(heap.check(), Ok(()));
        assert_apart(&spans);
        let stats = heap.stats();
        let over = f64::from(stats.backed.0) / f64::from(stats.in_use.0) - 1.0;
        assert!(tide < 64 * GIB || over < 0.06, "{over}: {stats:?}");
        while heap.in_use().0 > 8 * GIB {
            let nth = rng.below(spans.len() as u64) as usize;
            let (span, density) = spans.swap_remove(nth);
            heap.free(span, density).unwrap();
            clock.advance(rng.below(50_000));
        }
        for _ in 0..10 {
            clock.advance(1_000_000_000);
            heap.tick();
        }
        assert_eq!(heap.check(), Ok(()));
    }
    assert_eq!(heap.stats().in_use, Pages(spans.iter().map(|(span, _)| span.len.0).sum()));
    spans.into_iter().for_each(|(span, density)| heap.free(span, density).unwrap());
    heap.release_all(Breaking::Always);
    assert_eq!((heap.check(), heap.stats().backed, heap.backed()), (Ok(()), Pages(0), HugePages(0)));
}

const LARGEST: HugePages = HugePages((1 << 24) - 1);

#[test]
fn lengths_at_the_limit_of_32_bits_are_refused_without_a_trace() {
    let (mut heap, _) = heap(LARGEST, HugePages(2048));
    let most = LARGEST.pages();
    let small = heap.alloc(Pages(10), Pages(1), Density::Sparse).unwrap().range;
    let large = heap.alloc(Pages(300), Pages(1), Density::Sparse).unwrap().range;
    let odd: Vec<PageRange> =
        (0..40).map(|_| heap.alloc(Pages(141), Pages(1), Density::Sparse).unwrap().range).collect();
    let in_region = odd[39];
    assert!(heap.stats().region > HugePages(0) && in_region.first.0 >= 512 * 256);
    let before = heap.stats();
    for span in [small, large, in_region] {
        for pages in [most.0, most.0 - 1, most.0 - 255, most.0 - span.first.0, 1 << 31] {
            assert_eq!(heap.resize(span, Pages(pages)), Err(SpanError::NoMemory), "{span:?} to {pages}");
        }
        for pages in [u32::MAX, most.0 + 1] {
            assert_eq!(heap.resize(span, Pages(pages)), Err(SpanError::TooLong(Pages(pages))));
        }
        assert_eq!((heap.stats(), heap.check()), (before, Ok(())));
    }
    for pages in [most.0, most.0 - 1, most.0 - 255, 1 << 31] {
        for align in [1, 128, 256, 1 << 20, 1 << 31] {
            let result = heap.alloc(Pages(pages), Pages(align), Density::Sparse);
            assert_eq!(result.map(|span| span.range), Err(SpanError::NoMemory), "{pages} at {align}");
        }
    }
    for pages in [1, 128, 200, 256, 257] {
        let result = heap.alloc(Pages(pages), Pages(1 << 31), Density::Dense);
        assert_eq!(result.map(|span| span.range), Err(SpanError::NoMemory), "{pages} at 2^31");
    }
    assert_eq!((heap.stats().in_use, heap.check()), (before.in_use, Ok(())));
}
