//! Objects that outlive rounds, threads and owners: threads swap them through a shared array.
//!
//! **From.** mimalloc's test-stress (Leijen, Zorn and de Moura, 2019).

use super::Load;
use super::block::Filled;
use super::crew::crew;
use craton_lab::rng::Rng;
use std::sync::Mutex;

pub fn run(load: &Load) -> u64 {
    let places: Vec<Mutex<Vec<Filled>>> = (0..PLACES).map(|_| Mutex::new(Vec::new())).collect();
    let objects = load.of(OBJECTS).div_ceil(ROUNDS * load.threads as u64);
    let rounds = (0..ROUNDS).map(|round| {
        crew(load.numbers(), |number| {
            let mut rng = Rng::new(load.seed, round * load.threads as u64 + number);
            stress(&mut rng, objects, &places)
        })
    });
    let sum = rounds.fold(0, u64::wrapping_add);
    places.into_iter().fold(sum, |sum, place| sum.wrapping_add(free(place.into_inner().expect("no thread panics"))))
}

const OBJECTS: u64 = 17_000_000;
const ROUNDS: u64 = 20;
const PLACES: u32 = 500;
const SWAPPED: usize = 32;

fn stress(rng: &mut Rng, objects: u64, places: &[Mutex<Vec<Filled>>]) -> u64 {
    let mut sum = 0u64;
    let mut kept: Vec<Filled> = Vec::new();
    for _ in 0..objects {
        let object = Filled::new(size(rng), rng.next());
        if rng.one_in(3) {
            kept.push(object);
        } else {
            sum = sum.wrapping_add(object.ends());
        }
        if kept.len() == SWAPPED {
            let place = &places[rng.below(PLACES) as usize];
            let other = std::mem::replace(&mut *place.lock().expect("no thread panics"), std::mem::take(&mut kept));
            sum = sum.wrapping_add(free(other));
        }
    }
    sum.wrapping_add(free(kept))
}

fn free(objects: Vec<Filled>) -> u64 {
    objects.into_iter().fold(0, |sum, object| sum.wrapping_add(object.ends()))
}

/// Eight words at most; one of 16 up to a hundred times, one of 2000 a thousand times as many.
fn size(rng: &mut Rng) -> usize {
    let scale = if rng.one_in(2000) {
        1000
    } else if rng.one_in(16) {
        rng.below(100) + 1
    } else {
        1
    };
    ((rng.below(8) + 1) * 8 * scale) as usize
}
