use super::*;

struct Child(Vec<u8>);

impl Low for Child {
    fn low(&self) -> &[u8] {
        &self.0
    }
}

#[test]
fn each_key_is_found_where_a_linear_search_finds_it() {
    let sets: [&[&[u8]]; 5] = [
        &[b""],
        &[b"", b"b"],
        &[b"", b"key:0001", b"key:0002", b"key:1"],
        &[b"", b"a\0", b"a\0\0", b"aaaaaaaaaaaaaaaa", b"aaaaaaaaaaaaaaaab", b"b"],
        &[b"m", b"prefix-long-one", b"prefix-long-one\0", b"prefix-long-two", b"prefix-long-twofold"],
    ];
    let more: [&[u8]; 9] =
        [b"", b"a", b"a\0\0\0", b"key:", b"key:0001x", b"key:2", b"prefix-long", b"prefix-long-onz", b"\xff"];
    for set in sets {
        let sorted = Sorted::new(set.iter().map(|low| Arc::new(Child(low.to_vec()))).collect());
        let keys = set.iter().copied().chain(more);
        for key in keys {
            let expected = set.iter().rposition(|low| *low <= key).unwrap_or(0);
            assert_eq!(sorted.place(key), expected, "{key:?} in {set:?}");
        }
        for item in sorted.items() {
            assert!(sorted.place_of(item).is_some());
        }
    }
}
