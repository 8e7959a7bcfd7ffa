//! Bad input gives an error that names it, and a heap as before.

use craton_persistent::raw::Change;
use craton_persistent::{Error, FileError, HeapError, HeapOptions, PPtr, PersistentHeap, Slot, persist};
use std::fs;

persist! {
    struct Node { next: PPtr<Node>, value: u64 }
}

fn options() -> HeapOptions {
    HeapOptions::new().limit(256 << 20)
}

fn file(why: FileError) -> Option<Error> {
    Some(Error::File(why))
}

#[test]
fn files_that_hold_no_heap_are_refused_and_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    assert_eq!(options().open(&path).err(), file(FileError::Missing));
    assert_eq!(options().create(folder.path().join("no/such/folder")).err(), file(FileError::Missing));
    assert_eq!(options().open(folder.path()).err(), file(FileError::NotAFile));
    assert_eq!(options().open("a\0b").err(), Some(Error::Path));
    for (bytes, expected) in [
        (vec![], Error::File(FileError::Length(0))),
        (vec![1; 100], Error::File(FileError::Length(100))),
        (vec![0x20; 1 << 20], Error::Heap(HeapError::NotAHeap { found: 0x2020_2020_2020_2020 })),
    ] {
        fs::write(&path, &bytes).expect("a file");
        assert_eq!(options().open(&path).err(), Some(expected));
        assert_eq!(options().create(&path).err(), file(FileError::Exists));
        assert_eq!(fs::read(&path).expect("the file"), bytes);
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "nothing else is left behind");
    }
}

#[test]
fn a_heap_of_another_version_a_damaged_one_and_a_long_one_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    options().create(&path).and_then(PersistentHeap::close).expect("a new heap");
    let whole = fs::read(&path).expect("the file");
    let refused = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, &bytes).expect("a file");
        let error = options().open(&path).err();
        assert_eq!(fs::read(&path).expect("the file"), bytes, "the refusal changed nothing");
        error
    };
    let other = u64::from(whole[8] ^ 0x10);
    let version = refused(8);
    assert!(matches!(version, Some(Error::Heap(HeapError::Version { found, .. })) if u64::from(found) == other));
    assert!(matches!(refused(20), Some(Error::Heap(HeapError::Damaged { .. }))));
    fs::write(&path, &whole).expect("a file");
    assert!(matches!(options().limit(1 << 20).open(&path).err(), Some(Error::File(FileError::TooLong(_)))));
    options().open(&path).expect("it is whole");
}

#[test]
fn wrong_roots_slots_and_sizes_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    let heap = options().create(&path).expect("a new heap");
    assert_eq!(options().open(&path).err(), file(FileError::InUse));
    let list: Slot<Node> = heap.add_root("list").expect("a root");
    let node = heap.alloc_to(list, &Node { next: PPtr::NULL, value: 7 }).expect("room");
    let stats = heap.stats();

    let of_heap = |why| Some(Error::Heap(why));
    assert_eq!(heap.root::<Node>("lost").err(), of_heap(HeapError::NoRoot));
    assert_eq!(heap.root::<Node>("").err(), of_heap(HeapError::RootName { len: 0 }));
    assert!(matches!(heap.root::<u64>("list").err(), Some(Error::RootType { .. })));
    assert_eq!(heap.add_root::<Node>("list").err(), of_heap(HeapError::RootExists { slot: list.offset() }));
    assert_eq!(heap.remove_root("list").err(), of_heap(HeapError::RootInUse { slot: list.offset() }));
    assert_eq!(heap.free_from(node.field(Node::next)).err(), of_heap(HeapError::Null { slot: node.offset() }));
    assert_eq!(heap.get(PPtr::<Node>::NULL).err(), Some(Error::Null));
    assert_eq!(heap.get(PPtr::<Node>::NULL.field(Node::value)).err(), Some(Error::Null));

    let inner: Slot<u64> = heap.add_root("inner").expect("a root");
    heap.link(inner, node.field(Node::value)).expect("a pointer");
    let at = node.offset() + 8;
    assert_eq!(heap.free_from(inner).err(), of_heap(HeapError::NotAnObject { at }));
    assert_eq!(heap.get(inner).expect("the slot").offset(), at, "the slot is as before");

    let again: Slot<Node> = heap.add_root("again").expect("a root");
    heap.link(again, node).expect("a pointer");
    heap.free_from(again).expect("the first time");
    assert_eq!(heap.free_from(list).err(), of_heap(HeapError::AlreadyFree { at: node.offset() }));
    heap.alloc_to(again, &Node { next: PPtr::NULL, value: 8 }).expect("room");

    let mut batch = heap.batch();
    batch.free(again);
    batch.link(again, PPtr::NULL);
    assert_eq!(batch.commit().err(), of_heap(HeapError::Twice { at: again.offset() }));

    let texts: Slot<[u8]> = heap.add_root("texts").expect("a root");
    let text = heap.alloc_array_to(texts, b"abc").expect("room");
    assert_eq!(heap.element(text, 3).err(), Some(Error::Index { index: 3, len: 3 }));
    heap.free_from(texts).expect("an object");
    assert_eq!(heap.stats().small, stats.small);
    assert_eq!(heap.get(heap.get(again).expect("a root")).expect("a node").value, 8);
}

