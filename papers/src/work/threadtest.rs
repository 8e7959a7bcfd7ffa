//! Threads that each allocate and free many objects (Hoard's threadtest; NVAlloc's size, §6.1).

use super::Load;
use super::block::Block;
use super::crew::crew;
use craton_lab::rng::Rng;

pub fn run(load: &Load) -> u64 {
    let share = OBJECTS / load.threads as u64;
    crew(load.numbers(), |number| {
        let mut rng = Rng::new(load.seed, number);
        let mut objects: Vec<Block> = Vec::with_capacity(share as usize);
        (0..load.of(ROUNDS)).fold(0u64, |sum, _| {
            objects.extend((0..share).map(|_| Block::new(SIZE, rng.next())));
            objects.drain(..).fold(sum, |sum, object| sum.wrapping_mul(31).wrapping_add(object.ends()))
        })
    })
}

const OBJECTS: u64 = 100_000;
const SIZE: usize = 64;
const ROUNDS: u64 = 560;
