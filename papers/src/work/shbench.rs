//! Many sizes, freed in many orders; in `sh8` threads also exchange blocks. **From.** MicroQuill's
//! sh6bench and sh8bench, by their descriptions; NVAlloc §6.1.

use super::Load;
use super::block::Block;
use super::crew::crew;
use craton_lab::rng::Rng;
use crossbeam_channel::{Receiver, Sender, bounded};

pub fn sh6(load: &Load) -> u64 {
    run(load, None)
}

pub fn sh8(load: &Load) -> u64 {
    run(load, Some(&bounded(WAITING)))
}

const BATCHES: u64 = 32_000;
const BATCH: u64 = 1000;
/// For another thread to free, and the most waiting.
const PART: usize = 100;
const WAITING: usize = 64;

type Others = (Sender<Vec<Block>>, Receiver<Vec<Block>>);

fn run(load: &Load, others: Option<&Others>) -> u64 {
    let sum = crew(load.numbers(), |number| {
        let mut rng = Rng::new(load.seed, number);
        let mut kept = Vec::with_capacity(2 * BATCH as usize);
        let mut sum = 0u64;
        for _ in 0..load.share(BATCHES) {
            sum = sum.wrapping_add(batch(&mut rng, &mut kept));
            if let Some(others) = others {
                sum = sum.wrapping_add(exchange(&mut kept, others));
            }
        }
        sum.wrapping_add(all(kept))
    });
    let left = others.map_or(0, |(_, parts)| parts.try_iter().map(all).fold(0, u64::wrapping_add));
    sum.wrapping_add(left)
}

/// Frees about as much; `kept` stays below two batches.
fn batch(rng: &mut Rng, kept: &mut Vec<Block>) -> u64 {
    let mut sum = 0u64;
    for i in 0..BATCH {
        let block = Block::new(size(rng), rng.next());
        if i % 3 == 0 {
            sum = sum.wrapping_add(block.ends());
        } else {
            kept.push(block);
        }
    }
    let some = kept.len() / 2;
    let freed = match rng.below(3) {
        0 => all(kept.drain(kept.len() - some..).rev()),
        1 => all(kept.drain(..some)),
        _ => all((0..some).map(|_| {
            let any = rng.below(kept.len() as u32) as usize;
            kept.swap_remove(any)
        })),
    };
    sum.wrapping_add(freed)
}

fn exchange(kept: &mut Vec<Block>, (sender, receiver): &Others) -> u64 {
    let part: Vec<Block> = kept.drain(kept.len().saturating_sub(PART)..).collect();
    let back = sender.try_send(part).map_or_else(|full| all(full.into_inner()), |()| 0);
    back.wrapping_add(receiver.try_recv().map_or(0, all))
}

fn all(blocks: impl IntoIterator<Item = Block>) -> u64 {
    blocks.into_iter().fold(0, |sum, block| sum.wrapping_add(block.ends()))
}

fn size(rng: &mut Rng) -> usize {
    rng.skewed(1000) as usize + 1
}
