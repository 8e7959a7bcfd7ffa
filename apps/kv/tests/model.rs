//! The tree does what a `BTreeMap` does.

use crate::random::Random;
use craton_kv::memory::{Memory, ROOT};
use craton_kv::{Tree, When};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// No object is lost.
pub fn compare(tree: &Tree<Memory>, model: &Model) {
    let entries: Vec<_> = tree.range(b"").map(Result::unwrap).collect();
    assert!(entries.iter().map(|(k, v)| (k, v)).eq(model.iter()), "the scan differs from the model");
    let census = tree.check().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(census.pairs, model.len() as u64);
    assert_eq!((census.objects as usize, 0), tree.store().objects(), "objects reached, and in the store");
    assert_eq!(tree.len().unwrap(), model.len() as u64);
}

pub fn step(tree: &Tree<Memory>, model: &mut Model, random: &mut Random, keys: u64, growing: bool) {
    let key = random.key(keys);
    let known = model.get(&key).cloned();
    match random.below(16) {
        0..=5 if growing => drop(put(tree, model, random, key, When::Always)),
        0..=1 => drop(put(tree, model, random, key, When::Always)),
        6 => assert_eq!(put(tree, model, random, key, When::Absent), known.is_none()),
        7 => assert_eq!(put(tree, model, random, key, When::Present), known.is_some()),
        8 => {
            let mut value = Vec::new();
            assert_eq!(tree.get(&key, &mut value).unwrap(), known.is_some());
            assert_eq!(value, known.unwrap_or_default());
        }
        9 => {
            let longer = |old: Option<&[u8]>| match old {
                Some(old) if old.len() > 50 => Err(old.len()),
                old => Ok([old.unwrap_or_default(), b"+"].concat()),
            };
            let result = tree.update(&key, longer).unwrap();
            assert_eq!(result, longer(known.as_deref()).map(|value| drop(model.insert(key, value))));
        }
        10 => {
            let from: Vec<_> = tree.range(&key).take(5).map(Result::unwrap).collect();
            assert!(from.iter().map(|(k, v)| (k, v)).eq(model.range(key..).take(5)));
        }
        _ => assert_eq!(tree.remove(&key).unwrap(), model.remove(&key).is_some()),
    }
}

fn put(tree: &Tree<Memory>, model: &mut Model, random: &mut Random, key: Vec<u8>, when: When) -> bool {
    let value = random.value();
    let known = model.get(&key).cloned();
    let mut old = Vec::new();
    let outcome = tree.put(&key, &value, when, Some(&mut old)).unwrap();
    assert_eq!(outcome.existed, known.is_some());
    assert_eq!(old, known.unwrap_or_default());
    if outcome.changed {
        model.insert(key, value);
    }
    outcome.changed
}

#[test]
fn random_operations_agree_with_a_map() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let mut model = Model::new();
        let mut tree = Tree::open(Memory::new(16 << 20), ROOT).unwrap();
        for phase in 0..6 {
            for _ in 0..4000 {
                step(&tree, &mut model, &mut random, 20_000, phase % 2 == 0);
            }
            compare(&tree, &model);
            // Before and after inner nodes are read.
            tree = Tree::open(tree.store().crashed(), ROOT).unwrap();
            if phase % 3 == 0 {
                compare(&tree, &model);
            }
        }
    }
}

#[test]
fn a_tree_grows_by_directories_and_shrinks_to_nothing() {
    let tree = Tree::open(Memory::new(256 << 20), ROOT).unwrap();
    let mut model = Model::new();
    for i in 0..200_000u64 {
        let key = format!("key:{:012}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000_007).into_bytes();
        tree.put(&key, b"xxx", When::Always, None).unwrap();
        model.insert(key, b"xxx".to_vec());
    }
    compare(&tree, &model);
    let census = tree.check().unwrap();
    assert!(census.dirs > 20 && census.leaves < 200_000 / 40, "{census:?}");
    let tree = Tree::open(tree.store().crashed(), ROOT).unwrap();
    compare(&tree, &model);
    for key in model.keys() {
        assert!(tree.remove(key).unwrap());
    }
    let census = tree.check().unwrap();
    assert!(census.leaves <= 2 && census.dirs == 1, "empty leaves stay: {census:?}");
    compare(&tree, &Model::new());
}

#[test]
fn leaves_emptied_from_the_high_end_are_freed() {
    let tree = Tree::open(Memory::new(64 << 20), ROOT).unwrap();
    for i in 0..50_000u32 {
        tree.put(&i.to_be_bytes(), b"", When::Always, None).unwrap();
    }
    for i in (0..50_000u32).rev() {
        tree.remove(&i.to_be_bytes()).unwrap();
    }
    let census = tree.check().unwrap();
    assert_eq!((census.leaves, census.dirs), (1, 1));
    compare(&tree, &Model::new());
}

#[test]
fn clearing_frees_everything() {
    let tree = Tree::open(Memory::new(64 << 20), ROOT).unwrap();
    for round in 0..3 {
        let mut random = Random::new(round);
        for _ in 0..20_000 {
            tree.put(&random.key(100_000), &random.value(), When::Always, None).unwrap();
        }
        tree.clear().unwrap();
        assert_eq!(tree.len().unwrap(), 0);
        tree.put(b"a", b"b", When::Always, None).unwrap();
        if round == 1 {
            tree.free_dead().unwrap();
            compare(&tree, &Model::from([(b"a".to_vec(), b"b".to_vec())]));
        }
    }
    let tree = Tree::open(tree.store().crashed(), ROOT).unwrap();
    compare(&tree, &Model::from([(b"a".to_vec(), b"b".to_vec())]));
}
