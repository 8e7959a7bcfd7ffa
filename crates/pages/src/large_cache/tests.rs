extern crate std;
use super::*;
use std::vec::Vec;

const ONE: Pages = Pages(1);

fn span(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

#[test]
fn a_span_comes_back_to_a_request_of_its_length() {
    let cache = LargeCache::EMPTY;
    for s in [span(0, 74), span(200, 64)] {
        assert_eq!(cache.put(1, s), None);
    }
    assert_eq!(cache.pages(), Pages(138));
    assert_eq!(cache.pop(2, Pages(64), ONE), None, "another processor's");
    assert_eq!(cache.pop(1, Pages(64), ONE), Some(span(200, 64)));
    assert_eq!(cache.pop(1, Pages(64), ONE), None, "once");
    assert_eq!(cache.pop_exactly(1, Pages(73), ONE), None, "exactly");
    assert_eq!(cache.pop_exactly(65, Pages(74), ONE), Some(span(0, 74)), "processors share shards");
    assert_eq!(cache.pages(), Pages(0));
}

#[test]
fn an_aligned_request_gets_what_is_aligned() {
    let cache = LargeCache::EMPTY;
    assert_eq!(cache.put(0, span(40, 40)), None);
    assert_eq!(cache.pop(0, Pages(40), Pages(16)), None);
    assert_eq!(cache.pop(0, Pages(40), Pages(8)), Some(span(40, 40)));
}

#[test]
fn a_span_up_to_an_eighth_too_long_serves_and_the_shortest_first() {
    for pages in 1..=256 {
        let (most, cache) = ((pages + pages / 8).min(256), LargeCache::EMPTY);
        if most < 256 {
            assert_eq!(cache.put(1, span(0, most + 1)), None);
            assert_eq!(cache.pop(1, Pages(pages), ONE), None, "{pages}");
            cache.drain(|s| assert_eq!(s, span(0, most + 1)));
        }
        let mut lengths = std::vec![pages, pages + (most - pages) / 2, most];
        lengths.iter().rev().for_each(|len| assert_eq!(cache.put(1, span(len * 300, *len)), None, "{len}"));
        lengths.sort_unstable();
        for len in lengths {
            assert_eq!(cache.pop(1, Pages(pages), ONE), Some(span(len * 300, len)));
        }
        assert_eq!((cache.pop(1, Pages(pages), ONE), cache.pages()), (None, Pages(0)));
    }
    let cache = LargeCache::EMPTY;
    assert_eq!(cache.pop(0, Pages(257), ONE), None);
}

#[test]
fn a_few_other_processors_spans_serve_before_the_page_heap() {
    let cache = LargeCache::EMPTY;
    assert_eq!(cache.pop_anywhere(3, Pages(20), ONE), None);
    for cpu in [1, 2, 3, 5, 63] {
        assert_eq!(cache.put(cpu, span(cpu as u32 * 100, 20)), None);
    }
    let from: Vec<_> = (0..5).map(|_| cache.pop_anywhere(67, Pages(19), ONE).map(|s| s.first.0 / 100)).collect();
    assert_eq!(from, [Some(3), Some(5), Some(63), Some(1), None], "its own first, then the next ones");
    assert_eq!(cache.pages(), Pages(20));
}

#[test]
fn what_is_too_much_is_evicted_and_nothing_is_lost() {
    let (cache, most) = (LargeCache::EMPTY, Pages(500));
    assert_eq!(cache.put(0, span(0, 257)), Some(span(0, 257)), "too long");
    let mut rest = Vec::new();
    for i in 0..100 {
        rest.extend(cache.put(0, span(i * 300, 40 + 2 * i)));
        while cache.is_over(0, most) {
            rest.push(cache.evict(0).expect("it holds some"));
        }
        assert!(cache.pages() <= most, "{}", cache.pages().0);
    }
    assert_eq!(cache.put(1, span(31_000, 1)), None);
    assert_eq!(cache.is_over(0, most), cache.pages() > Pages(251), "two processors have a half each");
    let kept = 100 - rest.len();
    assert!((2..=12).contains(&kept), "{kept}");
    cache.drain(|s| rest.push(s));
    rest.sort_by_key(|s| s.first);
    assert_eq!(rest.pop(), Some(span(31_000, 1)));
    assert_eq!(rest, (0..100).map(|i| span(i * 300, 40 + 2 * i)).collect::<Vec<_>>());
    assert_eq!((cache.pages(), cache.evict(0)), (Pages(0), None));
}

#[test]
fn no_span_is_ever_in_two_hands() {
    let cache = LargeCache::EMPTY;
    let held: Vec<AtomicU32> = (0..24).map(|_| AtomicU32::new(0)).collect();
    let claim = |s: &PageRange| assert_eq!(held[s.first.0 as usize / 100].fetch_add(1, Ordering::Relaxed), 0);
    let give_up = |s: &PageRange| assert_eq!(held[s.first.0 as usize / 100].fetch_sub(1, Ordering::Relaxed), 1);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (cache, claim, give_up) = (&cache, &claim, &give_up);
            scope.spawn(move || {
                let mut own: Vec<_> = (0..6).map(|i| span((thread * 6 + i) * 100, 40 + i % 7)).collect();
                own.iter().for_each(claim);
                for i in 0..50_000usize {
                    if i % 3 == 0
                        && let Some(s) = cache.pop(i % 2, Pages(40), ONE)
                    {
                        claim(&s);
                        own.push(s);
                    } else if let Some(s) = own.pop() {
                        give_up(&s);
                        if let Some(s) = cache.put(i % 2, s) {
                            claim(&s);
                            own.insert(0, s);
                        }
                    }
                    if i % 5000 == 0 {
                        cache.drain(|s| {
                            claim(&s);
                            own.push(s);
                        });
                    }
                }
                own.iter().for_each(give_up);
            });
        }
    });
    cache.drain(|s| claim(&s));
    assert!(held.iter().all(|h| h.load(Ordering::Relaxed) <= 1));
    assert_eq!(cache.pages(), Pages(0));
}

#[test]
fn each_object_served_is_reported_once_singly_at_first_and_by_the_dozen_later() {
    let (cache, reports) = (LargeCache::EMPTY, std::cell::RefCell::new(Vec::new()));
    let report = |n: u32| {
        reports.borrow_mut().push(n);
        reports.borrow().iter().map(|n| u64::from(*n)).sum()
    };
    for i in 0..1024 {
        cache.count(0);
        cache.report(0, report);
        assert_eq!(reports.borrow().len(), i + 1);
    }
    for i in 0..30 {
        assert_eq!(cache.put(0, span(i, 20)), None);
        assert_eq!(cache.pop(0, Pages(20), ONE), Some(span(i, 20)));
        assert_eq!(cache.put(0, span(i, 20)), None);
        assert_eq!(cache.pop_exactly(0, Pages(20), ONE), Some(span(i, 20)), "not for an object");
        cache.report(0, report);
    }
    cache.count(1);
    cache.report_all(report);
    assert_eq!((&reports.borrow()[1024..], cache.pages()), (&[12, 12, 6, 1][..], Pages(0)));
}
