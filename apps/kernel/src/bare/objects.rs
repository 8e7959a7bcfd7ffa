//! Object caches on frames (Bonwick94): each CPU its own.

use super::checks::Random;
use super::cpus;
use super::physical::Memory;
use super::serial::{fail, report};
use core::sync::atomic::{AtomicUsize, Ordering};
use craton_kernel::memory::FRAME;
use craton_slab::object::{FramePages, ObjectLayout, ObjectSlabs};

const SIZES: [usize; 4] = [40, 640, 4096, 16384];
const OBJECTS: usize = 500;
/// Of free memory, all CPUs together.
const PART: usize = 4;
const TURNS: usize = 4_000;

pub fn run(memory: &Memory, count: usize, held: usize) {
    let made = AtomicUsize::new(0);
    let share = memory.zone.free_frames() * FRAME as usize / PART / count;
    let of = |cpu| SIZES.iter().for_each(|size| of_size(memory, cpu, (*size, (share / size).clamp(1, OBJECTS)), &made));
    cpus::run(count, &of);
    memory.check(count, held, "object caches");
    report!("objects", "made": made.into_inner(), "sizes": SIZES.len(), "cpus": count);
}

fn of_size(memory: &Memory, cpu: usize, (size, most): (usize, usize), made: &AtomicUsize) {
    let layout = ObjectLayout::of_pages(size, 8, false, 4096).unwrap_or_else(|bad| fail!("objects of {size}: {bad:?}"));
    let mut slabs = ObjectSlabs::new(layout);
    let seat = memory.seat(cpu);
    // SAFETY: the zone's frames are mapped to themselves.
    let mut supplier = unsafe { FramePages::new(&seat, memory.plan.base as *mut u8) };
    let mut live: [*mut u8; OBJECTS] = [core::ptr::null_mut(); OBJECTS];
    let mut random = Random::new((cpu * 8 + size) as u64);
    for turn in 0..TURNS {
        let i = random.below(most);
        if !live[i].is_null() {
            check_and_free(&mut slabs, live[i], i, size);
            live[i] = core::ptr::null_mut();
            continue;
        }
        // SAFETY: one supplier for all.
        let Some(taken) = (unsafe { slabs.alloc(&mut supplier) }) else { fail!("no object of {size} bytes at {turn}") };
        live[i] = taken.object();
        // SAFETY: the object is this CPU's, of this size.
        unsafe { live[i].write_bytes(i as u8, size) };
        made.fetch_add(1, Ordering::Relaxed);
    }
    for (i, object) in live.iter().enumerate().filter(|(_, object)| !object.is_null()) {
        check_and_free(&mut slabs, *object, i, size);
    }
    if let Err(broken) = slabs.check() {
        fail!("a cache of {size} bytes is broken: {broken:?}");
    }
    // SAFETY: as above.
    if let Err(left) = unsafe { slabs.destroy(&mut supplier, |_| ()) } {
        fail!("{} objects of {size} bytes are still out", left.0);
    }
}

fn check_and_free(slabs: &mut ObjectSlabs, object: *mut u8, i: usize, size: usize) {
    // SAFETY: a live object of this size.
    let bytes = unsafe { core::slice::from_raw_parts(object, size) };
    if let Some(at) = bytes.iter().position(|byte| *byte != i as u8) {
        fail!("byte {at} of an object of {size} bytes is {}, not {}", bytes[at], i as u8);
    }
    // SAFETY: nothing uses it any more.
    if let Err(bad) = unsafe { slabs.free(object, false) } {
        fail!("an object of {size} bytes: {bad}");
    }
}
