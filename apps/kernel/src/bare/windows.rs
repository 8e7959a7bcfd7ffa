//! Memory mapped elsewhere.

use super::machine::{forget_translation, has_giant_pages};
use super::physical::Memory;
use super::serial::{fail, report};
use craton_frames::{Error, Kind, Request};
use craton_kernel::paging::{PageTables, Size};

/// Above all physical addresses.
const AT: u64 = 0x5000_0000_0000;
const GIANT_FRAMES: usize = 1 << 18;
const PATTERN: u64 = 0x0123_4567_89ab_cdef;

pub fn run(memory: &Memory, tables: &PageTables<'_, Memory>, held: usize) {
    for (size, order) in [(Size::Frame, 0), (Size::Huge, 9)] {
        let request = Request { order, kind: Kind::Unmovable, processor: 0 };
        let frame = memory.zone.get(request).unwrap_or_else(|error| fail!("a page of {} bytes: {error}", size.bytes()));
        use_window(memory, tables, frame, size);
        if let Err(error) = memory.zone.put(frame, request) {
            fail!("the frames of a page of {} bytes: {error}", size.bytes());
        }
    }
    let has_giant = has_giant_pages() && with_giant(memory, tables);
    memory.check(1, held, "pages were mapped and unmapped");
    report!("windows", "kib_4": true, "mib_2": true, "gib_1": has_giant);
}

fn with_giant(memory: &Memory, tables: &PageTables<'_, Memory>) -> bool {
    for frame in (0..memory.plan.frames / GIANT_FRAMES).map(|gib| gib * GIANT_FRAMES) {
        match memory.zone.reserve(frame, GIANT_FRAMES) {
            Ok(()) => {
                use_window(memory, tables, frame, Size::Giant);
                if let Err(error) = memory.zone.unreserve(frame, GIANT_FRAMES) {
                    fail!("the frames of a page of 1 GiB: {error}");
                }
                return true;
            }
            Err(Error::InUse { .. } | Error::Offline { .. }) => {}
            Err(error) => fail!("a GiB at frame {frame}: {error}"),
        }
    }
    false
}

fn use_window(memory: &Memory, tables: &PageTables<'_, Memory>, frame: usize, size: Size) {
    let to = memory.plan.address_of(frame);
    if let Err(refused) = tables.map(AT, to, size) {
        fail!("a page of {} bytes: {refused}", size.bytes());
    }
    for at in [0, size.bytes() / 2, size.bytes() - 8] {
        // SAFETY: mapped just now, to held frames; only this CPU uses the window.
        unsafe {
            ((AT + at) as *mut u64).write_volatile(PATTERN ^ at);
            let found = ((to + at) as *const u64).read_volatile();
            if found != PATTERN ^ at {
                fail!("a page of {} bytes shows {found:#x} at {at:#x}", size.bytes());
            }
        }
    }
    if tables.translate(AT + 8) != Some(to + 8) {
        fail!("a page of {} bytes translates to {:?}", size.bytes(), tables.translate(AT + 8));
    }
    match tables.unmap(AT, size) {
        Ok(found) if found == to => forget_translation(AT),
        other => fail!("unmapping a page of {} bytes: {other:?}", size.bytes()),
    }
}
