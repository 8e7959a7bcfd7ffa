//! Short-lived threads that leave objects behind: those in a thread's cache must reach others
//! (mimalloc-bench's mleak, by its description).

use super::Load;
use super::block::Filled;
use super::crew::crew;
use craton_lab::rng::Rng;
use std::sync::Mutex;

pub fn run(load: &Load) -> u64 {
    let left: Mutex<Vec<Filled>> = Mutex::new(Vec::new());
    let waves = load.share(THREADS);
    let sums = (0..waves).map(|wave| {
        crew(load.numbers(), |number| live(&mut Rng::new(load.seed, wave * load.threads as u64 + number), &left))
    });
    let sum = sums.fold(0, u64::wrapping_add);
    sum.wrapping_add(free(left.into_inner().expect("no thread panics")))
}

const THREADS: u64 = 5000;
const OBJECTS: usize = 400;
const LEFT: usize = 20;

fn live(rng: &mut Rng, left: &Mutex<Vec<Filled>>) -> u64 {
    let mut objects: Vec<Filled> = (0..OBJECTS).map(|_| Filled::new(size(rng), rng.next())).collect();
    let stay = objects.drain(..LEFT).collect();
    let found = std::mem::replace(&mut *left.lock().expect("no thread panics"), stay);
    free(objects).wrapping_add(free(found))
}

fn free(objects: Vec<Filled>) -> u64 {
    objects.into_iter().fold(0, |sum, object| sum.wrapping_add(object.sum()))
}

/// To 512 B, but one of 50 to 64 KiB.
fn size(rng: &mut Rng) -> usize {
    let most = if rng.one_in(50) { 64 << 10 } else { 512 };
    rng.below(most) as usize + 1
}
