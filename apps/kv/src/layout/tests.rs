use super::*;
use crate::memory::Memory;

#[test]
fn matches_finds_exactly_the_bytes_that_are_equal() {
    let store = Memory::new(1 << 16);
    let leaf = store.reserve(LEAF_BYTES).unwrap();
    for print in [0u8, 1, 2, 0x7f, 0x80, 0x81, 0xff] {
        for i in 0..SLOTS {
            let other = [print ^ 1, print ^ 0x80, print.wrapping_add(1)][i % 3];
            set_fingerprint(&store, leaf.at(), i, if i % 5 == 0 { print } else { other }).unwrap();
        }
        let expected = (0..SLOTS).filter(|i| i % 5 == 0).fold(0, |mask, i| mask | 1u64 << i);
        assert_eq!(matches(&store, leaf.at(), print).unwrap(), expected);
    }
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
