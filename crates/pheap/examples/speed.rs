//! Nanoseconds of operations on words of DRAM, without write-back: `speed [objects] [rounds]`.

use craton_base::{LINE_BYTES, Line, Medium, Space, SpaceError};
use craton_pheap::{Config, Heap, Model, Offset, Options, Slot};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

struct Words(Vec<AtomicU64>);

impl Medium for Words {
    const FLUSHES: bool = false;

    #[inline]
    fn len(&self) -> u64 {
        self.0.len() as u64 * 8
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        &self.0[(at / 8) as usize]
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        self.word(at).store(value, Ordering::Release);
    }

    #[inline]
    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        // A locked instruction each, as a mapped file has.
        let old = if set != 0 { self.word(at).fetch_or(set, Ordering::AcqRel) } else { 0 };
        if clear != 0 { self.word(at).fetch_and(!clear, Ordering::AcqRel) } else { old }
    }

    #[inline]
    fn store_line(&self, at: u64, line: &Line) {
        let words = &self.0[(at / 8) as usize..][..(LINE_BYTES / 8) as usize];
        words.iter().zip(line).for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
    }

    fn flush(&self, _: u64) {}

    fn fence(&self) {}
}

impl Space for Words {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        if len <= self.len() { Ok(()) } else { Err(SpaceError::Full) }
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), SpaceError> {
        Ok(())
    }

    fn limit(&self) -> u64 {
        self.len()
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let objects = arguments.next().unwrap_or(100_000);
    let rounds = arguments.next().unwrap_or(20);
    for (name, model, stripes) in [("log", Model::Log, 1), ("log, 6 stripes", Model::Log, 6), ("gc", Model::Gc, 1)] {
        let words = (0..(256u64 << 20) / 8).map(|_| AtomicU64::new(0)).collect();
        let heap = Heap::create(Words(words), Config { model, stripes, ..Config::default() }, Options::default());
        let heap = heap.expect("a heap");
        let root = heap.add_root(b"slots", 0).expect("a root");
        let table = heap.alloc_with(root, objects * 8, |heap, at| (0..objects).for_each(|i| heap.write(at, 8 * i, 0)));
        let table = table.expect("a table").0;
        let slot = |i: u64| Slot(table + 8 * i);
        let start = Instant::now();
        for _ in 0..rounds {
            for i in 0..objects {
                let at = heap.alloc_to(slot(i), 64).expect("an object");
                heap.write(at, 0, i);
            }
            for i in 0..objects {
                heap.free_from(slot(i)).expect("an object");
            }
        }
        let all = start.elapsed().as_secs_f64() / (2 * rounds * objects) as f64;
        let start = Instant::now();
        for i in 0..rounds * objects {
            heap.alloc_to(slot(i % 1000), 64 + i % 8 * 16).expect("an object");
            heap.free_from(slot(i % 1000)).expect("an object");
        }
        let pair = start.elapsed().as_secs_f64() / (2 * rounds * objects) as f64;
        let start = Instant::now();
        for i in (0..rounds * objects).step_by(8) {
            let at = i % objects / 8 * 8;
            let parts: [_; 8] = std::array::from_fn(|k| (slot(at + k as u64), heap.reserve(64).expect("an object")));
            if heap.read(slot(at).0) != 0 {
                (0..8).for_each(|k| heap.free_from(slot(at + k)).expect("an object"));
            }
            heap.publish(parts).expect("objects");
        }
        let batch = start.elapsed().as_secs_f64() / (rounds * objects) as f64;
        let [all, pair, batch] = [all, pair, batch].map(|s| s * 1e9);
        println!(
            "{name}: threadtest {all:.1} ns an operation, pairs {pair:.1}, publish of 8 and free {batch:.1} an object"
        );
        let _ = Offset(table);
    }
}
