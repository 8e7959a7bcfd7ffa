extern crate std;
use super::*;
use std::sync::atomic::AtomicU64;
use std::vec::Vec;

const ONE: Pages = Pages(1);

fn span(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

#[test]
fn a_span_comes_back_to_the_same_processor_density_and_length_only() {
    let cache = SpanCache::EMPTY;
    assert!(cache.put(3, span(0, 2), Density::Dense));
    assert_eq!(cache.pop(2, Pages(2), ONE, Density::Dense), None);
    assert_eq!(cache.pop(3, Pages(2), ONE, Density::Sparse), None);
    assert_eq!(cache.pop(3, Pages(1), ONE, Density::Dense), None);
    assert_eq!(cache.pop(3 + 64, Pages(2), Pages(2), Density::Dense), Some(span(0, 2)));
    assert_eq!(cache.pop(3, Pages(2), ONE, Density::Dense), None, "it was taken once");
}

#[test]
fn what_is_too_long_misaligned_or_too_much_goes_elsewhere() {
    let cache = SpanCache::EMPTY;
    assert!(!cache.put(0, span(0, 3), Density::Sparse) && !cache.put(0, span(0, 16), Density::Sparse));
    assert!(cache.put(0, span(5, 4), Density::Sparse));
    assert_eq!(cache.pop(0, Pages(4), Pages(4), Density::Sparse), None);
    assert!(!cache.put(0, span(8, 4), Density::Sparse));
    assert_eq!((0..9).filter(|i| cache.put(0, span(*i, 1), Density::Sparse)).count(), 4);
    assert_eq!(cache.pages(), Pages(8));
    let mut drained = Vec::new();
    cache.drain(|span, density| drained.push((span, density)));
    assert_eq!((drained.len(), cache.pages()), (5, Pages(0)));
}

#[test]
fn no_span_is_ever_in_two_hands() {
    const SPANS: u32 = 12;
    let cache = SpanCache::EMPTY;
    let held: Vec<AtomicU64> = (0..SPANS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (cache, held) = (&cache, &held);
            scope.spawn(move || {
                let mut own: Vec<PageRange> = (0..3).map(|i| span(thread * 3 + i, 1)).collect();
                for s in &own {
                    held[s.first.0 as usize].fetch_add(1, Ordering::Relaxed);
                }
                for i in 0..50_000usize {
                    if i % 3 == 0
                        && let Some(s) = cache.pop(i % 2, ONE, ONE, Density::Dense)
                    {
                        assert_eq!(held[s.first.0 as usize].fetch_add(1, Ordering::Relaxed), 0);
                        own.push(s);
                    } else if let Some(s) = own.pop() {
                        held[s.first.0 as usize].fetch_sub(1, Ordering::Relaxed);
                        if !cache.put(i % 2, s, Density::Dense) {
                            held[s.first.0 as usize].fetch_add(1, Ordering::Relaxed);
                            own.push(s);
                        }
                    }
                }
                for s in &own {
                    held[s.first.0 as usize].fetch_sub(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(held.iter().all(|h| h.load(Ordering::Relaxed) == 0));
}
