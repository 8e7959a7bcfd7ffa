//! A heap over a simulated floor. Tests of higher crates include this file by its path.

use core::sync::atomic::AtomicU32;
use craton_base::{HugePages, Table};
use craton_heap::hooks::Hooks;
use craton_heap::length::SpanLength;
use craton_heap::page_map::PageMap;
use craton_heap::record::PageRecord;
use craton_heap::{Heap, Parts};
use craton_pages::Tracker;
use craton_sim::{FaultPlan, RealFloor, SimSystem, VirtualClock};
use std::boxed::Box;
use std::vec::Vec;

pub(crate) struct Ground<H: Hooks> {
    pub(crate) heap: &'static Heap<RealFloor, VirtualClock, H>,
    pub(crate) faults: FaultPlan,
    pub(crate) clock: VirtualClock,
    pub(crate) system: SimSystem,
    pub(crate) floor: RealFloor,
}

pub(crate) fn ground<H: Hooks>(hugepages: u32, now_ns: u64) -> Ground<H> {
    ground_with(hugepages, now_ns, (0, 0))
}

#[allow(dead_code)] // Not in every crate that takes this file in.
pub(crate) fn hardened_ground<H: Hooks>(hugepages: u32) -> Ground<H> {
    ground_as(hugepages, 1, (0, 0), true)
}

/// Bytes of metadata: from the start, and with each hugepage.
pub(crate) fn ground_with<H: Hooks>(hugepages: u32, now_ns: u64, metadata: (usize, usize)) -> Ground<H> {
    ground_as(hugepages, now_ns, metadata, false)
}

fn ground_as<H: Hooks>(hugepages: u32, now_ns: u64, metadata: (usize, usize), hardened: bool) -> Ground<H> {
    let (capacity, faults) = (HugePages(hugepages), FaultPlan::default());
    let floor = RealFloor::with_faults(capacity, faults.clone());
    let pages = capacity.pages().0;
    let marks: Vec<AtomicU32> = (0..pages).map(|_| AtomicU32::new(0)).collect();
    let records: Vec<PageRecord> = (0..pages).map(|_| PageRecord::default()).collect();
    let lengths: Vec<SpanLength> = (0..pages).map(|_| SpanLength::default()).collect();
    let trackers: Vec<Tracker> = (0..hugepages).map(|_| Tracker::default()).collect();
    let (clock, system) = (VirtualClock::new(now_ns), SimSystem::new(faults.clone()));
    let empty = RealFloor::new(HugePages(1));
    let heap = Box::leak(Box::new(Heap::new(empty, system.clone(), clock.clone(), clock.clone())));
    let parts = Parts {
        base: floor.base() as usize,
        // SAFETY: there is a zero entry for each page, for ever.
        map: unsafe { PageMap::new(marks.leak().as_ptr()) },
        records: Table::from_slice(records.leak()),
        lengths: Table::from_slice(lengths.leak()),
        trackers: Table::from_slice(trackers.leak()),
        capacity,
        metadata_at_start: metadata.0,
        metadata_per_hugepage: metadata.1,
        frames: None,
        key: craton_heap::mark::Key::new([0x1357_9bdf_0246_8acf, 0x0f1e_2d3c_4b5a_6978]),
        hardened,
    };
    // SAFETY: called once, with the floor's parts.
    unsafe { heap.install(floor.clone(), parts) };
    Ground { heap, faults, clock, system, floor }
}
