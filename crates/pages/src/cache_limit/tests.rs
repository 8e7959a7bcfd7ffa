use super::*;

#[test]
fn demand_that_only_grows_or_only_falls_raises_no_limit() {
    let mut limit = CacheLimit::MIN;
    for (i, demand) in [10, 100, 50, 10].into_iter().enumerate() {
        limit.record(HugePages(demand), i as u64 * EPOCH_NS);
    }
    limit.missed(HugePages(20), HugePages(120), 4 * EPOCH_NS);
    assert_eq!(limit.limit(), CACHE_MIN_HUGEPAGES, "so much was not in demand before");
}

#[test]
fn demand_that_returns_raises_the_limit_up_to_its_swing() {
    let mut limit = CacheLimit::MIN;
    [100, 40, 90].into_iter().for_each(|demand| limit.record(HugePages(demand), 0));
    limit.missed(HugePages(50), HugePages(90), 1);
    assert_eq!(limit.limit(), HugePages(58));
    limit.missed(HugePages(50), HugePages(90), 2);
    assert_eq!(limit.limit(), HugePages(60), "100 less 40");
}

#[test]
fn a_quiet_window_takes_the_limit_back() {
    let mut limit = CacheLimit::MIN;
    [100, 40, 100].into_iter().for_each(|demand| limit.record(HugePages(demand), 0));
    limit.missed(HugePages(60), HugePages(100), 1);
    assert_eq!(limit.limit(), HugePages(60));
    limit.record(HugePages(100), WINDOW_NS - 1);
    assert_eq!(limit.limit(), HugePages(60), "the swing is in the window still");
    limit.record(HugePages(100), WINDOW_NS + EPOCH_NS);
    assert_eq!(limit.limit(), CACHE_MIN_HUGEPAGES);
}
