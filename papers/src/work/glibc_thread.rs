//! Random replacement in a small working set, as glibc's bench-malloc-thread.

use super::Load;
use super::block::Block;
use super::crew::crew;
use craton_lab::rng::Rng;

pub fn run(load: &Load) -> u64 {
    crew(load.numbers(), |number| {
        let mut rng = Rng::new(load.seed, number);
        let mut set: Vec<Block> = (0..SET).map(|_| block(&mut rng)).collect();
        let sum = (0..load.share(REPLACEMENTS)).fold(0u64, |sum, _| {
            let slot = rng.below(SET) as usize;
            let old = std::mem::replace(&mut set[slot], block(&mut rng));
            sum.wrapping_mul(31).wrapping_add(old.ends())
        });
        set.iter().fold(sum, |sum, block| sum.wrapping_add(block.ends()))
    })
}

const SET: u32 = 1024;
const REPLACEMENTS: u64 = 28_000_000;

/// Each power of two from 8 B on is half as likely as the one before.
fn block(rng: &mut Rng) -> Block {
    let bits = rng.next();
    let top = 8u32 << bits.trailing_zeros().min(12);
    Block::new((top / 2 + rng.below(top / 2 + 1)) as usize, bits)
}
