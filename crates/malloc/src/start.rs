//! Set-up of the heap for the first request.
//!
//! **Unsafe.** Passes region and tables to the heap.

pub(crate) mod hardening;
mod lifecycle;
pub(crate) mod page_heap;
mod start_pages;

use crate::debug::option;
use crate::here::Here;
use crate::options::environment;
use crate::statics::{EXIT_KEY, HARDENING, HEAP, KIT, LIMITS, PAGE_HEAP, PROCESSOR_CACHES, READY, SETTING_UP};
use crate::thread::leave::thread_ends;
use crate::thread::nested;
use core::sync::atomic::Ordering;
use craton_base::{HUGEPAGE_SIZE, HugePages, PAGES_PER_HUGEPAGE, Table};
use craton_heap::heap::Parts;
use craton_heap::length::SpanLength;
use craton_heap::page_map::PageMap;
use craton_heap::record::PageRecord;
use craton_os::thread::Key;
use craton_os::{PartSpec, Region, label, process};
use craton_pages::Tracker;

/// `false` without address space.
pub(crate) fn set_up() -> bool {
    // ORDERING: pairs with the Release in `set_up_alone`, publishing the layout.
    READY.load(Ordering::Acquire) || set_up_and_go_on()
}

/// Must not lie in the released pages, nor its callees at first (`layout.ld`).
#[cold]
#[inline(never)]
fn set_up_and_go_on() -> bool {
    let is_set_up = set_up_now();
    if is_set_up {
        start_pages::begun(start_pages::BY_SET_UP);
    }
    is_set_up
}

#[cold]
#[inline(never)]
fn set_up_now() -> bool {
    let Some(is_first) = nested::within(set_up_alone) else { return false };
    if is_first && !process::is_privileged() {
        // SAFETY: no thread changes the environment so early.
        unsafe {
            let environment = process::environment();
            environment::find(environment, b"audit_log", |value| _ = KIT.set_log_entries(value));
            environment::find(environment, b"debug", |value| _ = option::set(value, || true));
        }
    }
    true
}

/// Whether this call set it up; `None` on failure.
fn set_up_alone() -> Option<bool> {
    let _only_one = SETTING_UP.lock();
    if READY.load(Ordering::Relaxed) {
        return Some(false);
    }
    let parts = [
        PartSpec { bytes_per_hugepage: PAGES_PER_HUGEPAGE as usize * size_of::<u32>() },
        PartSpec { bytes_per_hugepage: PAGES_PER_HUGEPAGE as usize * size_of::<PageRecord>() },
        PartSpec { bytes_per_hugepage: size_of::<Tracker>() },
        PartSpec { bytes_per_hugepage: PAGES_PER_HUGEPAGE as usize * size_of::<SpanLength>() },
    ];
    in_environment(b"name_mappings", &|value| label::turn(value == b"1"));
    let on_frames = PAGE_HEAP.wants_frames(|each| in_environment(b"page_heap", each));
    let hardened = HARDENING.fix(|each| in_environment(b"hardened", each));
    let fit = |wanted| if on_frames { page_heap::capacity(wanted) } else { wanted };
    let region = match process::address_space_limit().map(whole) {
        Some(limit) => Region::unreserved(fit(limit), &parts)
            .or_else(|| Region::new(fit(HugePages(limit.0 / 2)), HugePages(1), &parts)),
        None => Region::new(fit(usual_capacity()), HugePages(1), &parts),
    }?;
    let capacity = region.capacity();
    let frames = if on_frames { page_heap::frames(capacity) } else { None };
    PAGE_HEAP.record(frames.is_some());
    let (frames, [at_once, each]) = frames.map_or((None, [0; 2]), |(frames, bytes)| (Some(frames), bytes));
    let parts = Parts {
        base: region.base(),
        capacity,
        metadata_at_start: at_once,
        metadata_per_hugepage: parts.iter().map(|p| p.bytes_per_hugepage).sum::<usize>() + each,
        frames,
        key: craton_heap::mark::Key::new(process::random_words()),
        hardened,
        // SAFETY: four zero bytes for each granted page, written only here.
        map: unsafe { PageMap::new(region.part(0) as *const _) },
        // SAFETY: likewise a zero record each; parts are page-aligned.
        records: unsafe { Table::new(region.part(1) as *mut _, capacity.pages().0 as usize) },
        // SAFETY: likewise a zero length each.
        lengths: unsafe { Table::new(region.part(3) as *mut _, capacity.pages().0 as usize) },
        // SAFETY: likewise a zero tracker for each hugepage.
        trackers: unsafe { Table::new(region.part(2) as *mut _, capacity.0 as usize) },
    };
    // SAFETY: no thread uses the heap before, and we hold the lock.
    unsafe {
        HEAP.install(region, parts);
        PROCESSOR_CACHES.set_up::<Here>();
    }
    LIMITS.apply(&Here);
    if let Some(key) = Key::create(Some(thread_ends)) {
        EXIT_KEY.store(key.number() + 1, Ordering::Relaxed);
    }
    // ORDERING: pairs with the Acquire in `set_up`.
    READY.store(true, Ordering::Release);
    Some(true)
}

fn in_environment(key: &[u8], each: &dyn Fn(&[u8])) {
    if !process::is_privileged() {
        // SAFETY: as in `set_up_now`.
        unsafe { environment::find(process::environment(), key, each) };
    }
}

/// Huge objects lie elsewhere; reserving is free.
fn usual_capacity() -> HugePages {
    whole(process::physical_memory().saturating_mul(4).clamp(64 << 30, 16 << 40))
}

fn whole(bytes: usize) -> HugePages {
    HugePages((bytes / HUGEPAGE_SIZE).clamp(1, 8 << 20) as u32)
}
