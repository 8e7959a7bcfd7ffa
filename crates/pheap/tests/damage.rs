//! Damaged files are refused with the place, or harmless; never followed.

use crate::common::{SLOTS, Typed, check, create, options, step, table};
use craton_pheap::{Error, Heap, Model, SMALL_MOST};
use craton_sim::{Image, Rng, SimCached};

fn image(model: Model) -> Image {
    let (medium, heap) = create::<false>(model, 2 << 20);
    table(&heap, SLOTS);
    let mut rng = Rng::new(5);
    (0..40).for_each(|mark| step(&heap, &mut rng, mark).unwrap());
    check(&heap).unwrap();
    medium.now().seen()
}

fn open(image: &Image) -> Result<Heap<SimCached>, Error> {
    Heap::open_traced(SimCached::from_image(image), options(), &Typed).map(|(heap, _)| heap)
}

#[test]
fn each_flipped_bit_of_what_is_trusted_is_named_or_harmless() {
    [Model::Log, Model::Frames].into_iter().for_each(flip_bits);
}

fn flip_bits(model: Model) {
    let good = image(model);
    let mut rng = Rng::new(9);
    let heap = open(&good).unwrap();
    let mut slabs = Vec::new();
    heap.objects(|at, bytes| {
        if bytes <= SMALL_MOST {
            slabs.push(at.0 / 65_536 * 65_536);
        }
    });
    drop(heap);
    slabs.dedup();
    let lines = [0, 1024].into_iter().chain(slabs.iter().copied());
    for line in lines {
        for word in 0..8 {
            let mut bad = good.clone();
            let at = line + 8 * word;
            bad.set_word(at, bad.word(at) ^ 1 << rng.below(64));
            let Ok(heap) = open(&bad) else { continue };
            // Recovery does not rely on it.
            assert!(heap.check().is_ok() && check(&heap).is_ok(), "word {at:#x}");
        }
    }
}

#[test]
fn a_random_word_makes_no_panic() {
    [(Model::Log, 600), (Model::Frames, 400)].into_iter().for_each(|(model, words)| change_words(model, words));
}

fn change_words(model: Model, words: u64) {
    let good = image(model);
    let mut rng = Rng::new(10);
    for i in 0..words {
        let mut bad = good.clone();
        // Half of them in superblock, roots, lanes and records.
        let at = rng.below(if i % 2 == 0 { good.len() / 8 } else { 1 << 14 }) * 8;
        let value = if rng.one_in(2) { rng.next_u64() } else { bad.word(at) ^ 1 << rng.below(64) };
        bad.set_word(at, value);
        if let Ok(heap) = open(&bad) {
            let _ = heap.check();
            heap.objects(|_, _| {});
        }
    }
}
