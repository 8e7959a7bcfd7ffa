use super::*;

fn value(lru: &mut Lru, key: u64) -> Option<Vec<u8>> {
    lru.get(key).map(<[u8]>::to_vec)
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut lru = Lru::default();
    for key in 0..5 {
        lru.insert(key, vec![key as u8; 10]);
    }
    assert_eq!(value(&mut lru, 0), Some(vec![0; 10]));
    lru.shrink_to(25);
    assert_eq!(lru.bytes(), 20);
    assert_eq!([1, 2, 3].map(|key| value(&mut lru, key)), [None, None, None]);
    // In the order of use: 0, then 4.
    assert_eq!(value(&mut lru, 4), Some(vec![4; 10]));
    lru.shrink_to(10);
    assert_eq!((value(&mut lru, 0), lru.bytes()), (None, 10));
    lru.shrink_to(0);
    assert_eq!((value(&mut lru, 4), lru.bytes(), lru.newest, lru.oldest), (None, 0, None, None));
}

#[test]
fn values_are_replaced_and_resized() {
    let mut lru = Lru::default();
    lru.insert(1, vec![1; 10]);
    lru.insert(1, vec![2; 30]);
    assert_eq!(lru.bytes(), 30);
    lru.resize(1, 2, 0);
    lru.resize(1, 4, 7);
    lru.resize(9, 4, 7);
    assert_eq!((value(&mut lru, 1), lru.bytes()), (Some(vec![2, 2, 7, 7]), 4));
}
