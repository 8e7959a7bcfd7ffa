//! Pairs of threads, of which one allocates what the other frees.
//!
//! **What.** A producer allocates objects of 64 B and hands them over, a consumer reads and frees them.
//!
//! **From.** NVAlloc §6.1 (Prod-con), after Schneider, Antonopoulos and Nikolopoulos, "Scalable locality-conscious
//! multithreaded memory allocation" (ISMM 2006).
//!
//! **Units.** Batches of objects: a lock for each object would be most of the time.
//! **Threads.** A bounded queue for each pair.

use super::Workload;
use super::block::Block;
use super::crew::{Queue, crew};
use craton_lab::rng::Rng;

/// The workload, in the list.
pub const WORKLOAD: Workload = Workload {
    name: "prod-con",
    about: "pairs of threads: one allocates objects of 64 B, the other frees them",
    from: "NVAlloc §6.1, Schneider et al. 2006",
    threads: 2,
    run: |load| {
        let pairs = load.threads.div_ceil(2);
        let each = load.of(BATCHES).div_ceil(pairs as u64);
        let queues: Vec<Queue<Vec<Block>>> = (0..pairs).map(|_| Queue::new(WAITING, 1)).collect();
        crew(pairs * 2, |number| {
            let queue = &queues[number as usize / 2];
            if number % 2 == 0 {
                let mut rng = Rng::new(load.seed, number);
                (0..each).for_each(|_| queue.put((0..BATCH).map(|_| Block::new(SIZE, rng.next())).collect()));
                queue.done();
                return 0;
            }
            let batches = std::iter::from_fn(|| queue.take());
            batches.flatten().fold(0, |sum, object| sum.wrapping_mul(31).wrapping_add(object.ends()))
        })
    },
    known: [0xa606_ab62_6e66_319d, 0xbbc9_bd11_a8e2_0bc2],
};

const SIZE: usize = 64;
/// Batches of the full load, by all producers.
const BATCHES: u64 = 24_000;
/// Objects of a batch.
const BATCH: u64 = 500;
/// Batches that wait at most.
const WAITING: usize = 16;
