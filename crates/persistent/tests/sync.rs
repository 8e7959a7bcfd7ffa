//! Heaps with sync points, on the file system of the temporary folder.

use craton_persistent::{Durability, Error, FileError, HeapOptions, PersistentHeap, Promise, Slot};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn options() -> HeapOptions {
    HeapOptions::new().durability(Durability::SyncPoints).limit(1 << 30)
}

fn numbers(heap: &PersistentHeap) -> Vec<u64> {
    let at = heap.get(heap.root::<[u64]>("numbers").expect("the root")).expect("the root's pointer");
    if at.is_null() { Vec::new() } else { heap.values(at).expect("the numbers") }
}

fn open(path: &Path) -> PersistentHeap {
    options().open(path).expect("the heap opens").0
}

#[test]
fn a_heap_with_sync_points_comes_back_as_it_was_at_the_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    let heap = options().create(&path).expect("a new heap");
    assert_eq!(heap.promise(), Promise::PowerFailureAtSync);
    let slot: Slot<[u64]> = heap.add_root("numbers").expect("a root");
    heap.alloc_array_to(slot, &[1, 2, 3]).expect("room");
    heap.sync().expect("a sync point");
    heap.replace_array(slot, &[4; 10_000]).expect("room");
    drop(heap); // As in a crash.

    let heap = open(&path);
    assert_eq!(numbers(&heap), [1, 2, 3]);
    heap.check().expect("the heap is whole");
    heap.replace_array(slot, &[5; 10_000]).expect("room");
    heap.close().expect("a last sync point");
    assert!(!path.with_extension("heap.journal").exists(), "closed, it has no journal");

    let (heap, report) = options().open(&path).expect("the heap opens");
    assert!(report.clean);
    assert_eq!(numbers(&heap), [5; 10_000]);
}

#[test]
fn a_journal_is_not_left_behind_by_another_kind_of_opening() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    let heap = options().create(&path).expect("a new heap");
    let slot: Slot<[u64]> = heap.add_root("numbers").expect("a root");
    heap.alloc_array_to(slot, &[7]).expect("room");
    heap.sync().expect("a sync point");
    drop(heap);
    assert_eq!(PersistentHeap::open(&path).err(), Some(Error::HasJournal));
    let heap = open(&path);
    assert_eq!(numbers(&heap), [7], "the refusal changed nothing");
    heap.close().expect("a last sync point");

    let (heap, _) = PersistentHeap::open(&path).expect("closed, it opens in either way");
    assert_eq!(numbers(&heap), [7]);
    assert_eq!(heap.sync(), Err(Error::NoSyncPoints));
    assert_eq!(options().open(&path).err(), Some(Error::File(FileError::InUse)));
    heap.close().expect("an end");
}

#[test]
fn a_link_to_a_heap_finds_its_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, link) = (folder.path().join("a.heap"), folder.path().join("link"));
    let heap = options().create(&path).expect("a new heap");
    let slot: Slot<[u64]> = heap.add_root("numbers").expect("a root");
    heap.close().expect("a last sync point");
    std::os::unix::fs::symlink("a.heap", &link).expect("a link");
    let heap = open(&link);
    heap.alloc_array_to(slot, &[7]).expect("room");
    heap.sync().expect("a sync point");
    drop(heap);
    for name in [&path, &link] {
        assert_eq!(PersistentHeap::open(name).err(), Some(Error::HasJournal));
        assert_eq!(numbers(&open(name)), [7]);
    }
}

#[test]
fn a_journal_without_its_heap_is_not_taken_for_a_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, away) = (folder.path().join("a.heap"), folder.path().join("away"));
    let heap = options().create(&path).expect("a new heap");
    let slot: Slot<[u64]> = heap.add_root("numbers").expect("a root");
    heap.alloc_array_to(slot, &[7]).expect("room");
    heap.sync().expect("a sync point");
    drop(heap);
    std::fs::rename(&path, &away).expect("another name");
    for options in [options(), HeapOptions::new()] {
        assert_eq!(options.create(&path).err(), Some(Error::JournalAlone));
        assert_eq!(options.open_or_create(&path).err(), Some(Error::JournalAlone));
        assert_eq!(options.open(&path).err(), Some(Error::File(FileError::Missing)));
    }
    std::fs::rename(&away, &path).expect("its name");
    assert_eq!(numbers(&open(&path)), [7]);
}

#[test]
fn a_heap_without_its_journal_is_refused_in_each_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, other) = (folder.path().join("a.heap"), folder.path().join("b.heap"));
    for path in [&path, &other] {
        let heap = options().create(path).expect("a new heap");
        let slot: Slot<[u64]> = heap.add_root("numbers").expect("a root");
        heap.alloc_array_to(slot, &[7]).expect("room");
        heap.sync().expect("a sync point");
    }
    let (journal, away) = (folder.path().join("a.heap.journal"), folder.path().join("away"));
    std::fs::rename(&journal, &away).expect("another name");
    for options in [options(), HeapOptions::new()] {
        assert_eq!(options.open(&path).err(), Some(Error::File(FileError::NoJournal)));
    }
    std::fs::copy(folder.path().join("b.heap.journal"), &journal).expect("a copy");
    assert_eq!(options().open(&path).err(), Some(Error::File(FileError::OtherJournal)));
    std::fs::rename(&away, &journal).expect("its name");
    assert_eq!(numbers(&open(&path)), [7]);
}

#[test]
fn sync_points_of_threads_hold_whole_operations() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    let heap = options().create(&path).expect("a new heap");
    let slot: Slot<[u64]> = heap.add_root("numbers").expect("a root");
    heap.alloc_array_to(slot, &[0; 2]).expect("room");
    let (stop, values) = (AtomicBool::new(false), heap.get(slot).expect("the numbers"));
    let place = |i| heap.element(values, i).expect("an element");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1.. {
                heap.transaction(|tx| tx.set(place(0), &i).and_then(|()| tx.set(place(1), &i))).expect("a transaction");
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..20 {
            heap.sync().expect("a sync point");
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(heap);
    let found = numbers(&open(&path));
    assert!(found[0] == found[1], "half a transaction: {found:?}");
}
