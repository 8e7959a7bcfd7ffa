//! A crash after any store, flush or fence of a typed call leaves the values before or after it.

use crate::media::AnyHeap;
use crate::raw::RawHeap;
use crate::{Error, PPtr, PersistentHeap, Promise, Slot, persist};
use craton_pheap::{Config, Heap, Options};
use craton_sim::{Image, Rng, SimMedium};

persist! {
    struct Node { next: PPtr<Node>, text: PPtr<[u8]>, value: u32, count: u64 }
}

fn config() -> Config {
    Config { lanes: 2, half: 16, stripes: 2, uuid: 7, ..Config::default() }
}

fn options() -> Options {
    Options { arenas: 1, markers: 1, ..Options::default() }
}

fn typed(heap: Heap<SimMedium>) -> PersistentHeap {
    PersistentHeap::new(RawHeap::of(AnyHeap::Sim(heap), Promise::PowerFailure, 0).expect("a heap of a simulation"))
}

fn create() -> (SimMedium, PersistentHeap) {
    let medium = SimMedium::new(1 << 20, 8 << 20);
    let heap = typed(Heap::create(medium.clone(), config(), options()).expect("a new heap"));
    (medium, heap)
}

type Contents = Vec<(u32, u64, Vec<u8>)>;

fn contents(heap: &PersistentHeap) -> Result<Contents, Error> {
    let mut found = Vec::new();
    let mut at = heap.get(heap.root::<Node>("list")?)?;
    while !at.is_null() {
        let node = heap.get(at)?;
        let text = if node.text.is_null() { Vec::new() } else { heap.values(node.text)? };
        found.push((node.value, node.count, text));
        at = node.next;
    }
    Ok(found)
}

fn open(image: &Image) -> Contents {
    let (heap, _) = Heap::open(SimMedium::from_image(image), options()).expect("every image opens");
    let heap = typed(heap);
    heap.check().expect("every image is whole");
    contents(&heap).expect("every image has the root")
}

fn crash(
    medium: &SimMedium,
    heap: &PersistentHeap,
    rng: &mut Rng,
    operation: impl FnOnce(&PersistentHeap),
) -> Contents {
    let before = contents(heap).expect("the list can be read");
    medium.record();
    operation(heap);
    let moments = medium.take_moments();
    let after = contents(heap).expect("the list can be read");
    let mut opened = 0;
    for moment in &moments {
        for image in moment.new_images(24, rng) {
            let found = open(&image);
            assert!(found == before || found == after, "{found:?} is neither {before:?} nor {after:?}");
            opened += 1;
        }
    }
    assert!(opened >= moments.len().min(4), "{opened} images of {} moments", moments.len());
    // Durable on return.
    assert_eq!(open(&medium.now().durable()), after);
    after
}

fn push(heap: &PersistentHeap, list: Slot<Node>, value: u32) {
    let node = Node { next: heap.get(list).expect("the root"), text: PPtr::NULL, value, count: 0 };
    heap.alloc_to(list, &node).expect("room for a node");
}

#[test]
fn every_crash_of_a_typed_call_leaves_all_of_it_or_nothing() {
    let ((medium, heap), mut rng) = (create(), Rng::new(22));
    let list: Slot<Node> = heap.add_root("list").expect("a root");
    let first = || heap.get(list).expect("the root");
    crash(&medium, &heap, &mut rng, |heap| push(heap, list, 1));
    crash(&medium, &heap, &mut rng, |heap| push(heap, list, 2));
    let after = crash(&medium, &heap, &mut rng, |heap| {
        heap.alloc_array_to(first().field(Node::text), b"a text of some bytes").map(drop).expect("room for a text");
    });
    assert_eq!(after, [(2, 0, b"a text of some bytes".to_vec()), (1, 0, Vec::new())]);
    crash(&medium, &heap, &mut rng, |heap| {
        heap.replace_array(first().field(Node::text), b"another").map(drop).expect("room for a text");
    });
    crash(&medium, &heap, &mut rng, |heap| heap.set(first().field(Node::count), &5).expect("a value of a word"));
    let after = crash(&medium, &heap, &mut rng, |heap| {
        let mut batch = heap.batch();
        let node = Node { next: first(), text: PPtr::NULL, value: 3, count: 0 };
        let node = batch.alloc(list, &node).expect("room for a node");
        batch.publish(node.field(Node::text), heap.reserve_array(b"within").expect("room for a text"));
        batch.commit().expect("a batch of two");
    });
    assert_eq!(after[0], (3, 0, b"within".to_vec()));
    let after = crash(&medium, &heap, &mut rng, |heap| {
        let done: Result<(), Error> = heap.transaction(|tx| {
            let (at, node) = (first(), heap.get(first())?);
            tx.set(at.field(Node::value), &30)?;
            tx.set(at.field(Node::count), &300)?;
            tx.free_from(at.field(Node::text));
            tx.alloc_to(node.next.field(Node::next), &Node { next: PPtr::NULL, text: PPtr::NULL, value: 4, count: 0 })?;
            Ok(())
        });
        done.expect("a transaction");
    });
    assert_eq!(after, [(30, 300, Vec::new()), (2, 5, b"another".to_vec()), (4, 0, Vec::new())]);
}

#[test]
fn a_crash_in_a_refused_transaction_leaves_nothing_of_it() {
    let ((medium, heap), mut rng) = (create(), Rng::new(23));
    let list: Slot<Node> = heap.add_root("list").expect("a root");
    push(&heap, list, 1);
    let before = contents(&heap);
    let after = crash(&medium, &heap, &mut rng, |heap| {
        let refused: Result<(), Error> = heap.transaction(|tx| {
            tx.set(heap.get(list)?.field(Node::value), &99)?;
            tx.alloc_to(list, &Node { next: PPtr::NULL, text: PPtr::NULL, value: 98, count: 0 })?;
            Err(Error::Null)
        });
        assert_eq!(refused, Err(Error::Null));
    });
    assert_eq!(Ok(after), before);
    heap.check().expect("the object of the transaction is free again");
}

#[test]
fn a_crash_frees_reserved_objects() {
    let (medium, heap) = create();
    let list: Slot<Node> = heap.add_root("list").expect("a root");
    let small = heap.stats().small;
    let reserved = heap.reserve(&7u64).expect("room");
    let (after, _) = Heap::open(SimMedium::from_image(&medium.now().durable()), options()).expect("it opens");
    assert_eq!(after.stats().small, small);
    drop(reserved);
    heap.check().expect("dropped, it is free");
    push(&heap, list, 1);
    assert_eq!(heap.stats().small, small + 1);
}
