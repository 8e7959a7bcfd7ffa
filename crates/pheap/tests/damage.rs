//! Damaged files are refused with the place, or harmless.

use crate::common::{SLOTS, Typed, check, create, options, step, table};
use craton_pheap::{Error, Heap, Model, SMALL_MOST};
use craton_sim::{Image, Rng, SimCached, SimMedium};

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
        // Half of them outside of the data.
        let at = rng.below(if i % 2 == 0 { good.len() / 8 } else { 1 << 14 }) * 8;
        let value = if rng.one_in(2) { rng.next_u64() } else { bad.word(at) ^ 1 << rng.below(64) };
        bad.set_word(at, value);
        if let Ok(heap) = open(&bad) {
            let _ = heap.check();
            heap.objects(|_, _| {});
        }
    }
}

const LANES: u64 = 65_536;
const HEADER_BYTES: u64 = 128;
const LANES_EACH: u64 = 3;
const WORDS: [u64; 6] = [0, 8, 64, 72, 80, 88];

/// Each image with a changed bit is refused, and the word named.
fn flip_header_bits<const F: bool>(good: &Image, lane: u64) {
    let header = LANES + lane * HEADER_BYTES;
    let mut rng = Rng::new(11);
    for word in WORDS {
        for _ in 0..16 {
            let mut bad = good.clone();
            bad.set_word(header + word, good.word(header + word) ^ 1 << rng.below(64));
            let result = Heap::open_traced(craton_sim::SimPersistent::<F>::from_image(&bad), options(), &Typed);
            // A check is 16 bytes behind its word. That of an ended transaction is void.
            let named = header + if word >= 80 { word - 16 } else { word };
            match result.map(drop) {
                Err(Error::Damaged { at, .. }) if at == named => {}
                Ok(()) if word == 80 && good.word(named) == 0 => {}
                result => panic!("word {word} of lane {lane}: {result:?}"),
            }
        }
    }
}

/// Another operation begins within a transaction.
fn image_within<const F: bool>() -> Image {
    let (medium, heap) = create::<F>(Model::Log, 2 << 20);
    let slots = table(&heap, SLOTS);
    let mut tx = heap.begin().unwrap();
    tx.snapshot(slots[0].0, 8).unwrap();
    medium.record();
    heap.alloc_to(slots[1], 64).unwrap();
    let mut images = medium.take_moments().into_iter().map(|moment| moment.seen());
    // Without write-back, lines are pending.
    images.rfind(|image| F || image.word(LANES) != 0).expect("lines of the operation were pending")
}

#[test]
fn each_flipped_bit_of_a_lanes_header_is_named() {
    let (cached, flushed) = (image_within::<false>(), image_within::<true>());
    for lane in 0..LANES_EACH {
        flip_header_bits::<false>(&cached, lane);
        flip_header_bits::<true>(&flushed, lane);
    }
    let (_, report) = Heap::open_traced(SimMedium::from_image(&flushed), options(), &Typed).unwrap();
    assert!(report.lines > 0 && report.undone == 1, "{report:?}");
}

#[test]
fn each_wrong_word_of_a_pending_line_is_named() {
    let good = image_within::<false>();
    let (_, report) = Heap::open_traced(SimCached::from_image(&good), options(), &Typed).unwrap();
    assert_eq!(report.undone, 1);
    let line = LANES + LANES_EACH * HEADER_BYTES;
    let mut rng = Rng::new(12);
    for word in 0..8 {
        for value in [good.word(line + 8 * word) ^ 1 << rng.below(64), rng.next_u64()] {
            let mut bad = good.clone();
            bad.set_word(line + 8 * word, value);
            assert_eq!(open(&bad).map(drop), Err(Error::Damaged { what: "redo line", at: line }), "word {word}");
        }
    }
}
