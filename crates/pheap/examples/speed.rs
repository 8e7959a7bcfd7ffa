//! Nanoseconds of operations on a new mapped file: `speed FILE [objects] [rounds] [flush|none]`.

use craton_base::{Medium, Space};
use craton_os::PersistentFile;
use craton_os::persistent_file::{FileOptions, UseMedium, WriteBackChoice};
use craton_pheap::{Config, Heap, Model, Options, Slot};
use std::ffi::CString;
use std::time::Instant;

struct Run {
    name: String,
    config: Config,
    objects: u64,
    rounds: u64,
}

impl UseMedium for Run {
    type Output = ();

    fn call<M: Medium + Space + 'static>(self, medium: M) {
        let Self { name, config, objects, rounds } = self;
        let heap = Heap::create(medium, config, Options::default()).expect("a heap");
        let root = heap.add_root(b"slots", 0).expect("a root");
        let table = heap.alloc_with(root, objects * 8, |heap, at| (0..objects).for_each(|i| heap.write(at, 8 * i, 0)));
        let table = table.expect("a table").0;
        let slot = |i: u64| Slot(table + 8 * i);
        let each = |start: Instant, operations: u64| start.elapsed().as_secs_f64() * 1e9 / operations as f64;
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
        let all = each(start, 2 * rounds * objects);
        let start = Instant::now();
        for i in 0..rounds * objects {
            heap.alloc_to(slot(i % 1000), 64 + i % 8 * 16).expect("an object");
            heap.free_from(slot(i % 1000)).expect("an object");
        }
        let pair = each(start, 2 * rounds * objects);
        let mut publish = 0.0;
        for round in 0..rounds * objects / 800 {
            let start = Instant::now();
            for group in 0..100 {
                let at = (round + group * 8) % (objects - 8);
                let mut batch = heap.batch();
                for k in 0..8 {
                    batch.alloc(slot(at / 8 * 8 + k), 64).expect("an object");
                }
                batch.commit().expect("objects");
            }
            publish += start.elapsed().as_secs_f64() * 1e9;
            for group in 0..100 {
                let at = (round + group * 8) % (objects - 8);
                (0..8).for_each(|k| heap.free_from(slot(at / 8 * 8 + k)).expect("an object"));
            }
        }
        let publish = publish / (rounds * objects) as f64;
        println!("{name}: threadtest {all:.1} ns an operation, pairs {pair:.1}, batch of 8 {publish:.1} an object");
        heap.close();
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a file");
    let path = CString::new(file.as_str()).expect("a path");
    let number = |text: Option<String>, otherwise: u64| text.map_or(otherwise, |a| a.parse().expect("a number"));
    let objects = number(arguments.next(), 100_000);
    let rounds = number(arguments.next(), 10);
    let choice = arguments.next().unwrap_or_else(|| "none".to_owned());
    let choice = WriteBackChoice::parse(choice.as_bytes()).expect("flush or none");
    for (name, model, stripes) in [("log", Model::Log, 1), ("log, 6 stripes", Model::Log, 6), ("gc", Model::Gc, 1)] {
        let _ = std::fs::remove_file(&file);
        let medium = PersistentFile::create(&path, 1 << 20, FileOptions::new(1 << 32)).expect("a file");
        let config = Config { model, stripes, ..Config::default() };
        let run = Run { name: name.to_owned(), config, objects, rounds };
        medium.with_medium(choice, run).expect("a medium");
    }
    let _ = std::fs::remove_file(&file);
}
