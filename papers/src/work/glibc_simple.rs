//! Blocks of one size, freed in several orders. **From.** glibc's
//! `benchtests/bench-malloc-simple.c` (2019), with two more orders and several sizes.

use super::Load;
use super::block::Block;
use craton_lab::rng::Rng;

pub fn run(load: &Load) -> u64 {
    let mut rng = Rng::new(load.seed, 0);
    let blocks = load.of(BLOCKS);
    let mut held = Held::default();
    for size in SIZES {
        for batch in BATCHES {
            for order in [Order::First, Order::Last, Order::EvenThenOdd] {
                for _ in 0..blocks.div_ceil(batch as u64) {
                    held.fill(&mut rng, size, batch);
                    held.empty(order);
                }
            }
        }
    }
    held.sum
}

/// glibc's default is 16 B.
const SIZES: [usize; 6] = [16, 32, 64, 128, 256, 512];
const BATCHES: [usize; 4] = [25, 100, 400, 1600];
const BLOCKS: u64 = 850_000;

#[derive(Clone, Copy)]
enum Order {
    First,
    Last,
    EvenThenOdd,
}

#[derive(Default)]
struct Held {
    blocks: Vec<Option<Block>>,
    sum: u64,
}

impl Held {
    fn fill(&mut self, rng: &mut Rng, size: usize, count: usize) {
        let stamp = rng.next();
        self.blocks.clear();
        self.blocks.extend((0..count as u64).map(|i| Some(Block::new(size, stamp.wrapping_add(i)))));
    }

    fn empty(&mut self, order: Order) {
        let count = self.blocks.len();
        match order {
            Order::First => (0..count).for_each(|i| self.free(i)),
            Order::Last => (0..count).rev().for_each(|i| self.free(i)),
            Order::EvenThenOdd => (0..count).step_by(2).chain((1..count).step_by(2)).for_each(|i| self.free(i)),
        }
    }

    fn free(&mut self, i: usize) {
        let ends = self.blocks[i].take().map_or(0, |block| block.ends());
        self.sum = self.sum.wrapping_mul(31).wrapping_add(ends);
    }
}

#[cfg(test)]
mod tests;
