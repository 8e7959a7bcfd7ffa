use super::*;

#[test]
fn the_least_recently_used_goes_first() {
    let mut cache = Cache::new(300);
    for key in [1, 2, 3, 1, 4] {
        cache.look_up(key, 100);
    }
    let mut keys: Vec<u64> = cache.values.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    assert_eq!((keys, cache.bytes), (vec![1, 3, 4], 300));
}

#[test]
fn a_value_stays_what_it_was() {
    let mut cache = Cache::new(1000);
    cache.look_up(1, 100);
    let first = cache.sum;
    cache.look_up(1, 500);
    assert_eq!((cache.sum, cache.bytes), (first.wrapping_mul(32), 100));
    cache.look_up(2, 100);
    assert_eq!(cache.bytes, 200);
}

#[test]
fn a_large_value_throws_several_small_ones_out() {
    let mut cache = Cache::new(1000);
    (0..10).for_each(|key| cache.look_up(key, 100));
    cache.look_up(10, 350);
    assert_eq!((cache.values.len(), cache.bytes), (7, 950));
}
