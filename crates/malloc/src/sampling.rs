//! Samples of the heap profile ([`crate::profile`]) in the process: which requests become one, and
//! when they end.
//!
//! **Unsafe.** Uses the thread's cache.

use crate::observe::profile_file;
use crate::profile::tables::{DEPTH, Sample};
use crate::statics::{HEAP, PROFILE, SEGMENT};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::size_class::size_of_class;
use craton_heap::thread_cache::{MAX_QUICK, ThreadCache};
use craton_kit::family;
use craton_os::{precise_ns, probe, process, thp, unwind};

/// Requests of a class that precede its sample, at most. More see a longer fixed pattern of long
/// and short lives aright, but cost more: the list refuses frees meanwhile.
const MOST_BEFORE: u64 = 16;

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

/// Whether a slow request is its class's sample.
#[inline]
pub(crate) fn is_due(class: usize, size: usize, family: u8) -> bool {
    PROFILE.is_pending() && is_due_now(class, size, family)
}

#[cold]
#[inline(never)]
fn is_due_now(class: usize, size: usize, family: u8) -> bool {
    if !PROFILE.is_due(class) || nested::is_nested() || family == family::TRUSTED && size <= MAX_QUICK {
        return false;
    }
    tls::own().is_none_or(|cache| {
        // SAFETY: this thread's cache.
        let cache: &ThreadCache = unsafe { &*cache };
        // Else another thread's sample, or a request that chance did not choose.
        cache.is_empty(class) && (cache.is_armed(class) || cache.is_hardened())
    })
}

/// Makes a new object of a class its sample, or another in its place, which it returns. Where it
/// cannot be one, the class's next is.
#[cold]
#[inline(never)]
pub(crate) fn sample_small(mut object: *mut u8, class: usize, size: usize) -> *mut u8 {
    let saved = process::errno();
    nested::within(|| {
        if let Some(cache) = tls::own() {
            // SAFETY: this thread's cache; the object has just been made.
            object = unsafe { HEAP.place_sample(cache, object) };
        }
        let bytes = PROFILE.take_pending(class);
        if !HEAP.begin_sample(object) {
            PROFILE.add_pending(class, bytes);
        } else if !record(object, size, bytes) {
            HEAP.end_sample(object);
        }
    });
    process::set_errno(saved);
    object
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
    nested::within(|| _ = record(object, size, PROFILE.weight(size)));
    process::set_errno(saved);
}

/// `bytes`: what the sample stands for. `false`: it was dropped.
#[inline(never)]
fn record(object: *mut u8, size: usize, bytes: u64) -> bool {
    // A static program allocates before the C library can unwind.
    if !SEGMENT.has_started() || bytes == 0 {
        return false;
    }
    let began_ns = precise_ns();
    let mut frames = [0; DEPTH];
    let depth = unwind::capture_outside(&mut frames);
    let objects = (bytes / size.max(1) as u64).max(1);
    let sample = Sample { address: object as usize, size, bytes, objects, at_ns: began_ns, site: 0 };
    let live = PROFILE.tables.add(sample, &frames[..depth], PROFILE.pace.interval().unwrap_or(0));
    probe::sample_alloc(object as usize, size, bytes as usize);
    PROFILE.pace.spend(began_ns, precise_ns(), live);
    if PROFILE.due.is_due(began_ns, || PROFILE.tables.live_bytes()) && thp::may_query() {
        profile_file::write();
    }
    live > 0
}

/// Whether a pointer may be a sample's: right for each sample, wrong for few others.
#[inline(always)]
pub(crate) fn may_be_sample(pointer: *mut u8) -> bool {
    PROFILE.tables.may_have(pointer as usize)
}

/// Before an object's memory may serve another: it may be a sample.
#[cold]
#[inline(never)]
pub(crate) fn end_if_sample(object: *mut u8) {
    nested::within(|| {
        if PROFILE.tables.remove(object as usize, Some(precise_ns)) {
            HEAP.end_sample(object);
        }
    });
}

/// A large object was resized: it counts as a new one.
pub(crate) fn resized(before: *mut u8, object: *mut u8, size: usize) {
    if may_be_sample(before) {
        nested::within(|| PROFILE.tables.remove(before as usize, None));
    }
    count_large(object, size);
}
