use crate::{Durability, Error, HeapOptions, Model, PPtr, PersistentHeap, Slot};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const ARRAYS: usize = 12;
const NUMBERS: usize = 150_000;

/// Pointers to numbers of arrays that are free, from the first to the last.
fn free_numbers(heap: &PersistentHeap) -> Vec<PPtr<u64>> {
    let mut stale = Vec::new();
    let slots: Vec<Slot<[u64]>> = (0..ARRAYS).map(|i| heap.add_root(&format!("{i}")).expect("a root")).collect();
    for slot in &slots {
        let array = heap.alloc_array_to(*slot, &vec![7; NUMBERS]).expect("room");
        let places = (0..NUMBERS as u64).step_by(500).map(|i| heap.element(array, i).expect("a number"));
        stale.extend(places);
    }
    slots.iter().for_each(|slot| heap.free_from(*slot).expect("an array"));
    stale
}

/// Their values, which mean nothing.
fn read(heap: &PersistentHeap, places: &[PPtr<u64>]) {
    assert!(places.iter().all(|at| heap.get(*at).is_ok()), "a place outside of the heap");
}

fn file_len(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the file").len()
}

/// Threads read and write free memory while another returns it to the system.
fn free_numbers_can_be_read(options: HeapOptions) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    let heap = options.limit(256 << 20).create(&path).expect("a new heap");
    let (stale, stop) = (free_numbers(&heap), AtomicBool::new(false));
    let (len, in_file) = (heap.raw().len(), file_len(&path));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    read(&heap, &stale);
                }
            });
        }
        for now in (0..30_000).step_by(50) {
            heap.raw().maintain_at(now);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!((heap.raw().len(), file_len(&path)), (len, in_file));
    read(&heap, &stale);
    heap.check().expect("the heap is whole");
    heap.close().expect("an end");
    assert!(file_len(&path) < len / 2, "{} bytes of {len}", file_len(&path));

    let (heap, report) = options.open(&path).expect("it opens");
    assert!(report.clean);
    let outside = *stale.last().expect("a pointer");
    assert!(matches!(heap.get(outside), Err(Error::Heap(craton_pheap::Error::OutOfRange { .. }))));
    heap.check().expect("the heap is whole");
}

#[test]
fn free_memory_can_be_read_while_it_returns_to_the_system() {
    for model in [Model::Log, Model::Gc, Model::Frames] {
        let options = HeapOptions::new().model(model).most(64 << 20);
        free_numbers_can_be_read(options);
        free_numbers_can_be_read(options.durability(Durability::NoFlush));
        free_numbers_can_be_read(options.durability(Durability::SyncPoints));
    }
}
