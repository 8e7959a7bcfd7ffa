//! Samples of the heap profile ([`crate::profile`]) in the process: which requests become one, and
//! when they end.
//!
//! **Unsafe.** Uses the thread's cache.

use crate::here::Here;
use crate::observe::profile_file;
use crate::profile::Points;
use crate::profile::tables::{DEPTH, Sample};
use crate::statics::{HEAP, NOT_BEGUN, PROFILE, SEGMENT, SHARED};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::hooks::{Countdown, Ended};
use craton_heap::size_class::size_of_class;
use craton_heap::thread_cache::{MAX_QUICK, Slow, ThreadCache};
use craton_kit::family;
use craton_os::{precise_ns, probe, process, thp, unwind};

/// [`craton_heap::hooks::Hooks::count_ended`].
pub(crate) fn count_ended(class: usize, ended: Countdown, among: u32) -> Ended {
    let (next, bytes) = PROFILE.count_ended(ended);
    let bytes = if is_freed_by_size(size_of_class(class)) { 0 } else { bytes };
    Ended { next, bytes, nth: 1 + (PROFILE.pace.random() % u64::from(among)) as u32 }
}

fn is_freed_by_size(size: usize) -> bool {
    size <= MAX_QUICK && PROFILE.trusts.load(Relaxed)
}

/// Counts a slow request of a class that awaits its sample.
#[inline(always)]
pub(crate) fn slow(class: usize, size: usize, family: u8) -> Slow {
    match tls::own() {
        // SAFETY: this thread's cache.
        Some(cache) if unsafe { (*cache).awaits(class) } => slow_awaited(cache, class, size, family),
        _ => Slow::Usual,
    }
}

/// Counts a new object of a thread without a cache, which may become a sample.
#[inline(always)]
pub(crate) fn count_without_cache(object: *mut u8, class: usize, size: usize, family: u8) {
    let left = tls::count_bytes(size_of_class(class) as i64);
    if left < 0 {
        end_part(object, class, size, family, left);
    }
}

#[cold]
#[inline(never)]
fn end_part(object: *mut u8, class: usize, size: usize, family: u8, left: i64) {
    let begun = (left > NOT_BEGUN / 2).then_some(left);
    let (next, bytes) = PROFILE.count_part(begun, size_of_class(class) as u64);
    tls::set_countdown(next);
    if bytes == 0 || object.is_null() || is_freed_by_size(size_of_class(class)) {
        return;
    }
    match sample(class, size, family, bytes) {
        0 => (),
        bytes => _ = sample_small(object, class, size, bytes),
    }
}

#[cold]
#[inline(never)]
fn slow_awaited(cache: *mut ThreadCache, class: usize, size: usize, family: u8) -> Slow {
    if nested::is_nested() {
        return Slow::Usual;
    }
    // SAFETY: this thread's cache, which nothing of it uses now.
    match nested::within(|| unsafe { ThreadCache::slow::<Here>(cache, class) }) {
        Slow::Sample(object, bytes) => match sample(class, size, family, bytes) {
            0 if object.is_null() => Slow::Usual,
            0 => Slow::Served(object),
            bytes => Slow::Sample(object, bytes),
        },
        other => other,
    }
}

/// Bytes for which a request stands that is to be a sample: these, and those of samples that
/// threads awaited no longer; 0 if it cannot be one.
#[cold]
#[inline(never)]
fn sample(class: usize, size: usize, family: u8, bytes: u64) -> u64 {
    let is_trusted = family == family::TRUSTED && size <= MAX_QUICK;
    if nested::is_nested() || is_trusted {
        PROFILE.add_pending(class, bytes);
        return 0;
    }
    bytes + PROFILE.take_pending(class)
}

/// An object of a refill, which is a sample if it stands for bytes. A thread's first one is also
/// that of threads that ended before they came to theirs.
#[inline(always)]
pub(crate) fn begin(object: *mut u8, class: usize, size: usize, family: u8, bytes: u64) -> *mut u8 {
    if bytes > 0 || PROFILE.is_pending(class) { begin_sample(object, class, size, family, bytes) } else { object }
}

#[cold]
#[inline(never)]
fn begin_sample(object: *mut u8, class: usize, size: usize, family: u8, bytes: u64) -> *mut u8 {
    match sample(class, size, family, bytes) {
        0 => object,
        bytes => sample_small(object, class, size, bytes),
    }
}

/// Makes a new object of a class its sample, or another in its place, which it returns. Where it
/// cannot be one, the class's next is; without a cache none, since the thread's next request would
/// be one of another kind.
#[cold]
#[inline(never)]
pub(crate) fn sample_small(mut object: *mut u8, class: usize, size: usize, bytes: u64) -> *mut u8 {
    let saved = process::errno();
    nested::within(|| {
        let began_ns = precise_ns();
        let cache = tls::own();
        if let Some(cache) = cache {
            // SAFETY: this thread's cache; the object has just been made.
            object = unsafe { HEAP.place_sample(cache, object) };
        }
        if !HEAP.begin_sample(object) {
            PROFILE.add_pending(class, if cache.is_some() { bytes } else { 0 });
        } else if !record(object, size, size_of_class(class), bytes, began_ns) {
            HEAP.end_sample(object);
        }
    });
    process::set_errno(saved);
    object
}

/// Counts a large object, which may become a sample.
#[inline]
pub(crate) fn count_large(object: *mut u8, size: usize) {
    if let Some(ended) = PROFILE.count_down(size as u64) {
        sample_large(object, size, ended);
    }
}

#[cold]
#[inline(never)]
fn sample_large(object: *mut u8, size: usize, ended: Points) {
    if nested::is_nested() {
        return;
    }
    let saved = process::errno();
    nested::within(|| _ = record(object, size, size, ended.weight(size), precise_ns()));
    process::set_errno(saved);
}

/// `bytes`: what the sample stands for, in objects of `counted` bytes. `began_ns`: its time counts
/// from then. `false`: it was dropped.
#[inline(never)]
fn record(object: *mut u8, size: usize, counted: usize, bytes: u64, began_ns: u64) -> bool {
    // A static program allocates before the C library can unwind.
    if !SEGMENT.has_started() || bytes == 0 {
        return false;
    }
    let mut frames = [0; DEPTH];
    let depth = unwind::capture_outside(&mut frames);
    // The fraction of an object by chance.
    let counted = counted.max(1) as u64;
    let objects = (bytes + PROFILE.pace.random() % counted) / counted;
    let sample = Sample { address: object as usize, size, bytes, objects, at_ns: began_ns, site: 0 };
    let live = PROFILE.tables.add(sample, &frames[..depth], PROFILE.pace.interval().unwrap_or(0));
    probe::sample_alloc(object as usize, size, bytes as usize);
    PROFILE.pace.spend(began_ns, precise_ns(), live);
    if PROFILE.due.is_due(began_ns, || PROFILE.tables.live_bytes()) && thp::may_query() {
        profile_file::write();
    }
    if SHARED.wants_profile(began_ns, || PROFILE.tables.live_bytes()) && thp::may_query() {
        profile_file::keep();
    }
    live > 0
}

/// In a fork's child, so that children do not all have their samples at the same places.
pub(crate) fn forked() {
    PROFILE.forked();
    tls::set_countdown(NOT_BEGUN);
    if let Some(cache) = tls::own() {
        // SAFETY: this thread's cache, and the child has no other thread.
        unsafe { (*cache).set_countdown(PROFILE.first_countdown(true)) };
    }
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
