use craton_persistent::{HeapOptions, Model, PPtr, PersistentHeap, Slot, persist};

persist! {
    struct Node { next: PPtr<Node>, text: PPtr<[u8]>, value: u64 }
}

fn push(heap: &PersistentHeap, list: Slot<Node>, value: u64) {
    let mut batch = heap.batch();
    let node = Node { next: heap.get(list).expect("the root"), text: PPtr::NULL, value };
    let node = batch.alloc(list, &node).expect("room");
    let text = heap.reserve_array(&value.to_string().into_bytes()).expect("room");
    batch.publish(node.field(Node::text), text);
    batch.commit().expect("a batch");
}

fn check(heap: &PersistentHeap, expected: impl Iterator<Item = u64>) {
    let mut at = heap.get(heap.root::<Node>("list").expect("the root")).expect("the root's pointer");
    for value in expected {
        let node = heap.get(at).expect("a node");
        assert_eq!(node.value, value);
        assert_eq!(heap.values(node.text).expect("a text"), value.to_string().into_bytes());
        at = node.next;
    }
    assert!(at.is_null());
    heap.check().expect("the heap is whole");
}

fn lists_come_back(model: Model) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.heap");
    let options = HeapOptions::new().limit(256 << 20).model(model);
    let heap = options.create(&path).expect("a new heap");
    let list: Slot<Node> = heap.add_root("list").expect("a root");
    (0..200).for_each(|value| push(&heap, list, value));
    let (large, lost): (Slot<[u8]>, Slot<u64>) =
        (heap.add_root("large").expect("a root"), heap.add_root("lost").expect("a root"));
    heap.alloc_array_to(large, &[7; 300_000]).expect("room");
    // Free when nothing reaches it, or for as long as the log holds it.
    heap.alloc_to(lost, &1).expect("room");
    heap.free_from(lost).expect("an object");
    drop(heap);

    let (heap, report) = options.open(&path).expect("it opens");
    assert!(!report.clean);
    assert_eq!((heap.stats().small, heap.stats().large), (400, 1), "{model:?}");
    check(&heap, (0..200).rev());
    assert_eq!(heap.values(heap.get(large).expect("the root")).expect("an array"), [7; 300_000]);
    heap.free_from(large).expect("an object");
    for _ in 0..50 {
        let node = heap.get(heap.get(list).expect("the root")).expect("a node");
        let text = heap.get(list).expect("the root").field(Node::text);
        let mut batch = heap.batch();
        batch.free(text);
        batch.free_and_link(list, node.next);
        batch.commit().expect("a batch");
    }
    heap.close().expect("an end");
    let (heap, report) = options.open(&path).expect("it opens");
    assert!(report.clean);
    check(&heap, (0..150).rev());
    assert_eq!((heap.stats().small, heap.stats().large), (300, 0), "{model:?}");
}

#[test]
fn lists_of_a_log_heap_come_back() {
    lists_come_back(Model::Log);
}

#[test]
fn lists_of_a_gc_heap_come_back() {
    lists_come_back(Model::Gc);
}

#[test]
fn lists_of_a_frames_heap_come_back() {
    lists_come_back(Model::Frames);
}