#[test]
fn a_full_heap_refuses_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let heap = options().most(4 << 20).create(folder.path().join("a.heap")).expect("a new heap");
    let list: Slot<[u64]> = heap.add_root("list").expect("a root");
    heap.alloc_array_to(list, &[1; 100]).expect("room");
    assert!(matches!(heap.replace_array(list, &vec![2; 1 << 20]), Err(Error::Heap(HeapError::TooLarge { .. }))));
    assert!(matches!(heap.raw().reserve(0), Err(Error::Heap(HeapError::NoSize))));
    let mut kept = Vec::new();
    let refused = loop {
        match heap.reserve_array(&[3u64; 8000]) {
            Ok(array) => kept.push(array),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Error::Heap(HeapError::NoMemory));
    assert!(kept.len() > 10, "{} arrays", kept.len());
    drop(kept);
    heap.replace_array(list, &[4; 8000]).expect("room again");
    assert_eq!(heap.values(heap.get(list).expect("the root")).expect("the numbers"), [4; 8000]);
    heap.check().expect("the heap is whole");
}

#[test]
fn transactions_beyond_the_heaps_lanes_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let heap = options().lanes(1).create(folder.path().join("a.heap")).expect("a new heap");
    let refused: Result<(), Error> = heap.transaction(|_| heap.transaction(|_| Ok(())));
    assert_eq!(refused, Err(Error::Heap(HeapError::TooManyTransactions)));
    heap.transaction(|_| Ok::<(), Error>(())).expect("the first has ended");
}

#[test]
fn a_panic_in_a_transaction_undoes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let heap = options().create(folder.path().join("a.heap")).expect("a new heap");
    let slot: Slot<u64> = heap.add_root("n").expect("a root");
    let n = heap.alloc_to(slot, &1).expect("room");
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        heap.transaction(|tx| -> Result<(), Error> {
            tx.set(n, &2)?;
            panic!("in the middle");
        })
    }));
    assert!(ended.is_err());
    assert_eq!(heap.get(n), Ok(1));
    heap.check().expect("the heap is whole");
}

/// Two heaps in new files of the folder.
fn two(folder: &tempfile::TempDir) -> [PersistentHeap; 2] {
    ["a.heap", "b.heap"].map(|name| options().create(folder.path().join(name)).expect("a new heap"))
}

