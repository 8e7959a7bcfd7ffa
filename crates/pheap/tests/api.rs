//! Effects and refusals of each call.

use crate::common::{create, options, slots_of, table};
use craton_base::Medium;
use craton_pheap::{Config, Error, Heap, Model, Offset, Slot};
use craton_sim::{SimCached, SimMedium};

fn reopen<const F: bool>(heap: Heap<craton_sim::SimPersistent<F>>) -> Heap<craton_sim::SimPersistent<F>> {
    let medium = heap.close();
    let (heap, report) = Heap::open(medium, options()).unwrap();
    assert!(report.clean);
    heap.check().unwrap();
    heap
}

fn objects_survive<const F: bool>(model: Model) {
    let (_, heap) = create::<F>(model, 8 << 20);
    let slots = table(&heap, 64);
    let sizes = [1, 16, 17, 100, 1000, 4000, 16_128, 16_129, 70_000];
    for (i, slot) in slots.iter().enumerate() {
        let at = heap.alloc_to(*slot, sizes[i % sizes.len()]).unwrap();
        assert!(heap.size_of(at).unwrap() >= sizes[i % sizes.len()]);
        heap.write(at, 0, i as u64);
    }
    heap.check().unwrap();
    let heap = reopen(heap);
    let root = heap.root(b"table").unwrap();
    assert_eq!((root.tag, root.name()), (1, b"table".as_slice()));
    let slots = slots_of(Offset(heap.read(root.slot.0)), 64);
    for (i, slot) in slots.iter().enumerate() {
        assert_eq!(heap.read(heap.read(slot.0)), i as u64);
        heap.free_from(*slot).unwrap();
        assert_eq!(heap.free_from(*slot), Err(Error::Null { slot: slot.0 }));
    }
    heap.check().unwrap();
    heap.free_from(root.slot).unwrap();
    let heap = reopen(heap);
    let stats = heap.stats();
    assert_eq!((stats.small, stats.large), (0, 0));
    heap.remove_root(b"table").unwrap();
    assert_eq!(heap.root(b"table"), Err(Error::NoRoot));
}

#[test]
fn objects_survive_a_clean_close() {
    for model in [Model::Log, Model::Gc, Model::Frames] {
        objects_survive::<true>(model);
        objects_survive::<false>(model);
    }
}

#[test]
fn a_wrong_request_changes_nothing() {
    [Model::Log, Model::Frames].into_iter().for_each(refuse_requests);
}

fn refuse_requests(model: Model) {
    let (_, heap) = create::<true>(model, 8 << 20);
    let slots = table(&heap, 4);
    let at = heap.alloc_to(slots[0], 100).unwrap();
    let big = heap.alloc_to(slots[1], 100_000).unwrap();
    let before = heap.stats();
    assert_eq!(heap.alloc_to(slots[2], 0), Err(Error::NoSize));
    assert!(matches!(heap.alloc_to(slots[2], u64::MAX), Err(Error::TooLarge { size: u64::MAX, .. })));
    assert_eq!(heap.alloc_to(slots[2], (8 << 20) - (1 << 17) - 65536), Err(Error::NoMemory));
    for slot in [0, 8, 4104, at.0 + 4, 64 << 20, u64::MAX - 7] {
        assert_eq!(heap.alloc_to(Slot(slot), 16), Err(Error::NotASlot { at: slot }));
        assert_eq!(heap.free_from(Slot(slot)), Err(Error::NotASlot { at: slot }));
    }
    assert_eq!(heap.free_from(slots[2]), Err(Error::Null { slot: slots[2].0 }));
    for wrong in
        [1, 4096, at.0 + 16, at.0 - 1, at.0 / 65536 * 65536, big.0 + 4096, big.0 + 8, 7 << 20, 1 << 50, u64::MAX]
    {
        heap.write(Offset(slots[3].0), 0, wrong);
        assert_eq!(heap.free_from(slots[3]), Err(Error::NotAnObject { at: wrong }), "{wrong:#x}");
        assert!(heap.size_of(Offset(wrong)).is_err());
    }
    heap.write(Offset(slots[3].0), 0, at.0);
    heap.free_from(slots[0]).unwrap();
    assert_eq!(heap.free_from(slots[3]), Err(Error::AlreadyFree { at: at.0 }));
    heap.check().unwrap();
    assert_eq!(heap.stats().small, before.small - 1);
    assert_eq!(heap.add_root(b"table", 1), Err(Error::RootExists { slot: heap.root(b"table").unwrap().slot.0 }));
    assert_eq!(heap.add_root(b"", 1), Err(Error::RootName { len: 0 }));
    assert_eq!(heap.add_root(&[b'x'; 40], 1), Err(Error::RootName { len: 40 }));
    assert!(matches!(heap.remove_root(b"table"), Err(Error::RootInUse { .. })));
}

