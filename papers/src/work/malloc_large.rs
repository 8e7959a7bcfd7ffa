//! Large blocks, allocated and freed: released memory costs a fault for each page (mimalloc-bench's
//! malloc-large, Kutenin and Leijen, with several blocks and sizes).

use super::Load;
use super::block::Filled;
use craton_lab::rng::Rng;

pub fn run(load: &Load) -> u64 {
    let mut rng = Rng::new(load.seed, 0);
    let mut held: [Option<Filled>; SLOTS] = Default::default();
    let mut sum = 0u64;
    for _ in 0..load.of(STEPS) {
        let slot = &mut held[rng.below(SLOTS as u32) as usize];
        sum = sum.wrapping_mul(31).wrapping_add(slot.take().map_or(0, |block| block.sum_pages()));
        *slot = Some(Filled::new(size(&mut rng), rng.next()));
    }
    held.iter().flatten().fold(sum, |sum, block| sum.wrapping_mul(31).wrapping_add(block.sum_pages()))
}

/// 64 MiB on average.
const SLOTS: usize = 5;
const STEPS: u64 = 600;
const SMALLEST: u32 = 512 << 10;
const LARGEST: u32 = 25 << 20;

fn size(rng: &mut Rng) -> usize {
    (SMALLEST + rng.below(LARGEST - SMALLEST + 1)) as usize
}

#[cfg(test)]
mod tests;
