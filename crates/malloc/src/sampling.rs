//! Samples of the heap profile ([`crate::profile`]) in the process: which requests become one, and
//! when they end.
//!
//! **Unsafe.** Uses the thread's cache.

use crate::profile::tables::{DEPTH, Sample};
use crate::statics::{HEAP, PROFILE, SEGMENT};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::PAGE_SIZE;
use craton_heap::beyond::small_stays;
use craton_heap::size_class::{MAX_CLASSED, class_of, size_of_class};
use craton_heap::thread_cache::{MAX_QUICK, ThreadCache};
use craton_kit::family;
use craton_os::{precise_ns, process, unwind};

/// Larger objects have a class, but are large: a slab's record takes a page's memory, and spans at
/// hand serve all lengths. They are counted one by one, and sampled in place.
pub(crate) const MAX_SLABBED: usize = 128 << 10;

/// Requests of a class that precede its sample, at most.
const MOST_BEFORE: u64 = 8;

/// [`craton_heap::hooks::Hooks::count_ended`].
pub(crate) fn count_ended(class: usize, excess: u64) -> (i64, u32) {
    let (next, bytes) = PROFILE.count_ended(excess);
    if bytes == 0 || is_freed_by_size(size_of_class(class)) {
        return (next, 0);
    }
    PROFILE.add_pending(class, bytes);
    (next, 1 + (PROFILE.pace.random() % MOST_BEFORE) as u32)
}

/// Counts objects of a per-CPU cache's refill: the next slow request of the class is the sample.
pub(crate) fn count_processor_refill(class: usize, objects: u32) {
    let size = size_of_class(class);
    if let Some(bytes) = PROFILE.count_down(u64::from(objects) * size as u64)
        && !is_freed_by_size(size)
    {
        PROFILE.add_pending(class, bytes);
    }
}

fn is_freed_by_size(size: usize) -> bool {
    size <= MAX_QUICK && PROFILE.trusts.load(Relaxed)
}

/// A sample for a slow request, if its class's is due.
#[inline]
pub(crate) fn alloc(class: usize, size: usize, align: usize, family: u8) -> Option<*mut u8> {
    if PROFILE.is_pending() { alloc_due(class, size, align, family) } else { None }
}

#[cold]
#[inline(never)]
fn alloc_due(class: usize, size: usize, align: usize, family: u8) -> Option<*mut u8> {
    if !PROFILE.is_due(class) || nested::is_nested() {
        return None;
    }
    if let Some(cache) = tls::own() {
        // SAFETY: this thread's cache.
        let cache: &mut ThreadCache = unsafe { &mut *cache };
        // Another thread's sample, or a request that chance did not choose.
        if !cache.is_armed(class) && !cache.is_hardened() || !cache.is_empty(class) {
            return None;
        }
        cache.disarm(class);
        cache.count_sample(class);
    }
    // A free by size alone takes any pointer for an object of the class.
    if align > PAGE_SIZE || family == family::TRUSTED && size <= MAX_QUICK {
        return None;
    }
    let bytes = PROFILE.take_pending(class);
    let saved = process::errno();
    let object = nested::within(|| {
        let object = HEAP.allocate_large(size.max(1), align, false);
        if !object.is_null() && bytes > 0 {
            record(object, size, bytes);
        }
        object
    });
    process::set_errno(saved);
    (!object.is_null()).then_some(object)
}

/// Counts a large object, which may become a sample.
#[inline]
pub(crate) fn count_large(object: *mut u8, size: usize) {
    if PROFILE.count_down(size as u64).is_some() {
        sample_large(object, size);
    }
}

#[cold]
#[inline(never)]
fn sample_large(object: *mut u8, size: usize) {
    if object.is_null() || nested::is_nested() {
        return;
    }
    let saved = process::errno();
    nested::within(|| record(object, size, PROFILE.weight(size)));
    process::set_errno(saved);
}

/// `bytes`: what the sample stands for.
#[inline(never)]
fn record(object: *mut u8, size: usize, bytes: u64) {
    // A static program allocates before the C library can unwind.
    if !SEGMENT.has_started() {
        return;
    }
    let began_ns = precise_ns();
    let mut frames = [0; DEPTH];
    let depth = unwind::capture_outside(&mut frames);
    let objects = (bytes / size.max(1) as u64).max(1);
    let (address, thread) = (object as usize, tls::thread_id());
    let sample = Sample { address, size, bytes, objects, at_ns: began_ns, thread, site: 0 };
    let live = PROFILE.tables.add(sample, &frames[..depth], PROFILE.pace.interval().unwrap_or(0));
    if live > 0 {
        // Huge objects have no mark: each free of one looks.
        HEAP.set_sample(object, true);
    }
    PROFILE.pace.spend(began_ns, precise_ns(), live);
}

/// [`craton_heap::hooks::Event::SampleFreed`]; also before the free of an object outside of the
/// region, which need not be a sample.
pub(crate) fn freed(object: *mut u8) {
    nested::within(|| PROFILE.tables.remove(object as usize, Some(precise_ns)));
}

/// The size with which a small sample was allocated, for `realloc`.
pub(crate) fn small_sample(object: *mut u8) -> Option<usize> {
    if !HEAP.is_sample(object) {
        return None;
    }
    nested::within(|| PROFILE.tables.size_of(object as usize)).filter(|size| *size <= MAX_SLABBED)
}

/// Whether a small sample stays in place, as another object of its size would. Frees by size expect
/// the size's pages.
pub(crate) fn sample_stays(old: usize, size: usize) -> bool {
    old.max(1).div_ceil(PAGE_SIZE) == size.max(1).div_ceil(PAGE_SIZE)
        && old <= MAX_CLASSED
        && small_stays(class_of(old.max(1)), size)
}

/// A large object was resized: it counts as a new one.
pub(crate) fn resized(before: *mut u8, object: *mut u8, size: usize) {
    nested::within(|| PROFILE.tables.remove(before as usize, None));
    HEAP.set_sample(object, false);
    count_large(object, size);
}
