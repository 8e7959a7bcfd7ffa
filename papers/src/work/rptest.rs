//! Random sizes in loops that replace slots in one stride; now and then a set goes to the next
//! thread. **From.** Jansson's rpmalloc-benchmark (rptest), by its description.

use super::Load;
use super::block::Block;
use super::crew::{crew, ring};
use craton_lab::rng::Rng;
use crossbeam_channel::{Receiver, Sender};

pub fn run(load: &Load) -> u64 {
    crew(ring(load.threads, WAITING), |(number, own, next)| {
        let sum = loops(&mut Rng::new(load.seed, number), load.share(LOOPS), &own, &next);
        drop(next);
        own.iter().map(free).fold(sum, u64::wrapping_add)
    })
}

const LOOPS: u64 = 130_000;
/// Of a thread, and of a loop.
const SLOTS: usize = 4000;
const REPLACED: usize = 150;
/// Loops until a set goes on, its blocks, and the most waiting.
const PERIOD: u64 = 8;
const SET: usize = 100;
const WAITING: usize = 8;

fn loops(rng: &mut Rng, count: u64, own: &Receiver<Vec<Block>>, next: &Sender<Vec<Block>>) -> u64 {
    let mut slots: Vec<Option<Block>> = Vec::new();
    slots.resize_with(SLOTS, || None);
    let mut sum = 0u64;
    for number in 0..count {
        // Odd: it meets each slot.
        let stride = rng.below(SLOTS as u32) as usize | 1;
        let start = rng.below(SLOTS as u32) as usize;
        for i in 0..REPLACED {
            let slot = &mut slots[(start + i * stride) % SLOTS];
            sum = sum.wrapping_add(slot.take().map_or(0, |block| block.ends()));
            *slot = Some(block(rng));
        }
        if number % PERIOD == 0 {
            let set: Vec<Block> = (0..SET).map(|_| block(rng)).collect();
            sum = sum.wrapping_add(next.try_send(set).map_or_else(|full| free(full.into_inner()), |()| 0));
        }
        sum = sum.wrapping_add(own.try_recv().map_or(0, free));
    }
    sum.wrapping_add(free(slots.into_iter().flatten()))
}

fn free(blocks: impl IntoIterator<Item = Block>) -> u64 {
    blocks.into_iter().fold(0, |sum, block| sum.wrapping_add(block.ends()))
}

/// Half linear up to 1 KiB, half exponential up to 8 KiB.
fn block(rng: &mut Rng) -> Block {
    let bits = rng.next();
    let size = if bits & 1 == 0 {
        16 + rng.below(1008)
    } else {
        let top = 32u32 << ((bits >> 1).trailing_zeros().min(8));
        top / 2 + rng.below(top / 2)
    };
    Block::new(size as usize, bits)
}
