//! FPTree (NVAlloc §6.3, with 50 million pairs): `craton-kv`'s tree, with each heap as its store.

use crate::heaps::race::{Turn, race};
use crate::heaps::{Figures, Heap, Refused, Task};
use craton_kv::{StoreError, Tree, When};
use craton_lab::rng::Rng;
use std::sync::Mutex;

/// There are twice as many keys.
const PAIRS: u64 = 200_000;
/// With key and head, 128.
const VALUE: [u8; 112] = [7; 112];
const TURN: u64 = 512;

pub fn run<H: Heap>(task: &Task, heap: H) -> Result<Figures, String> {
    let slot = heap.tree_slot();
    let failed = |error: StoreError| format!("the tree on {}: {error}", task.heap.name());
    let tree = Tree::open(heap, slot).map_err(failed)?;
    let keys = 2 * task.of(PAIRS) as u32;
    let mut rng = Rng::new(task.seed, 0);
    for _ in 0..task.of(PAIRS) {
        put(&tree, rng.below(keys)).map_err(failed)?;
    }
    let error = Mutex::new(None);
    let done = race(tree.store(), &task.pace(), task.threads, |thread| {
        let mut rng = Rng::new(task.seed, thread + 1);
        let (tree, error) = (&tree, &error);
        let turn = move || {
            for _ in 0..TURN {
                let key = rng.below(keys);
                let done = if rng.one_in(2) { put(tree, key) } else { tree.remove(&name(key)).map(|_| ()) };
                done.map_err(|why| {
                    *error.lock().expect("no thread panics") = Some(why);
                    Refused
                })?;
            }
            Ok(TURN)
        };
        Ok(Box::new(turn) as Turn<'_>)
    });
    let error = error.into_inner().expect("no thread panics");
    done.map_err(|_| error.map_or_else(|| tree.store().why(), failed))
}

/// Consecutive keys lie apart, as hashed ones do.
fn name(key: u32) -> [u8; 8] {
    craton_lab::rng::mix(key.into()).to_be_bytes()
}

fn put<H: Heap>(tree: &Tree<H>, key: u32) -> Result<(), StoreError> {
    tree.put(&name(key), &VALUE, When::Absent, None).map(|_| ())
}
