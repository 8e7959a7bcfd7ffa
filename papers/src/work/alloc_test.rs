//! Random replacement in a large array of slots: few change all the time, most hardly ever.
//!
//! **From.** OLogN Technologies' alloc-test (ITHare, 2018), in integers; ours writes both ends of a
//! block where the original clears all of it.

use super::Load;
use super::block::Block;
use super::crew::crew;
use craton_lab::rng::Rng;

pub fn run(load: &Load) -> u64 {
    crew(load.numbers(), |number| steps(&mut Rng::new(load.seed, number), load.share(STEPS)))
}

const STEPS: u64 = 19_000_000;
const SLOTS: u32 = 1 << 18;
/// Of the rule of four fifths, each within the fifth chosen before.
const LEVELS: u32 = 6;
const LARGEST: u32 = 10;

fn steps(rng: &mut Rng, count: u64) -> u64 {
    let mut held: Vec<Option<Block>> = Vec::new();
    held.resize_with(SLOTS as usize, || None);
    let mut sum = 0u64;
    for _ in 0..count {
        let slot = &mut held[slot(rng, SLOTS) as usize];
        match slot.take() {
            Some(block) => sum = sum.wrapping_mul(31).wrapping_add(block.ends()),
            None => *slot = Some(Block::new(size(rng), rng.next())),
        }
    }
    held.iter().flatten().fold(sum, |sum, block| sum.wrapping_mul(31).wrapping_add(block.ends()))
}

/// By Pareto's law.
fn slot(rng: &mut Rng, bound: u32) -> u32 {
    let mut end = bound;
    for _ in 0..LEVELS {
        let fifth = end / 5;
        if rng.one_in(5) {
            return fifth + rng.below(end - fifth);
        }
        end = fifth.max(1);
    }
    rng.below(end)
}

/// To 1 KiB: each power of two is half as likely as the one before.
fn size(rng: &mut Rng) -> usize {
    let bits = rng.next();
    let top = 1u32 << (bits.trailing_zeros() + 4).min(LARGEST);
    ((top >> 1) + 1 + ((bits >> 32) as u32 & ((top >> 1) - 1))) as usize
}

#[cfg(test)]
mod tests;
