use super::*;
use crate::memory::Memory;

#[test]
fn matches_finds_exactly_the_valid_bytes_that_are_equal() {
    for print in [0u8, 1, 2, 0x7f, 0x80, 0x81, 0xff] {
        let other = |i: usize| [print ^ 1, print ^ 0x80, print.wrapping_add(1)][i % 3];
        let prints = Prints::of((0..SLOTS).map(|i| if i % 5 == 0 { print } else { other(i) }));
        let expected = (0..SLOTS).filter(|i| i % 5 == 0).fold(0, |mask, i| mask | 1u64 << i);
        assert_eq!(prints.matches(print), expected);
        prints.remove(10);
        assert_eq!(prints.matches(print), expected & !(1 << 10));
        assert_eq!(prints.kept(1 << 5 | 1 << 6).matches(print), 1 << 5);
    }
}

#[test]
fn kv5_a_leafs_slots_are_valid_if_bit_and_object_are_there() {
    let store = Memory::new(1 << 16);
    let leaf = store.reserve(LEAF_BYTES).unwrap();
    let pairs: Vec<(u8, u64)> = (0..40).map(|i| (i as u8 ^ 0xa5, 16 * (i + 1))).collect();
    assert!(write_leaf(&store, leaf.at(), b"low", &pairs).unwrap().attach(0).is_none());
    let prints = Prints::read(&store, leaf.at()).unwrap();
    assert_eq!(prints.valid(), (1 << 40) - 1);
    // As a deletion, an insertion, and a stale slot.
    store.store(leaf_slot(leaf.at(), 3), 0);
    store.store(leaf_slot(leaf.at(), 50), 16);
    store.store(row_word(leaf.at(), 50 / ROW), prints.row_and(50, 0x77));
    store.store(leaf_slot(leaf.at(), 60), 16);
    let prints = Prints::read(&store, leaf.at()).unwrap();
    assert_eq!(prints.valid(), ((1 << 40) - 1) & !(1 << 3) | 1 << 50);
    assert_eq!(prints.matches(0x77), 1 << 50);
    let all = (0..SLOTS).flat_map(|i| [leaf_slot(0, i), row_word(0, i / ROW)]);
    assert!(all.clone().all(|at| (64..LEAF_BYTES).contains(&at)), "slots and words lie behind the first line");
    let one_line = |i: usize| leaf_slot(64, i) / 64 == row_word(64, i / ROW) / 64;
    assert!((0..SLOTS).all(one_line), "an insertion changes one line");
}

#[test]
fn a_low_is_read_as_it_was_written() {
    let store = Memory::new(1 << 16);
    for len in [0, 1, 7, 8, 31, 32, 33, 100] {
        let low: Vec<u8> = (0..len).map(|i| i as u8 ^ 0xa5).collect();
        let node = store.reserve(DIR_BYTES).unwrap();
        let new = write_dir(&store, node.at(), &low, &[]).unwrap();
        let at = node.at();
        let attach = Change::Attach { slot: crate::memory::ROOT, object: node };
        store.commit([attach].into_iter().chain(new.attach(at + DIR_LOW))).unwrap();
        assert_eq!(&read_low(&store, at + DIR_LOW).unwrap()[..], &low[..]);
        store.store(at + DIR_LOW, 12);
        assert_eq!(read_low(&store, at + DIR_LOW), Err(StoreError::Damaged(at + DIR_LOW)));
    }
}

#[test]
fn pairs_hold_empty_keys_and_values() {
    let store = Memory::new(1 << 16);
    for (key, value) in [(&b""[..], &b""[..]), (b"k", b""), (b"", b"value"), (b"12345678", b"123456789")] {
        let at = Pair::reserve(&store, key, value).unwrap().at();
        let pair = Pair::load(&store, at).unwrap();
        let (mut read_key, mut read_value) = (Vec::new(), Vec::new());
        pair.read_key(&store, &mut read_key).unwrap();
        pair.read_value(&store, &mut read_value).unwrap();
        assert_eq!((&read_key[..], &read_value[..]), (key, value));
        assert!(pair.has_key(&store, key).unwrap());
        assert!(!pair.has_key(&store, b"other").unwrap());
    }
}