#[test]
fn objects_reserved_in_another_heap_are_refused_and_free_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let [heap, other] = two(&folder);
    let slot: Slot<u64> = heap.add_root("slot").expect("a root");
    let second: Slot<u64> = heap.add_root("second").expect("a root");
    let old = heap.alloc_to(slot, &1).expect("room");
    let raw_slot = craton_persistent::raw::Slot(slot.offset());
    // Both heaps' next objects lie at the same place.
    let mine = heap.reserve(&2u64).expect("room");
    let before = [heap.stats().small, other.stats().small];

    let mut batch = heap.batch();
    batch.alloc(second, &3).expect("room");
    batch.publish(slot, other.reserve(&4u64).expect("room"));
    assert_eq!(batch.commit(), Err(Error::OtherHeap));
    let refused: Result<(), Error> = heap.transaction(|tx| {
        tx.alloc_to(second, &5)?;
        tx.set(old, &6)?;
        tx.publish(slot, other.reserve(&7u64)?);
        Ok(())
    });
    assert_eq!(refused, Err(Error::OtherHeap));
    for size in [16, 100_000] {
        let object = || other.raw().reserve(size).expect("room");
        assert_eq!(heap.raw().publish(raw_slot, object()), Err(Error::OtherHeap));
        assert_eq!(heap.raw().replace(raw_slot, object()), Err(Error::OtherHeap));
        let changes = vec![Change::Publish { slot: raw_slot, object: object() }];
        assert_eq!(heap.raw().commit(changes), Err(Error::OtherHeap));
        let mut tx = heap.raw().begin().expect("a transaction");
        assert_eq!(tx.publish(raw_slot, object()), Err(Error::OtherHeap));
        tx.commit().expect("an empty transaction");
    }
    assert_eq!(Error::OtherHeap.to_string(), "the object was reserved in another heap");

    assert_eq!((heap.get(slot), heap.get(old), heap.get(second)), (Ok(old), Ok(1), Ok(PPtr::NULL)));
    drop(mine);
    for (heap, small) in [&heap, &other].into_iter().zip(before) {
        heap.check().expect("the heap is whole");
        assert_eq!(heap.stats().small, small);
    }
    // All places are free again: they serve, once each.
    for heap in [heap, other] {
        let slots: Vec<Slot<u64>> = (0..200).map(|i| heap.add_root(&format!("{i}")).expect("a root")).collect();
        let places = slots.iter().map(|slot| heap.alloc_to(*slot, &8).expect("room").offset());
        let places: std::collections::BTreeSet<u64> = places.collect();
        assert_eq!(places.len(), slots.len());
        heap.check().expect("the heap is whole");
        heap.close().expect("an end");
    }
}

persist! {
    struct Named { next: PPtr<Named>, name: PPtr<[u8]>, marks: PPtr<[u32]> }
}

#[test]
fn a_transaction_makes_texts_and_arrays() {
    let folder = tempfile::tempdir().expect("a folder");
    let heap = options().create(folder.path().join("a.heap")).expect("a new heap");
    let list: Slot<Named> = heap.add_root("list").expect("a root");
    let push = |name: &str, fails: bool| {
        heap.transaction(|tx| {
            let value = Named { next: heap.get(list)?, name: PPtr::NULL, marks: PPtr::NULL };
            let node = tx.alloc_to(list, &value)?;
            tx.publish(node.field(Named::name), heap.reserve_array(name.as_bytes())?);
            tx.alloc_array_to(node.field(Named::marks), &[1u32, 2, 3])?;
            if fails { Err(Error::Null) } else { Ok(()) }
        })
    };
    push("first", false).expect("a transaction");
    assert_eq!(push("undone", true), Err(Error::Null));
    push("second", false).expect("a transaction");
    let (mut names, mut at) = (Vec::new(), heap.get(list).expect("the root"));
    while !at.is_null() {
        let node = heap.get(at).expect("a node");
        assert_eq!(heap.values(node.marks), Ok(vec![1, 2, 3]));
        names.push(heap.values(node.name).expect("a name"));
        at = node.next;
    }
    assert_eq!(names, [b"second".as_slice(), b"first"]);
    heap.check().expect("the heap is whole");
    assert_eq!(heap.stats().small, 6);
    let mut batch = heap.batch();
    batch.free(heap.get(list).expect("the root").field(Named::marks));
    batch.commit().expect("a batch");
    let mut batch = heap.batch();
    batch.alloc_array(heap.get(list).expect("the root").field(Named::marks), &[4u32; 2]).expect("room");
    batch.commit().expect("a batch");
    let node = heap.get(heap.get(list).expect("the root")).expect("a node");
    assert_eq!(heap.values(node.marks), Ok(vec![4, 4]));
}
