//! The tree on the heap, with a crash after each store, flush and fence: the state is as before or
//! after the operation.

use crate::random::Random;
use craton_base::Medium;
use craton_kv::heap::HeapStore;
use craton_kv::{Store, Tree, When};
use craton_pheap::{Config, Heap, Model, Options};
use craton_sim::{Fallible, Image, Rng, SimPersistent};
use std::collections::BTreeMap;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type SimTree<const F: bool> = Tree<HeapStore<SimPersistent<F>>>;

const LIMIT: u64 = 8 << 20;

fn options() -> Options {
    Options { arenas: 1, markers: 1, ..Options::default() }
}

fn create<const F: bool>(model: Model) -> (SimPersistent<F>, SimTree<F>) {
    let medium = SimPersistent::new(1 << 16, LIMIT);
    let config = Config { model, lanes: 2, half: 24, uuid: 77, ..Config::default() };
    let (store, slot) = HeapStore::new(Heap::create(medium.clone(), config, options()).unwrap()).unwrap();
    (medium, Tree::open(store, slot).unwrap())
}

fn open<const F: bool>(image: &Image) -> SimTree<F> {
    let (heap, _) =
        Heap::open(SimPersistent::<F>::from_image(image), options()).unwrap_or_else(|error| panic!("{error}"));
    let (store, slot) = HeapStore::new(heap).unwrap();
    Tree::open(store, slot).unwrap_or_else(|error| panic!("{error}"))
}

fn contents<const F: bool>(tree: &SimTree<F>) -> Map {
    let map: Map = tree.range(b"").map(Result::unwrap).collect();
    let census = tree.check().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(census.pairs, map.len() as u64);
    let stats = tree.store().heap().stats();
    assert_eq!(stats.small + stats.large, census.objects, "objects of the heap, and reached from the root");
    map
}

fn each_crash<const F: bool>(
    medium: &SimPersistent<F>,
    tree: &SimTree<F>,
    model: &mut Map,
    rng: &mut Rng,
    most: usize,
    f: impl FnOnce(&SimTree<F>, &mut Map),
) -> usize {
    let before = model.clone();
    medium.record();
    f(tree, model);
    let mut images = 0;
    for moment in medium.take_moments() {
        for image in moment.new_images(most, rng) {
            images += 1;
            let found = contents(&open::<F>(&image));
            assert!(found == before || found == *model, "at {:?}", moment.event());
        }
    }
    images
}

/// The length stays: readers without a lock follow offsets of freed objects.
fn memory_returns<const F: bool>(model: Model) {
    let (medium, tree) = create::<F>(model);
    for i in 0..60u32 {
        tree.put(&i.to_le_bytes(), &[7; 60_000], When::Always, None).unwrap();
    }
    let (len, discards) = (medium.len(), || medium.fallible_events(Fallible::Discard));
    let before = discards();
    tree.store().maintain(0);
    tree.clear().unwrap();
    tree.free_dead().unwrap();
    tree.store().heap().settle();
    assert_eq!(discards(), before, "freed a moment ago");
    for step in 1..=400 {
        tree.store().maintain(50 * step);
    }
    assert!(discards() > before, "free memory stays in the file");
    assert_eq!(medium.len(), len);
    tree.put(b"a", &[8; 60_000], When::Always, None).unwrap();
    let mut value = Vec::new();
    assert!(tree.get(b"a", &mut value).unwrap() && value == [8; 60_000]);
}

#[test]
fn free_memory_goes_back_and_the_length_stays() {
    memory_returns::<false>(Model::Log);
    memory_returns::<true>(Model::Log);
    memory_returns::<false>(Model::Frames);
}

fn random_step<const F: bool>(tree: &SimTree<F>, model: &mut Map, random: &mut Random, growing: bool) {
    let key = random.key(600);
    if random.below(8) < if growing { 6 } else { 2 } {
        let value = random.value();
        tree.put(&key, &value, When::Always, None).unwrap();
        model.insert(key, value);
    } else {
        assert_eq!(tree.remove(&key).unwrap(), model.remove(&key).is_some());
    }
}

fn crashes<const F: bool>(seed: u64, operations: u64, most: usize) {
    let (medium, tree) = create::<F>(Model::Log);
    let (mut random, mut rng, mut model) = (Random::new(seed), Rng::new(seed), Map::new());
    let mut images = 0;
    for i in 0..operations {
        let growing = i % 400 < 250;
        // Every seventh operation, and splits.
        if i % 7 == 0 || model.len() % 32 > 29 {
            let step = |tree: &SimTree<F>, model: &mut Map| random_step(tree, model, &mut random, growing);
            images += each_crash(&medium, &tree, &mut model, &mut rng, most, step);
        } else {
            random_step(&tree, &mut model, &mut random, growing);
        }
    }
    assert_eq!(contents(&tree), model);
    assert!(images as u64 > operations / 7, "{images}");
}

#[test]
fn a_crash_leaves_the_state_before_or_after_an_operation() {
    crashes::<true>(1, 1200, 12);
}

#[test]
fn the_death_of_a_process_leaves_the_state_before_or_after_an_operation() {
    crashes::<false>(2, 1200, 12);
}

#[test]
fn a_crash_while_clearing_leaves_all_or_nothing() {
    let (medium, tree) = create::<true>(Model::Log);
    let (mut random, mut rng, mut model) = (Random::new(3), Rng::new(3), Map::new());
    for _ in 0..400 {
        random_step(&tree, &mut model, &mut random, true);
    }
    let clear = |tree: &SimTree<true>, model: &mut Map| {
        tree.clear().unwrap();
        tree.free_dead().unwrap();
        model.clear();
    };
    let images = each_crash(&medium, &tree, &mut model, &mut rng, 2, clear);
    assert!(images > 100, "{images}");
}

#[test]
#[ignore = "nightly: minutes"]
fn many_crashes() {
    for seed in 10..20 {
        crashes::<true>(seed, 4000, 64);
        crashes::<false>(seed, 4000, 64);
    }
}
