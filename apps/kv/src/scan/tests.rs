use super::*;
use crate::memory::{Memory, ROOT};
use crate::tree::When;

#[test]
fn a_pair_in_the_range_of_a_leaf_that_was_dropped_meanwhile_comes_once() {
    let tree = Tree::open(Memory::new(1 << 20), ROOT).unwrap();
    let put = |key: &[u8]| tree.put(key, b"value", When::Always, None).unwrap();
    (0..=u8::MAX).for_each(|i| _ = put(&[i]));
    // A reader has found the first leaf, and the next one's key.
    let top = tree.top.load();
    let view = top.dirs.child(b"").view();
    let [first, second] = [0, 1].map(|i| &view.as_ref().as_ref().unwrap().items()[i]);
    let next = second.low();
    let end = view.as_ref().as_ref().unwrap().items()[2].low();
    (next[0]..end[0]).for_each(|i| assert!(tree.remove(&[i]).unwrap()));
    put(next);
    let mut entries = Vec::new();
    assert!(tree.scan_range(first, b"", Some(next), true, &mut entries).unwrap());
    let keys = |entries: Vec<Entry>| entries.into_iter().map(|(key, _)| key[0]).collect::<Vec<_>>();
    assert_eq!(keys(entries), (0..next[0]).collect::<Vec<_>>());
    let all = (0..=next[0]).chain(end[0]..=u8::MAX);
    assert_eq!(keys(tree.range(b"").map(Result::unwrap).collect()), all.collect::<Vec<_>>());
}
