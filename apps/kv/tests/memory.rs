//! After a refused request nothing has changed.

use crate::model::compare;
use crate::random::Random;
use craton_kv::memory::{Memory, ROOT};
use craton_kv::{StoreError, Tree, When};
use std::collections::BTreeMap;

#[test]
fn a_refused_request_changes_nothing() {
    let mut random = Random::new(5);
    let mut model = BTreeMap::new();
    let tree = Tree::open(Memory::new(64 << 20), ROOT).unwrap();
    let mut refused = 0;
    for _ in 0..30_000 {
        let (key, value) = (random.key(1 << 40), random.value());
        // The pair is one request; splits make one to four more.
        for budget in 0.. {
            tree.store().refuse_after(Some(budget));
            match tree.put(&key, &value, When::Always, None) {
                Ok(_) => break,
                Err(error) => assert_eq!(error, StoreError::NoMemory),
            }
            refused += 1;
            assert_eq!(tree.contains(&key).unwrap(), model.contains_key(&key));
        }
        tree.store().refuse_after(None);
        model.insert(key, value);
    }
    assert!(refused > 30_500);
    compare(&tree, &model);
}

#[test]
fn a_new_tree_that_is_refused_leaves_the_store_empty() {
    let mut store = Memory::new(1 << 20);
    for budget in 0.. {
        store.refuse_after(Some(budget));
        match Tree::open(store.crashed(), ROOT) {
            Ok(_) if budget > 0 => break,
            _ => {}
        }
        assert_eq!(store.objects(), (0, 0));
        store = store.crashed();
        store.refuse_after(Some(budget));
        match Tree::open(store, ROOT) {
            Ok(tree) => {
                assert_eq!(tree.len().unwrap(), 0);
                return;
            }
            Err(error) => assert_eq!(error, StoreError::NoMemory),
        }
        store = Memory::new(1 << 20);
    }
}

#[test]
fn a_key_or_value_beyond_512_mib_is_refused() {
    let tree = Tree::open(Memory::new(1 << 20), ROOT).unwrap();
    let long = vec![0; (512 << 20) + 1];
    for (key, value) in [(&long[..], &b""[..]), (b"", &long)] {
        assert_eq!(tree.put(key, value, When::Always, None), Err(StoreError::TooLarge(long.len() as u64)));
    }
    assert_eq!(tree.put(b"", &long[..1 << 21], When::Always, None), Err(StoreError::NoMemory));
    assert_eq!(tree.len().unwrap(), 0);
}
