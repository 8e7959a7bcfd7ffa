//! Objects whose contents do not change: one fence makes object, slot and word durable.

use crate::common::{Sim, config, options, seeds, slots_of, table};
use craton_base::{Medium, Space};
use craton_pheap::{Error, Heap, Model, Offset, Slot};
use craton_sim::Rng;
use std::collections::HashSet;

/// Slots; a word for each lies behind them.
const OBJECTS: u64 = 4;

fn pattern(mark: u64, i: u64) -> u64 {
    (mark ^ i << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Of words and slots; a mark says how many words its object has.
fn words_of(mark: u64) -> u64 {
    mark & 0xff
}

fn publish<M: Medium + Space>(heap: &Heap<M>, slot: Slot, word: Slot, mark: u64) -> Result<(), Error> {
    let bytes = 8 * words_of(mark);
    let mut reserved = heap.reserve(bytes)?;
    heap.fill(&mut reserved, (0..words_of(mark)).map(|i| pattern(mark, i)));
    heap.publish_fixed(slot, reserved, word, mark)
}

/// Of the table, whose objects are all and whole.
fn check<M: Medium + Space>(heap: &Heap<M>) -> Result<Vec<u64>, String> {
    let words = check_objects(heap)?;
    let (slots, marks) = words.split_at(OBJECTS as usize);
    slots.iter().zip(marks).try_for_each(|(at, mark)| check_contents(heap, *at, *mark))?;
    Ok(words)
}

fn check_contents<M: Medium + Space>(heap: &Heap<M>, at: u64, mark: u64) -> Result<(), String> {
    if at != 0 && (0..words_of(mark)).any(|i| heap.read(at + 8 * i) != pattern(mark, i)) {
        return Err(format!("the object at {at:#x} has not the contents of {mark:#x}"));
    }
    Ok(())
}

/// The table's words.
fn check_objects<M: Medium + Space>(heap: &Heap<M>) -> Result<Vec<u64>, String> {
    let checked = if heap.model() == Model::Frames { heap.verify() } else { heap.check() };
    checked.map_err(|e| e.to_string())?;
    let table = heap.read(heap.root(b"table").map_err(|e| e.to_string())?.slot.0);
    let words: Vec<u64> = (0..2 * OBJECTS).map(|i| heap.read(table + 8 * i)).collect();
    let mut there: Vec<u64> = words[..OBJECTS as usize].iter().copied().filter(|at| *at != 0).collect();
    there.push(table);
    there.sort_unstable();
    let mut objects = Vec::new();
    heap.objects(|at, _| objects.push(at.0));
    if objects == there { Ok(words) } else { Err(format!("objects {objects:x?}, but slots {there:x?}")) }
}

fn step<M: Medium + Space>(heap: &Heap<M>, slots: &[Slot], rng: &mut Rng, mark: u64) -> Result<(), Error> {
    let i = rng.below(OBJECTS) as usize;
    let (slot, word) = (slots[i], slots[i + OBJECTS as usize]);
    match rng.below(12) {
        0 => {
            heap.settle();
            Ok(())
        }
        1 => {
            heap.maintain(mark * 1000);
            Ok(())
        }
        // Other lines change the same words.
        2 => heap.set(word, if heap.read(slot.0) == 0 { mark << 8 } else { heap.read(word.0) }),
        _ if heap.read(slot.0) != 0 && heap.model() == Model::Gc => {
            // `free_from` leaves the slot's durability to the application.
            let mut batch = heap.batch();
            batch.free(slot);
            batch.commit()
        }
        _ if heap.read(slot.0) != 0 => heap.free_from(slot),
        // As many words as objects of other sizes, and one too large for a slab.
        _ => publish(heap, slot, word, mark << 8 | *rng.pick(&[1, 2, 8, 8, 16, 17, 25, 200])),
    }
}

type Words = Vec<u64>;

/// Object, slot and word as before or after.
fn is_either<M: Medium + Space>(heap: &Heap<M>, before: &Words, after: &Words) -> Result<(), String> {
    let found = check(heap)?;
    if found == *before || found == *after {
        return Ok(());
    }
    Err(format!("{found:x?}\nnot {before:x?}\nor {after:x?}"))
}

/// As [`is_either`]; or the slot as after, and the word as before.
fn is_ordered<M: Medium + Space>(heap: &Heap<M>, before: &Words, after: &Words) -> Result<(), String> {
    let found = check_objects(heap)?;
    for i in 0..OBJECTS as usize {
        let mark = i + OBJECTS as usize;
        let is_after = found[i] == after[i];
        let there = if is_after { after } else { before };
        if found[i] != there[i] || found[mark] != there[mark] && !(is_after && found[mark] == before[mark]) {
            return Err(format!("{found:x?}\nnot {before:x?}\nor {after:x?}"));
        }
        check_contents(heap, found[i], there[mark])?;
    }
    Ok(())
}

/// Returns the number of opened images.
fn run<const F: bool>(model: Model, seed: u64, steps: u64, most: usize) -> u64 {
    let judge = if model == Model::Gc { is_ordered } else { is_either };
    let medium = Sim::<F>::new(1 << 16, 2 << 20);
    let heap = Heap::create(medium.clone(), config(model), options()).unwrap();
    let slots = table(&heap, 2 * OBJECTS);
    let (mut rng, mut seen, mut opened) = (Rng::new(seed), HashSet::new(), 0);
    for mark in 1..=steps {
        let before = check(&heap).unwrap();
        medium.record();
        step(&heap, &slots, &mut rng, mark).unwrap();
        let moments = medium.take_moments();
        let after = check(&heap).unwrap();
        for moment in moments {
            for image in moment.images(most, &mut rng) {
                if !seen.insert(image.digest()) {
                    continue;
                }
                opened += 1;
                let place = format!("{model:?}, seed {seed}, step {mark}, after {:?}", moment.event());
                let (heap, _) = Heap::open(Sim::<F>::from_image(&image), options())
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                judge(&heap, &before, &after).unwrap_or_else(|why| panic!("{place}: {why}"));
            }
        }
    }
    opened
}

#[test]
fn nx1_every_crash_leaves_object_slot_and_word_before_or_after() {
    let opened: u64 = seeds(4, 20).map(|seed| run::<true>(Model::Log, seed, 60, 24)).sum();
    assert!(opened > 2_000, "{opened} images");
    eprintln!("{opened} images");
    assert!(seeds(1, 4).map(|seed| run::<true>(Model::Frames, seed, 20, 8)).sum::<u64>() > 100);
}

#[test]
fn every_death_of_a_process_leaves_object_slot_and_word_before_or_after() {
    let opened: u64 = seeds(4, 20).map(|seed| run::<false>(Model::Log, seed, 60, 16)).sum();
    assert!(opened > 300, "{opened} images");
}

#[test]
fn every_crash_of_a_gc_heap_stores_the_slot_before_the_word() {
    let opened: u64 = seeds(4, 20).map(|seed| run::<true>(Model::Gc, seed, 60, 24)).sum();
    assert!(opened > 1_000, "{opened} images");
    assert!(seeds(2, 8).map(|seed| run::<false>(Model::Gc, seed, 60, 16)).sum::<u64>() > 100);
}

#[test]
fn a_gc_heap_publishes_frees_and_replaces_without_redo_lines() {
    let medium = craton_sim::SimMedium::new(1 << 16, 2 << 20);
    let heap = Heap::create(medium.clone(), config(Model::Gc), options()).unwrap();
    let slots = table(&heap, 2);
    let free = || {
        let mut batch = heap.batch();
        batch.free(slots[0]);
        batch.commit().unwrap();
    };
    publish(&heap, slots[0], slots[1], 0x10f).unwrap();
    free();
    let cost = |operation: &dyn Fn()| {
        medium.reset_counters(0);
        operation();
        let counters = medium.counters();
        (counters.line_stores + counters.flushes, counters.fences)
    };
    // An object of two lines, and the line of slot and word.
    assert_eq!(cost(&|| publish(&heap, slots[0], slots[1], 0x20f).unwrap()), (3, 2));
    let replace = || {
        let mut reserved = heap.reserve(120).unwrap();
        heap.fill(&mut reserved, (0..15).map(|i| pattern(0x30f, i)));
        heap.replace(slots[0], reserved).unwrap();
    };
    assert_eq!(cost(&replace), (3, 2));
    assert_eq!(heap.read(heap.read(slots[0].0)), pattern(0x30f, 0));
    assert_eq!(cost(&free), (1, 1));
    heap.check().unwrap();
}

#[test]
fn one_line_and_one_fence_publish_an_object() {
    let medium = craton_sim::SimMedium::new(1 << 16, 2 << 20);
    let heap = Heap::create(medium.clone(), config(Model::Log), options()).unwrap();
    let slots = table(&heap, 2);
    // The lane's first line and the class's first slab cost more.
    publish(&heap, slots[0], slots[1], 0x10f).unwrap();
    heap.free_from(slots[0]).unwrap();
    medium.reset_counters(0);
    publish(&heap, slots[0], slots[1], 0x20f).unwrap();
    let counters = medium.counters();
    // The object has 120 bytes: a whole line, a part, and the redo line.
    assert_eq!((counters.line_stores, counters.flushes, counters.fences), (2, 1, 1));
    assert_eq!((heap.read(slots[1].0), heap.read(heap.read(slots[0].0))), (0x20f, pattern(0x20f, 0)));
}

#[test]
fn a_refused_publication_returns_the_object() {
    let medium = Sim::<true>::new(1 << 16, 2 << 20);
    let heap = Heap::create(medium, config(Model::Log), options()).unwrap();
    let slots = table(&heap, 2);
    assert_eq!(publish(&heap, slots[0], slots[0], 0x108), Err(Error::Twice { at: slots[0].0 }));
    assert_eq!(publish(&heap, Slot(3), slots[1], 0x108), Err(Error::NotASlot { at: 3 }));
    assert_eq!(publish(&heap, slots[0], Slot(8), 0x108), Err(Error::NotASlot { at: 8 }));
    heap.check().unwrap();
    let mut objects = Vec::new();
    heap.objects(|at, _| objects.push(at));
    assert_eq!(objects.len(), 1);
    assert_eq!(slots_of(Offset(slots[0].0), 2), slots);
}
