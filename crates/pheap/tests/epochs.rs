use crate::common::{Sim, config, options, table};
use craton_base::atomic::AtomicU64;
use craton_base::{Line, Medium, Space, SpaceError};
use craton_pheap::{Heap, Model};
use craton_sim::SimPersistent;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The next `allocate` reports its begin, and waits.
struct Gate {
    inner: Sim<true>,
    next: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Medium for Gate {
    const FLUSHES: bool = true;

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        self.inner.word(at)
    }

    fn store(&self, at: u64, value: u64) {
        self.inner.store(at, value);
    }

    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        self.inner.update(at, set, clear)
    }

    fn store_line(&self, at: u64, line: &Line) {
        self.inner.store_line(at, line);
    }

    fn flush(&self, at: u64) {
        self.inner.flush(at);
    }

    fn fence(&self) {
        self.inner.fence();
    }
}

impl Space for Gate {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        self.inner.resize(len)
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        self.inner.discard(at, len)
    }

    fn allocate(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        let next = self.next.lock().unwrap().take();
        if let Some((begun, go)) = next {
            begun.send(()).unwrap();
            go.recv().unwrap();
        }
        self.inner.allocate(at, len)
    }

    fn limit(&self) -> u64 {
        self.inner.limit()
    }
}

/// One thread waits in a refill, another ends the epoch, and a third makes a slab in the new one.
/// The first then allocates from that slab.
#[test]
fn an_operation_joins_the_epoch_of_what_it_takes() {
    let medium: Sim<true> = SimPersistent::new(1 << 16, 4 << 20);
    let gate = Gate { inner: medium.clone(), next: Mutex::new(None) };
    let heap = Heap::create(gate, config(Model::Log), options()).unwrap();
    let slots = table(&heap, 4);
    let (heap, slots) = (&heap, &slots);
    let (begun, has_begun) = channel();
    let (go, may_go) = channel();
    *heap.medium().next.lock().unwrap() = Some((begun, may_go));
    std::thread::scope(|scope| {
        scope.spawn(|| heap.alloc_to(slots[0], 64).unwrap());
        has_begun.recv().unwrap();
        scope.spawn(|| heap.settle());
        // The epoch has most probably ended; if not, the test is weaker.
        std::thread::sleep(Duration::from_millis(100));
        scope.spawn(|| heap.alloc_to(slots[1], 64).unwrap()).join().unwrap();
        go.send(()).unwrap();
    });
    assert_eq!(heap.read(slots[0].0) >> 16, heap.read(slots[1].0) >> 16, "of one slab");
    let (again, _) = Heap::open(Sim::<true>::from_image(&medium.now().durable()), options()).unwrap();
    again.check().unwrap();
    let mut objects = Vec::new();
    again.objects(|at, _| objects.push(at.0));
    slots[..2].iter().for_each(|slot| assert!(objects.contains(&again.read(slot.0)), "{objects:x?}"));
}
