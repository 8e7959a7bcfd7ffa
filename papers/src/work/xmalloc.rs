//! Asymmetric producers and consumers.
//!
//! **What.** Half of the threads allocate blocks, in batches, the other half free them: nobody frees what it allocated, and
//! the memory has to find its way back.
//!
//! **From.** Lever and Boreham, "malloc() performance in a multithreaded Linux environment" (USENIX 2000), as xmalloc-test
//! of mimalloc-bench runs it: batches of 120 blocks, most of them small, some to 1.5 KiB.
//!
//! **Units.** Batches; sizes in bytes.
//! **Threads.** One queue between all of them, of a few batches.

use super::Workload;
use super::block::Block;
use super::crew::{Queue, crew};
use craton_lab::rng::Rng;

/// The workload, in the list.
pub const WORKLOAD: Workload = Workload {
    name: "xmalloc",
    about: "half of the threads allocate blocks, the other half free them",
    from: "Lever and Boreham 2000, xmalloc-test",
    threads: 4,
    run: |load| {
        let producers = load.threads.div_ceil(2);
        let each = load.of(BATCHES).div_ceil(producers as u64);
        let queue: Queue<Vec<Block>> = Queue::new(WAITING, producers);
        crew(producers * 2, |number| {
            if number < producers as u64 {
                let mut rng = Rng::new(load.seed, number);
                (0..each).for_each(|_| queue.put((0..BATCH).map(|_| Block::new(size(&mut rng), rng.next())).collect()));
                queue.done();
                return 0;
            }
            let batches = std::iter::from_fn(|| queue.take());
            batches.flatten().fold(0, |sum, block| sum.wrapping_add(block.ends()))
        })
    },
    known: [0xd2bf_0c2e_386a_c833, 0x6653_8d23_b947_f288],
};

/// Batches of the full load, by all producers.
const BATCHES: u64 = 75_000;
/// Blocks of a batch.
const BATCH: u64 = 120;
/// Batches that wait at most.
const WAITING: usize = 16;

/// Three of four up to 128 B, others to 1.5 KiB.
fn size(rng: &mut Rng) -> usize {
    let most = if rng.one_in(4) { 1536 } else { 128 };
    rng.below(most) as usize + 1
}
