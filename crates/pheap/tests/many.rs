//! `open` on several threads, and heaps in files.

use crate::common::{config, table};
use craton_base::{Medium, Space};
use craton_os::PersistentFile;
use craton_os::persistent_file::{FileOptions, UseMedium, WriteBackChoice};
use craton_pheap::{Error, Heap, Model, Options, Report, Slot};
use craton_sim::SimMedium;
use std::ffi::CString;

const SLABS: u64 = 600;

fn options() -> Options {
    Options { arenas: 2, markers: 4, ..Options::default() }
}

/// Slabs with four objects each; every third is freed.
fn fill<M: Medium + Space>(heap: &Heap<M>) -> u64 {
    let slots = table(heap, 4 * SLABS);
    slots.iter().for_each(|slot| _ = heap.alloc_to(*slot, 16_000).unwrap());
    slots.iter().step_by(3).for_each(|slot| heap.free_from(*slot).unwrap());
    4 * SLABS - (4 * SLABS).div_ceil(3)
}

fn verify<M: Medium + Space>(heap: &Heap<M>, report: Report, small: u64) {
    assert!(report.slabs >= SLABS && report.small >= small, "{report:?}");
    heap.check().unwrap();
    let mut objects = 0;
    heap.objects(|_, bytes| objects += u64::from(bytes > 15_000 && bytes < 17_000));
    assert_eq!(objects, small);
}

#[test]
fn many_slabs_are_read_by_threads() {
    let medium = SimMedium::new(1 << 20, 64 << 20);
    let heap = Heap::create(medium.clone(), config(Model::Log), options()).unwrap();
    let small = fill(&heap);
    heap.settle();
    let mut image = medium.now().durable();
    let (heap, report) = Heap::open(SimMedium::from_image(&image), options()).unwrap();
    verify(&heap, report, small);
    // Read by another thread than the first.
    let mut last = 0;
    heap.objects(|at, bytes| last = last.max(if bytes < 17_000 { at.0 / 65_536 * 65_536 } else { 0 }));
    image.set_word(last, 0);
    let refused = Heap::open(SimMedium::from_image(&image), options()).map(drop);
    assert_eq!(refused, Err(Error::Damaged { what: "header of a slab", at: last }));
}

struct Make(Model);

impl UseMedium for Make {
    type Output = u64;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> u64 {
        let heap = Heap::create(medium, config(self.0), options()).unwrap();
        let small = fill(&heap);
        // No slot has it.
        let lost = heap.reserve(100).unwrap();
        assert!(lost.at() != craton_pheap::Offset(0));
        small
    }
}

struct Open(u64);

impl UseMedium for Open {
    type Output = ();

    fn call<M: Medium + Space + 'static>(self, medium: M) {
        let (heap, report) = Heap::open(medium, options()).unwrap();
        verify(&heap, report, self.0);
        let table = heap.read(heap.root(b"table").unwrap().slot.0);
        heap.free_from(Slot(table + 8)).unwrap();
        heap.alloc_to(Slot(table + 8), 16_000).unwrap();
        heap.check().unwrap();
    }
}

#[test]
fn files_of_all_models_open_after_a_crash() {
    for model in [Model::Log, Model::Gc, Model::Frames] {
        let path = std::env::temp_dir().join(format!("craton-pheap-many-{}-{model:?}", std::process::id()));
        let file = CString::new(path.to_str().unwrap()).unwrap();
        let medium = PersistentFile::create(&file, 1 << 20, FileOptions::new(1 << 27)).unwrap();
        let small = medium.with_medium(WriteBackChoice::None, Make(model)).unwrap();
        for _ in 0..2 {
            let medium = PersistentFile::open(&file, FileOptions::new(1 << 27)).unwrap();
            medium.with_medium(WriteBackChoice::None, Open(small)).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
    }
}
