//! A crash leaves the state before or after the operation in flight.

use crate::model::{compare, step};
use crate::random::Random;
use craton_kv::Tree;
use craton_kv::memory::{Image, Memory, ROOT};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Each image has one of the two contents.
fn check(images: &[Image], before: &Model, after: &Model) {
    for image in images {
        let tree = Tree::open(Memory::restarted(image), ROOT).unwrap_or_else(|error| panic!("{error}"));
        let found: Model = tree.range(b"").map(Result::unwrap).collect();
        let model = if found == *before { before } else { after };
        compare(&tree, model);
    }
}

#[test]
fn every_operation_is_all_or_nothing() {
    for seed in 0..3 {
        let mut random = Random::new(seed + 100);
        let mut model = Model::new();
        let tree = Tree::open(Memory::new(1 << 18), ROOT).unwrap();
        tree.store().watch();
        let mut images = 0;
        for i in 0..1500 {
            let before = model.clone();
            step(&tree, &mut model, &mut random, 900, i % 1000 < 700);
            let mut now = tree.store().images();
            // Images repeat where a line was durable already.
            now.dedup_by(|a, b| a == b);
            images += now.len();
            check(&now, &before, &model);
        }
        // An insertion has one fence.
        assert!(images > 1500, "{images}");
    }
}

#[test]
fn a_crash_while_clearing_is_finished_by_the_next_open() {
    let mut random = Random::new(7);
    let mut model = Model::new();
    let tree = Tree::open(Memory::new(1 << 18), ROOT).unwrap();
    for _ in 0..1500 {
        step(&tree, &mut model, &mut random, 900, true);
    }
    tree.store().watch();
    tree.clear().unwrap();
    tree.free_dead().unwrap();
    let images = tree.store().images();
    assert!(images.len() > 50);
    check(&images, &model, &Model::new());
    compare(&tree, &Model::new());
}

#[test]
fn making_a_tree_is_all_or_nothing() {
    let store = Memory::new(1 << 16);
    store.watch();
    let tree = Tree::open(store, ROOT).unwrap();
    check(&tree.store().images(), &Model::new(), &Model::new());
}
