//! Measures the milliseconds to open a heap that was not closed: `recovery FILE [nodes]`.

use craton_base::{Medium, Space};
use craton_os::PersistentFile;
use craton_os::persistent_file::{FileOptions, UseMedium, WriteBackChoice};
use craton_pheap::{Config, Heap, Model, Options, Slot};
use std::ffi::CString;
use std::time::Instant;

struct Make(Model, u64);

impl UseMedium for Make {
    type Output = ();

    fn call<M: Medium + Space + 'static>(self, medium: M) {
        let Self(model, nodes) = self;
        let heap = Heap::create(medium, Config { model, ..Config::default() }, Options::default()).expect("a heap");
        let mut slot = heap.add_root(b"list", 0).expect("a root");
        for i in 0..nodes {
            let at = heap.alloc_to(slot, 64 + i % 5 * 16).expect("a node");
            heap.write(at, 0, 0);
            slot = Slot(at.0);
        }
    }
}

struct Open;

impl UseMedium for Open {
    type Output = ();

    fn call<M: Medium + Space + 'static>(self, medium: M) {
        let start = Instant::now();
        // Kept until the clock is read: the drop unmaps the file.
        let (_heap, report) = Heap::open(medium, Options::default()).expect("a heap");
        let ms = start.elapsed().as_secs_f64() * 1e3;
        println!(
            "opened in {ms:.2} ms: {} small objects in {} slabs, clean {}",
            report.small, report.slabs, report.clean
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a file");
    let nodes = arguments.next().map_or(1_000_000, |n| n.parse().expect("a number"));
    let path = CString::new(file.as_str()).expect("a path");
    for model in [Model::Log, Model::Gc] {
        let _ = std::fs::remove_file(&file);
        let medium = PersistentFile::create(&path, 1 << 20, FileOptions::new(1 << 32)).expect("a file");
        medium.with_medium(WriteBackChoice::None, Make(model, nodes)).expect("a heap");
        for _ in 0..3 {
            let medium = PersistentFile::open(&path, FileOptions::new(1 << 32)).expect("the file");
            print!("{model:?}: ");
            medium.with_medium(WriteBackChoice::None, Open).expect("a heap");
        }
    }
    let _ = std::fs::remove_file(&file);
}
