//! Threads that allocate objects which other threads free. In `prod-con` each pair has a channel;
//! in `xmalloc` all share one.
//!
//! **From.** NVAlloc §6.1, after Schneider et al. (ISMM 2006); Lever and Boreham (USENIX 2000), as
//! mimalloc-bench has it.

use super::Load;
use super::block::Block;
use super::crew::crew;
use craton_lab::rng::Rng;
use crossbeam_channel::{Receiver, Sender, bounded};

pub fn prod_con(load: &Load) -> u64 {
    run(load, &Kind { batches: 24_000, batch: 500, size: |_| 64, shared: false })
}

pub fn xmalloc(load: &Load) -> u64 {
    run(load, &Kind { batches: 75_000, batch: 120, size: small, shared: true })
}

struct Kind {
    batches: u64,
    batch: u64,
    size: fn(&mut Rng) -> usize,
    shared: bool,
}

const WAITING: usize = 16;

enum Part {
    Producer(u64, Sender<Vec<Block>>),
    Consumer(Receiver<Vec<Block>>),
}

fn run(load: &Load, kind: &Kind) -> u64 {
    let pairs = load.threads.div_ceil(2) as u64;
    let each = load.of(kind.batches).div_ceil(pairs);
    let shared = kind.shared.then(|| bounded(WAITING));
    let pair = |number| {
        let (sender, receiver) = shared.clone().unwrap_or_else(|| bounded(WAITING));
        [Part::Producer(number, sender), Part::Consumer(receiver)]
    };
    let parts: Vec<Part> = (0..pairs).flat_map(pair).collect();
    // Consumers end with the last sender.
    drop(shared);
    crew(parts, |part| match part {
        Part::Producer(number, sender) => {
            let mut rng = Rng::new(load.seed, number);
            let mut batch = || (0..kind.batch).map(|_| Block::new((kind.size)(&mut rng), rng.next())).collect();
            (0..each).for_each(|_| sender.send(batch()).expect("the consumers stay"));
            0
        }
        Part::Consumer(receiver) => receiver.iter().flatten().fold(0, |sum, block| sum.wrapping_add(block.ends())),
    })
}

fn small(rng: &mut Rng) -> usize {
    let most = if rng.one_in(4) { 1536 } else { 128 };
    rng.below(most) as usize + 1
}
