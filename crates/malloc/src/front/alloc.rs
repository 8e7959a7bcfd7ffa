//! malloc when the fast path has no object: the thread's mode ([`crate::thread::mode`]) decides.
//! After a hard limit's refusal it retries once, if flushing the thread's caches made room.
//!
//! **Unsafe.** Uses the thread's cache; clears objects.

use super::apart::{malloc_in_handler, malloc_in_handler_class};
use super::{MAX_SIZE, with_errno};
use crate::start::set_up;
use crate::statics::{FAILURES, HEAP, LENT, PROCESSOR_CACHES};
use crate::thread::life::{cache_for, register_threads, server};
use crate::thread::mode::Server;
use crate::thread::{nested, tls};
use crate::{debug, govern, sampling};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::PAGE_SIZE;
use craton_heap::size_class;
use craton_heap::thread_cache::{Slow, ThreadCache};
use craton_kit::family;
use craton_os::process::errno;
use craton_os::rseq::Rseq;

/// Larger objects have a class, but are large: a slab's record takes a page's memory, and spans at
/// hand serve all lengths. The profile counts them one by one.
pub(crate) const MAX_SLABBED: usize = 128 << 10;

#[cold]
#[inline(never)]
pub(super) fn malloc_quick<const FAMILY: u8>(size: usize) -> *mut u8 {
    malloc_sized(size_class::class_of_tabled(size), size, 1, FAMILY)
}

#[inline(never)]
pub(super) fn malloc_beyond_quick<const FAMILY: u8>(size: usize) -> *mut u8 {
    if size > MAX_SLABBED {
        return malloc_large(size, 1, false, FAMILY);
    }
    let class = size_class::class_of(size);
    // SAFETY: this thread's cache or one on which `pop` fails.
    let object = unsafe { ThreadCache::pop(tls::get(), class) };
    if object.is_null() { malloc_sized(class, size, 1, FAMILY) } else { object }
}

/// Allocates `size` bytes of a class whose list is empty.
#[cold]
#[inline]
pub(super) fn malloc_sized(class: usize, size: usize, align: usize, family: u8) -> *mut u8 {
    if let Some(buffer) = debug::alloc(size, align, family) {
        return buffer;
    }
    match sampling::slow(class, size, family) {
        Slow::Usual => malloc_class(class, size, align, family, 0),
        Slow::Served(object) => object,
        Slow::Sample(object, bytes) if object.is_null() => malloc_class(class, size, align, family, bytes),
        Slow::Sample(object, bytes) => sampling::sample_small(object, class, size, bytes),
    }
}

/// `bytes`: what the request stands for as a sample.
#[cold]
#[inline(never)]
fn malloc_class(class: usize, size: usize, align: usize, family: u8, bytes: u64) -> *mut u8 {
    let saved = errno();
    let server = server();
    let is_first = matches!(server, Server::NewCache);
    let cache = match server {
        Server::PerCpu(rseq) => {
            let object = malloc_per_cpu(rseq, class);
            sampling::count_without_cache(object, class, size, family);
            return object;
        }
        Server::Apart => return malloc_in_handler_class(class),
        other => cache_for(other),
    };
    let object = match cache {
        // SAFETY: this thread's cache. Setting it up may have filled the list.
        Some(cache) => unsafe {
            let mut object = ThreadCache::pop(cache, class);
            if object.is_null() && (*cache).is_hardened() {
                object = nested::within(|| HEAP.turn_for(cache, class));
            }
            if object.is_null() && align <= 16 && LENT.may_lend_to(class) {
                object = borrowed(&mut *cache, class);
            }
            if object.is_null() {
                let inside = nested::enter();
                object = HEAP.refill(cache, class);
                drop(inside);
            }
            if object.is_null() { with_room(|| HEAP.refill(cache, class)) } else { object }
        },
        None if set_up() => nested::within(|| HEAP.take_one(class)),
        None => null_mut(),
    };
    // SAFETY: this thread's cache.
    let bytes = bytes + cache.map_or(0, |cache| unsafe { (*cache).take_refill_sample() });
    let object = if object.is_null() {
        count_failure(class);
        object
    } else if bytes > 0 || is_first {
        sampling::begin(object, class, size, family, bytes)
    } else {
        object
    };
    govern::run_chores();
    with_errno(object, saved)
}

/// Borrows a larger class's object, if that saves a slab; else null.
fn borrowed(cache: &mut ThreadCache, class: usize) -> *mut u8 {
    let Some((object, lender)) = HEAP.borrow(cache, class) else { return null_mut() };
    LENT.note(class, lender);
    object
}

fn malloc_per_cpu(rseq: &Rseq, class: usize) -> *mut u8 {
    let object = PROCESSOR_CACHES.pop(rseq, class);
    if !object.is_null() {
        HEAP.wipe_mark(class, object)
    } else if nested::is_nested() {
        malloc_in_handler_class(class)
    } else {
        refill_per_cpu(rseq, class)
    }
}

#[inline(never)]
fn refill_per_cpu(rseq: &Rseq, class: usize) -> *mut u8 {
    let saved = errno();
    register_threads();
    let refill = || PROCESSOR_CACHES.refill(&HEAP, rseq, class);
    let mut object = nested::within(refill);
    if object.is_null() {
        object = with_room(refill);
    }
    if object.is_null() {
        count_failure(class);
    }
    let object = HEAP.wipe_mark(class, object);
    govern::run_chores();
    with_errno(object, saved)
}

/// Refills again, if a limit refused the first refill and room could be made.
#[cold]
fn with_room(refill: impl FnOnce() -> *mut u8) -> *mut u8 {
    if nested::within(govern::make_room) { nested::within(refill) } else { null_mut() }
}

#[cold]
fn count_failure(class: usize) {
    FAILURES[class].fetch_add(1, Relaxed);
    govern::count_refusal(size_class::geometry(class).pages.bytes().0);
}

#[inline(never)]
pub(super) fn malloc_cleared(size: usize) -> *mut u8 {
    malloc_large(size, 1, true, family::C)
}

#[inline(never)]
pub(super) fn malloc_large(size: usize, align: usize, zero: bool, family: u8) -> *mut u8 {
    // The kit, in use, must see the request first.
    let may_take = !zero && align <= PAGE_SIZE && !debug::sees_large();
    let at_hand = if may_take { HEAP.large_at_hand(size) } else { null_mut() };
    if at_hand.is_null() {
        return malloc_large_anew(size, align, zero, family);
    }
    sampling::count_large(at_hand, size);
    at_hand
}

#[cold]
fn malloc_large_anew(size: usize, align: usize, zero: bool, family: u8) -> *mut u8 {
    if nested::is_nested() {
        return malloc_in_handler(size, align);
    }
    if let Some(buffer) = debug::alloc(size, align, family) {
        if zero && !buffer.is_null() {
            // SAFETY: the buffer has `size` bytes and is ours.
            unsafe { buffer.write_bytes(0, size) };
        }
        return buffer;
    }
    let saved = errno();
    let possible = size <= MAX_SIZE && set_up();
    let allocate = || nested::within(|| HEAP.allocate_large(size, align, zero));
    let mut object = if possible { allocate() } else { null_mut() };
    if object.is_null() && possible {
        if nested::within(|| govern::make_room_for(size)) {
            object = allocate();
        }
        if object.is_null() {
            govern::count_refusal(size);
        }
    }
    // Not the kit's buffers, whose frees end no sample.
    if !object.is_null() {
        sampling::count_large(object, size);
    }
    govern::run_chores();
    with_errno(object, saved)
}
