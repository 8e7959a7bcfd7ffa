//! Several threads at once.

use crate::random::Random;
use craton_kv::memory::{Memory, ROOT};
use craton_kv::{Tree, When};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Shows torn or foreign reads.
fn value_of(key: &[u8], version: u64) -> Vec<u8> {
    [key, b"=", &version.to_le_bytes().repeat(1 + version as usize % 4)].concat()
}

fn is_value_of(key: &[u8], value: &[u8]) -> bool {
    let Some(rest) = value.strip_prefix(key).and_then(|rest| rest.strip_prefix(b"=")) else { return false };
    rest.chunks(8).all(|part| part == &rest[..8])
}

#[test]
fn readers_see_whole_pairs_while_writers_split_and_free() {
    let tree = Tree::open(Memory::new(64 << 20), ROOT).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let tree = &tree;
        let done = &done;
        for seed in 0..2 {
            scope.spawn(move || {
                let mut random = Random::new(seed + 1);
                let mut value = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    let key = random.key(3000);
                    value.clear();
                    if tree.get(&key, &mut value).unwrap() {
                        assert!(is_value_of(&key, &value), "{key:?}: {value:?}");
                    }
                    let mut last = None;
                    for entry in tree.range(&key).take(100) {
                        let (key, value) = entry.unwrap();
                        assert!(is_value_of(&key, &value));
                        assert!(last < Some(key.clone()), "keys in order");
                        last = Some(key);
                    }
                }
            });
        }
        let writers: Vec<_> = (0..3)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = Random::new(seed + 10);
                    for i in 0..60_000u64 {
                        let key = random.key(3000);
                        // Fills and empties the tree in turn.
                        if random.below(8) < if i % 20_000 < 10_000 { 6 } else { 1 } {
                            tree.put(&key, &value_of(&key, i), When::Always, None).unwrap();
                        } else {
                            tree.remove(&key).unwrap();
                        }
                        if seed == 0 && i % 25_000 == 24_999 {
                            tree.clear().unwrap();
                            tree.free_dead().unwrap();
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let census = tree.check().unwrap();
    assert_eq!((census.objects as usize, 0), tree.store().objects());
}

#[test]
fn increments_are_not_lost() {
    let tree = Tree::open(Memory::new(16 << 20), ROOT).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..20_000u64 {
                    let key = (i % 200).to_be_bytes();
                    let next = |old: Option<&[u8]>| {
                        let old = old.map_or(0, |old| u64::from_le_bytes(old.try_into().unwrap()));
                        Ok::<_, ()>((old + 1).to_le_bytes().to_vec())
                    };
                    tree.update(&key, next).unwrap().unwrap();
                }
            });
        }
    });
    for entry in tree.range(b"") {
        assert_eq!(entry.unwrap().1, 400u64.to_le_bytes());
    }
    assert_eq!(tree.check().unwrap().pairs, 200);
}

#[test]
fn keys_of_each_thread_are_all_there() {
    let tree = Tree::open(Memory::new(64 << 20), ROOT).unwrap();
    thread::scope(|scope| {
        for t in 0..4u64 {
            let tree = &tree;
            scope.spawn(move || {
                for i in 0..20_000u64 {
                    let key = (i * 4 + t).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                    tree.put(&key, &i.to_le_bytes(), When::Always, None).unwrap();
                }
            });
        }
    });
    assert_eq!(tree.check().unwrap().pairs, 80_000);
    assert_eq!(tree.range(b"").count(), 80_000);
}
