//! Threads on shared slots, and a crash in the middle. Operations log the medium's step before and
//! after: after the crash, ended ones are there, and those not begun are not.

use crate::common::{Sim, Typed, create, options, seeds, table};
use craton_pheap::{Error, Heap, Model, Slot};
use craton_sim::Rng;
use std::collections::BTreeMap;
use std::sync::Mutex;

const LEAVES: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Done {
    began: u64,
    ended: u64,
    value: u64,
}

/// Under the slot's lock.
type Log = Mutex<Vec<Done>>;

fn act<const F: bool>(medium: &Sim<F>, heap: &Heap<Sim<F>>, slots: &[Slot], logs: &[Log], rng: &mut Rng) {
    // In the order of their locks.
    let a = rng.below(slots.len() as u64 - 1) as usize;
    let b = a + 1 + rng.below((slots.len() - a - 1) as u64) as usize;
    let (mut log_a, mut log_b) = (logs[a].lock().unwrap(), logs[b].lock().unwrap());
    let (slot_a, slot_b) = (slots[a], slots[b]);
    let size = *rng.pick(&[64, 64, 1000, 9000, 16_000, 16_000, 16_000, 40_000]);
    let began = medium.steps();
    let result = match rng.below(8) {
        0..=4 if heap.read(slot_a.0) == 0 => heap.alloc_to(slot_a, size).map(drop),
        0..=4 => heap.free_from(slot_a),
        5 => heap.realloc(slot_a, 16 + size % 100).map(drop),
        6 => {
            let mut batch = heap.batch();
            batch.set(slot_a, heap.read(slot_b.0));
            batch.set(slot_b, heap.read(slot_a.0));
            batch.commit()
        }
        _ => {
            let mut batch = heap.batch();
            for slot in [slot_a, slot_b] {
                if heap.read(slot.0) == 0 {
                    // Full.
                    if batch.alloc(slot, size).is_err() {
                        return;
                    }
                } else {
                    batch.free(slot);
                }
            }
            batch.commit()
        }
    };
    assert!(matches!(result, Ok(()) | Err(Error::NoMemory)), "{result:?}");
    let ended = medium.steps();
    log_a.push(Done { began, ended, value: heap.read(slot_a.0) });
    log_b.push(Done { began, ended, value: heap.read(slot_b.0) });
}

fn crash<const F: bool>(model: Model, seed: u64, at: u64) -> u64 {
    let (medium, heap) = create::<F>(model, 4 << 20);
    let slots = &table(&heap, 8)[LEAVES..];
    let logs: Vec<Log> = slots.iter().map(|_| Mutex::new(vec![Done { began: 0, ended: 0, value: 0 }])).collect();
    let stop = medium.steps() + at;
    medium.stop_at(stop);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (medium, heap, logs) = (&medium, &heap, &logs);
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 16 + thread);
                (0..50).for_each(|_| act(medium, heap, slots, logs, &mut rng));
            });
        }
    });
    heap.check().unwrap();
    let Some(moment) = medium.stopped() else { return 0 };
    let mut opened = 0;
    for image in moment.images(40, &mut Rng::new(seed)) {
        let (found, _) = Heap::open_traced(Sim::<F>::from_image(&image), options(), &Typed).unwrap();
        found.check().unwrap();
        let mut owned = BTreeMap::new();
        owned.insert(found.read(found.root(b"table").unwrap().slot.0), 0);
        for (slot, log) in slots.iter().zip(&logs) {
            let value = found.read(slot.0);
            let log = log.lock().unwrap();
            let ended = log.iter().rfind(|done| done.ended <= stop).unwrap().value;
            let under_way = log.iter().find(|done| done.ended > stop && done.began < stop).map(|done| done.value);
            assert!(value == ended || Some(value) == under_way, "{slot:?} has {value:#x}, at {stop}: {log:x?}");
            if value != 0 {
                assert_eq!(owned.insert(value, slot.0), None, "two slots have {value:#x}");
            }
        }
        let mut objects = Vec::new();
        found.objects(|at, _| objects.push(at.0));
        assert_eq!(objects, owned.into_keys().collect::<Vec<_>>());
        opened += 1;
    }
    opened
}

#[test]
fn threads_crash_and_lose_no_ended_operation() {
    let mut rng = Rng::new(7);
    let opened: u64 = seeds(15, 40).map(|seed| crash::<true>(Model::Log, seed, 50 + rng.below(1500))).sum();
    assert!(opened > 150, "{opened} images");
    let opened: u64 = seeds(8, 20).map(|seed| crash::<true>(Model::Frames, seed, 50 + rng.below(1500))).sum();
    assert!(opened > 80, "{opened} images");
}

#[test]
fn threads_die_and_lose_no_ended_operation() {
    let mut rng = Rng::new(8);
    let opened: u64 = seeds(20, 60).map(|seed| crash::<false>(Model::Log, seed, 50 + rng.below(1500))).sum();
    assert!(opened > 10, "{opened} images");
    let opened: u64 = seeds(10, 30).map(|seed| crash::<false>(Model::Frames, seed, 50 + rng.below(1500))).sum();
    assert!(opened > 5, "{opened} images");
    let opened: u64 = seeds(20, 60).map(|seed| crash::<false>(Model::Gc, seed, 50 + rng.below(1000))).sum();
    assert!(opened > 6, "{opened} images");
}

/// Of two frees at once exactly one succeeds, and each object is served once.
fn free_twice<const F: bool>(model: Model) {
    let (_, heap) = create::<F>(model, 8 << 20);
    let slots = table(&heap, 8);
    let start = std::sync::Barrier::new(2);
    let free = |slot: Slot, how: usize| match how {
        0 => heap.free_from(slot),
        1 => {
            let mut batch = heap.batch();
            batch.free(slot);
            batch.commit()
        }
        _ => {
            let mut tx = heap.begin()?;
            tx.free(slot);
            tx.commit()
        }
    };
    for round in 0..300 {
        let size = [64, 64, 3000, 40_000][round % 4];
        slots.iter().for_each(|slot| _ = heap.alloc_to(*slot, size).unwrap());
        let freed = std::thread::scope(|scope| {
            let run = |how: usize| {
                start.wait();
                slots.iter().map(|slot| free(*slot, how)).collect::<Vec<_>>()
            };
            let other = scope.spawn(move || run(round / 4 % 3));
            (run(round % 2), other.join().unwrap())
        });
        for (one, two) in freed.0.iter().zip(&freed.1) {
            let refused = one.err().or(two.err());
            assert!(one.is_ok() != two.is_ok(), "round {round}: {one:?}, {two:?}");
            let known =
                matches!(refused, Some(Error::Null { .. } | Error::AlreadyFree { .. } | Error::NotAnObject { .. }));
            assert!(known, "round {round}: {refused:?}");
        }
    }
    heap.check().unwrap();
    assert!(slots.iter().all(|slot| heap.read(slot.0) == 0));
    assert_eq!(heap.stats().small + heap.stats().large, 1, "the table");
}

#[test]
fn of_two_frees_at_once_one_succeeds() {
    for model in [Model::Log, Model::Gc, Model::Frames] {
        free_twice::<true>(model);
        free_twice::<false>(model);
    }
}
