//! A guest without an operating system: every usable frame is `craton-frames`', page tables and
//! object caches lie on frames, and a small page heap on both. No frame may serve twice, and all
//! must come back. A line of JSON for each step.
//!
//! **From.** LLFree §2, §4, §5.2 to §5.6.
//! **Unsafe.** This is the machine: ports, tables, raw memory.
#![no_std]
#![no_main]

mod bench;
mod checks;
mod cpus;
mod faults;
mod heap;
mod machine;
mod objects;
mod offers;
mod physical;
mod runtime;
mod serial;
mod start;
mod windows;

use craton_kernel::memory::{Map, Range};
use craton_kernel::plan::Plan;
use physical::Memory;
use serial::{fail, report};
use start::Start;

core::arch::global_asm!(include_str!("boot.s"), options(att_syntax));

/// Firmware and the trampoline of the other CPUs.
const LOW: Range = Range { begin: 0, end: 1 << 20 };
/// What `only=high` leaves out, for a test of a machine that has usable memory above 4 GiB alone.
const BELOW_4_GIB: Range = Range { begin: 0, end: 1 << 32 };

unsafe extern "C" {
    static image_begin: u8;
    static image_end: u8;
}

/// From boot.s, on the first CPU.
/// # Safety
/// `start` is PVH's.
#[unsafe(no_mangle)]
unsafe extern "C" fn begin(start: *const Start) -> ! {
    // SAFETY: by the contract, below 4 GiB.
    let start = unsafe { &*start };
    if !start.is_known() {
        fail!("the loader is not PVH, version 1 or later: start the guest by `qemu-system-x86_64 -kernel`");
    }
    let image = Range { begin: &raw const image_begin as u64, end: &raw const image_end as u64 };
    let info = Range { begin: core::ptr::from_ref(start) as u64, end: core::ptr::from_ref(start) as u64 + 4096 };
    let low = if start.has("only=high") { BELOW_4_GIB } else { LOW };
    let usable = Map::new(start.memory(), &[low, image, info]).unwrap_or_else(|wrong| fail!("{wrong}"));
    let end = usable.ranges().last().map_or(0, |range| range.end);
    let mapped = physical::map_to_itself(end);
    let usable = usable.except(Range { begin: mapped, end: u64::MAX }).unwrap_or_else(|wrong| fail!("{wrong}"));

    let count = match cpus::start() {
        Ok(count) => count,
        Err(cpus::Refused::TooMany { given }) => {
            fail!(
                "{given} CPUs, and this guest has room for {}: start it with -smp {} or fewer",
                cpus::MOST,
                cpus::MOST
            )
        }
        Err(cpus::Refused::Silent { started, given }) => fail!("{started} of {given} CPUs started"),
    };
    let plan = Plan::new(&usable, count).unwrap_or_else(|refused| fail!("{refused}"));
    report!("memory", "usable_frames": usable.frames(), "ranges": usable.ranges().len(), "zone_frames": plan.frames,
        "metadata_bytes": plan.metadata.bytes(), "unmapped_bytes": end.saturating_sub(mapped), "cpus": count);
    let memory = Memory::new(plan, count).unwrap_or_else(|error| fail!("the zone: {error}"));
    memory.check(count, 0, "the start");

    let tables = memory.own_tables();
    // SAFETY: they map what the tables before did, to the same places.
    unsafe { cpus::run_on_tables(count, tables.root()) };
    let held = memory.plan.free.frames() - memory.zone.free_frames();
    report!("tables", "frames": held);

    checks::run(&memory, count, held, start.has("plant=frame"));
    windows::run(&memory, &tables, held);
    objects::run(&memory, count, held);
    heap::run(&memory, &tables, held);
    if start.has("plant=fault") {
        // SAFETY: none: the guest is to report a page fault.
        unsafe { (0x7000_0000_0000 as *mut u8).write_volatile(1) };
    }
    if start.has("host") {
        offers::run(&memory, count, held);
    }
    if !start.has("checks") {
        bench::run(&memory, count, held);
    }
    memory.check(count, held, "everything");
    report!("done", "well": true);
    machine::leave(true)
}