#[test]
fn what_is_no_heap_is_refused() {
    assert!(matches!(Heap::open(SimMedium::new(4096, 4096), options()), Err(Error::Truncated { .. })));
    let empty = SimMedium::new(1 << 20, 1 << 20);
    assert!(matches!(Heap::open(empty, options()), Err(Error::NotAHeap { found: 0 })));
    let (medium, heap) = create::<false>(Model::Log, 8 << 20);
    heap.close();
    let image = medium.now().seen();
    for (word, what) in [(1u64, "version"), (3, "uuid"), (5, "lanes"), (6, "created")] {
        let mut image = image.clone();
        image.set_word(word * 8, image.word(word * 8) ^ 4);
        let error = Heap::open(SimCached::from_image(&image), options()).err();
        assert!(matches!(error, Some(Error::Version { .. } | Error::Damaged { .. })), "{what}: {error:?}");
    }
    let mut short = image.clone();
    short.set_len(1 << 16);
    assert!(matches!(Heap::open(SimCached::from_image(&short), options()), Err(Error::Truncated { .. })));
}

#[test]
fn threads_keep_lanes_and_leave_them() {
    let (_, heap) = create::<true>(Model::Log, 32 << 20);
    let slots = table(&heap, 64);
    for round in 0..4 {
        std::thread::scope(|scope| {
            for slots in slots.chunks(16) {
                let heap = &heap;
                scope.spawn(move || {
                    for step in 0..40 {
                        let slot = slots[step % 16];
                        if heap.read(slot.0) == 0 {
                            heap.alloc_to(slot, 16 << (step % 11)).unwrap();
                        } else {
                            heap.free_from(slot).unwrap();
                        }
                    }
                });
            }
        });
        heap.check().unwrap();
        let mut live: Vec<u64> = slots.iter().map(|slot| heap.read(slot.0)).filter(|at| *at != 0).collect();
        live.push(heap.read(heap.root(b"table").unwrap().slot.0));
        live.sort_unstable();
        let mut found = Vec::new();
        heap.objects(|at, _| found.push(at.0));
        assert_eq!(live, found, "round {round}");
    }
    assert!(heap.stats().bytes < 16 << 20, "{}", heap.stats().bytes);
}

#[test]
fn rings_take_at_most_an_eighth_of_a_heap_if_they_can() {
    let halves = [0, 4 << 20, 8 << 20, 31 << 20, 32 << 20, 1 << 40].map(|bytes| Config::half_for(64, bytes));
    assert_eq!(halves, [8, 64, 128, 256, 512, 512]);
    assert_eq!(Config::half_for(1, 1 << 20), 512);
}

/// Its file has the same length while the heap is open, and less once it is closed.
fn keeps_its_length<const F: bool>(model: Model, keeps: bool) {
    let (medium, heap) = create::<F>(model, 64 << 20);
    if keeps {
        heap.keep_length();
    }
    let slots = table(&heap, 4);
    slots.iter().for_each(|slot| {
        heap.alloc_to(*slot, 6 << 20).unwrap();
    });
    let len = medium.len();
    slots.iter().for_each(|slot| heap.free_from(*slot).unwrap());
    heap.settle();
    for now in (0..60_000).step_by(50) {
        heap.maintain(now);
        assert!(!keeps || medium.len() == len, "{} bytes of {len} after {now} ms", medium.len());
    }
    if !keeps {
        assert!(medium.len() < len / 2, "{} bytes of {len}", medium.len());
    }
    heap.check().unwrap();
    let heap = reopen(heap);
    assert!(medium.len() < len / 2, "{} bytes of {len} when closed", medium.len());
    let slots = slots_of(Offset(heap.read(heap.root(b"table").unwrap().slot.0)), 4);
    slots.iter().for_each(|slot| {
        heap.alloc_to(*slot, 6 << 20).unwrap();
    });
    heap.check().unwrap();
}

#[test]
fn a_heap_that_keeps_its_length_is_cut_when_it_is_closed() {
    for model in [Model::Log, Model::Gc, Model::Frames] {
        for keeps in [false, true] {
            keeps_its_length::<true>(model, keeps);
            keeps_its_length::<false>(model, keeps);
        }
    }
}
