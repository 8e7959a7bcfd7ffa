extern crate std;
use super::*;
use std::vec::Vec;

const ONE: Pages = Pages(1);
const MOST: Pages = Pages(1000);

fn span(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

#[test]
fn a_span_comes_back_to_a_request_of_its_length() {
    let cache = LargeCache::EMPTY;
    for s in [span(0, 68), span(200, 64)] {
        assert_eq!(cache.put(1, s, MOST), None);
    }
    assert_eq!(cache.pages(), Pages(132));
    assert_eq!(cache.take(2, Pages(64), ONE), None, "another processor's");
    assert_eq!(cache.take(1, Pages(64), ONE), Some(span(200, 64)));
    assert_eq!(cache.take(1, Pages(64), ONE), None, "once");
    assert_eq!(cache.take(1, Pages(67), ONE), None, "exactly");
    assert_eq!(cache.take(65, Pages(68), ONE), Some(span(0, 68)), "processors share shards");
    assert_eq!(cache.pages(), Pages(0));
}

#[test]
fn an_aligned_request_gets_what_is_aligned() {
    let cache = LargeCache::EMPTY;
    assert_eq!(cache.put(0, span(40, 40), MOST), None);
    assert_eq!(cache.take(0, Pages(40), Pages(16)), None);
    assert_eq!(cache.take(0, Pages(40), Pages(8)), Some(span(40, 40)));
}

#[test]
fn the_shortest_of_the_longer_spans_is_found_whatever_set_it_lies_in() {
    let cache = LargeCache::EMPTY;
    for s in [span(0, 40), span(101, 47), span(200, 49), span(300, 56)] {
        assert_eq!(cache.put(1, s, MOST), None);
    }
    assert_eq!(cache.take_longer(2, Pages(40), ONE), None, "another processor's");
    assert_eq!(cache.take_longer(1, Pages(40), Pages(2)), Some(span(200, 49)), "the aligned one");
    assert_eq!(cache.take_longer(1, Pages(40), ONE), Some(span(101, 47)), "longer, not as long");
    assert_eq!(cache.take_longer(1, Pages(56), ONE), None);
    assert_eq!(cache.pages(), Pages(96));
}

#[test]
fn no_more_is_kept_than_allowed_and_nothing_is_lost() {
    let cache = LargeCache::EMPTY;
    assert_eq!(cache.put(0, span(0, 257), MOST), Some(span(0, 257)), "too long");
    assert_eq!(cache.put(0, span(0, 50), Pages(49)), Some(span(0, 50)), "too much");
    let mut rest = Vec::new();
    for i in 0..100 {
        let s = span(i * 300, 40 + 2 * i);
        rest.extend(cache.put(0, s, Pages(500)));
        assert!(cache.pages() <= Pages(500), "{}", cache.pages().0);
    }
    let kept = 100 - rest.len();
    assert!((3..=12).contains(&kept), "{kept}");
    cache.drain(|s| rest.push(s));
    rest.sort_by_key(|s| s.first);
    assert_eq!(rest, (0..100).map(|i| span(i * 300, 40 + 2 * i)).collect::<Vec<_>>());
    assert_eq!(cache.pages(), Pages(0));
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
                let mut own: Vec<_> = (0..6).map(|i| span((thread * 6 + i) * 100, 40 + i % 3)).collect();
                own.iter().for_each(claim);
                for i in 0..50_000usize {
                    if i % 3 == 0
                        && let Some(s) = cache.take(i % 2, Pages(40), ONE)
                    {
                        claim(&s);
                        own.push(s);
                    } else if let Some(s) = own.pop() {
                        give_up(&s);
                        if let Some(s) = cache.put(i % 2, s, Pages(400)) {
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
