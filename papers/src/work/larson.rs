//! A server whose threads pass their connections on: a new thread inherits the slots.
//!
//! **From.** Larson and Krishnan (ISMM 1998), with a fixed number of replacements. Sizes of
//! `larson-small` are mimalloc-bench's, of `larson-large` NVAlloc's (§6.1).

use super::Load;
use super::block::Block;
use super::crew::crew;
use craton_lab::rng::Rng;
use std::thread;

pub fn small(load: &Load) -> u64 {
    run(&Kind { smallest: 8, largest: 1000, slots: 5000, each: 500_000, replacements: 30_000_000 }, load)
}

pub fn large(load: &Load) -> u64 {
    run(&Kind { smallest: 32 << 10, largest: 512 << 10, slots: 100, each: 5_000, replacements: 900_000 }, load)
}

struct Kind {
    smallest: u32,
    largest: u32,
    slots: u32,
    each: u64,
    replacements: u64,
}

impl Kind {
    fn block(&self, rng: &mut Rng) -> Block {
        Block::new((self.smallest + rng.below(self.largest - self.smallest + 1)) as usize, rng.next())
    }
}

struct Estate {
    rng: Rng,
    slots: Vec<Block>,
    sum: u64,
    left: u64,
}

fn run(kind: &Kind, load: &Load) -> u64 {
    let left = load.share(kind.replacements);
    crew(load.numbers(), |chain| {
        let mut rng = Rng::new(load.seed, chain);
        let slots = (0..kind.slots).map(|_| kind.block(&mut rng)).collect();
        let mut estate = Estate { rng, slots, sum: 0, left };
        while estate.left > 0 {
            estate = thread::scope(|scope| scope.spawn(|| replace(kind, estate)).join().expect("no thread panics"));
        }
        estate.slots.iter().fold(estate.sum, |sum, block| sum.wrapping_add(block.ends()))
    })
}

fn replace(kind: &Kind, mut estate: Estate) -> Estate {
    let count = estate.left.min(kind.each);
    for _ in 0..count {
        let slot = estate.rng.below(kind.slots) as usize;
        let new = kind.block(&mut estate.rng);
        let old = std::mem::replace(&mut estate.slots[slot], new);
        estate.sum = estate.sum.wrapping_mul(31).wrapping_add(old.ends());
    }
    estate.left -= count;
    estate
}
