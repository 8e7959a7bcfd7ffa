use super::*;

/// `None` if 10,000 do not suffice.
fn requests_before(admission: &Admission) -> Option<u64> {
    let mut uses = 0;
    (0..10_000).find(|_| {
        admission.earns(|| {
            uses += 1;
            uses - 1
        })
    })
}

#[test]
fn the_first_thread_gets_a_cache_at_once_and_others_by_their_use() {
    let admission = Admission::new();
    assert_eq!(requests_before(&admission), Some(0));
    admission.count(1);
    assert_eq!(requests_before(&admission), Some(USES_WITHOUT));
}

#[test]
fn there_are_four_caches_a_processor_and_at_least_sixteen() {
    for (processors, most) in [(1, 16), (4, 16), (5, 20), (64, 256)] {
        let admission = Admission::new();
        admission.allow(processors);
        admission.count(most - 1);
        assert_eq!(requests_before(&admission), Some(USES_WITHOUT), "{processors} processors");
        admission.count(most);
        assert_eq!(requests_before(&admission), None, "{processors} processors");
    }
}

#[test]
fn the_option_gives_a_cache_to_every_thread_or_to_none() {
    let admission = Admission::new();
    admission.set_caches_for(CachesFor::Threads);
    admission.count(10_000);
    assert!(admission.earns(|| unreachable!("requests do not count")));
    admission.set_caches_for(CachesFor::Processors);
    admission.count(0);
    assert!(!admission.earns(|| unreachable!("requests do not count")));
    assert_eq!(admission.caches_for(), CachesFor::Processors);
}

#[test]
fn caches_get_less_when_there_are_many_and_never_more_than_the_option_says() {
    let admission = Admission::new();
    assert_eq!((admission.share(1), admission.share(16)), (CACHE_BYTES, CACHE_BYTES));
    assert_eq!(admission.share(32), ALL_BYTES / 32);
    assert_eq!((admission.share(1000), admission.least_share()), (LEAST_BYTES, LEAST_BYTES));
    admission.set_cache_bytes(64 << 10);
    assert_eq!((admission.share(1), admission.share(1000), admission.least_share()), (64 << 10, 64 << 10, 64 << 10));
}
