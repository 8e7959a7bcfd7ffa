//! Requests of signal handlers that interrupted a request.
//!
//! **What.** A program may not allocate in a signal handler; those that do so by mistake hang, elsewhere, when the handler interrupted
//! malloc at the wrong moment. Here a thread notes while it is in the part of a request that takes locks. A request that finds the
//! note is a handler's: one line says so, once, and the request is served apart from the heap.
//!
//! **State.** [`AREA_BYTES`] of static memory, handed out from the beginning to the end and never again; in front of each object its size.
//! What such a request frees waits in a list for the next one that may take locks; what cannot be recognised without a lock stays
//! allocated for good.
//!
//! **Failure.** Beyond the area: no memory. A handler that interrupts the few instructions of the fast path is not seen
//! here; what it does to a thread's list of free objects shows in the list's count ([`crate::cpu_cache::thread::ThreadCache::miscount`]).
//!
//! **Cost.** Two stores to thread-local memory in each slow request.
//!
//! **Not here.** Locks outside of requests (options, statistics): there [`craton_os::Mutex`] ends the process with a line.
//!
//! **Unsafe.** Hands out parts of static memory, and links objects that were given up.

use crate::tls;
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::Line;

/// Bytes for all requests of handlers. They take no memory before they are used.
pub(crate) const AREA_BYTES: usize = 1 << 20;
/// Bytes in front of an object, which hold its size.
const HEAD: usize = 16;

#[repr(align(4096))]
struct Area(UnsafeCell<[u8; AREA_BYTES]>);

// SAFETY: each part is handed out once, and used by whom it was given.
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new([0; AREA_BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);
/// Objects to free, linked through their first words.
static LATER: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static SAID: AtomicBool = AtomicBool::new(false);

/// Where the area, how much of it is used, and the list of what waits to be freed are, for those who read the memory of another process.
pub(crate) const PARTS: [*const u8; 3] =
    [(&raw const AREA).cast(), (&raw const USED).cast(), (&raw const LATER).cast()];

/// Runs the part of a request that takes locks.
#[inline(always)]
pub(crate) fn within<R>(f: impl FnOnce() -> R) -> R {
    let before = tls::swap_inside(1);
    let result = f();
    tls::swap_inside(before);
    result
}

/// Whether this thread is in such a part already. A thread pointer that two tasks share says nothing.
#[inline]
pub(crate) fn is_nested() -> bool {
    tls::is_inside() && tls::get() != tls::alone()
}

/// Says once what the program does.
#[cold]
pub(crate) fn say(call: &str) {
    if !SAID.swap(true, Relaxed) {
        Line::new()
            .text("craton: ")
            .text(call)
            .text(" called in a signal handler that interrupted malloc or free, which signal-safety(7) forbids; ")
            .text("it goes on apart from the heap, with little memory")
            .print();
    }
}

/// Memory for a handler; null when there is no more.
#[cold]
pub(crate) fn serve(size: usize, align: usize) -> *mut u8 {
    say("malloc");
    let base = AREA.0.get() as usize;
    let mut start = 0;
    let taken = USED.fetch_update(Relaxed, Relaxed, |used| {
        let object = (base + used + HEAD).checked_next_multiple_of(align.max(HEAD))?;
        start = object - base;
        let end = start.checked_add(size.max(1))?.checked_next_multiple_of(HEAD)?;
        (end <= AREA_BYTES).then_some(end)
    });
    if taken.is_err() {
        return null_mut();
    }
    // SAFETY: from the old mark to the new one the area is ours, and `start` leaves room for the head.
    unsafe {
        let object = AREA.0.get().cast::<u8>().add(start);
        object.sub(HEAD).cast::<usize>().write(size);
        object
    }
}

/// The size of an object that was handed out here; `None` for any other pointer.
pub(crate) fn size_of(pointer: *mut u8) -> Option<usize> {
    let offset = (pointer as usize).wrapping_sub(AREA.0.get() as usize);
    // SAFETY: only objects of ours lie there, and each has a head.
    (HEAD..AREA_BYTES).contains(&offset).then(|| unsafe { pointer.sub(HEAD).cast::<usize>().read() })
}

/// Keeps an object until somebody may free it.
///
/// # Safety
/// It is an object of a size class, out, and given up.
#[cold]
pub(crate) unsafe fn free_later(object: *mut u8) {
    let mut first = LATER.load(Relaxed);
    loop {
        // SAFETY: by the contract.
        unsafe { object.cast::<*mut u8>().write(first) };
        // ORDERING: Release pairs with the Acquire in `take_later`: the link is seen.
        match LATER.compare_exchange(first, object, Ordering::Release, Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Takes the objects that wait to be freed: the first, which links to the next.
pub(crate) fn take_later() -> *mut u8 {
    // ORDERING: Acquire pairs with the Release in `free_later`.
    LATER.swap(null_mut(), Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_apart_are_aligned_distinct_and_know_their_size() {
        let (a, b, c) = (serve(1, 16), serve(100, 512), serve(0, 16));
        for (object, size, align) in [(a, 1, 16), (b, 100, 512), (c, 0, 16)] {
            assert_eq!((object as usize % align, size_of(object)), (0, Some(size)));
        }
        assert!((a as usize) < b as usize - HEAD && b as usize + 100 <= c as usize - HEAD);
        assert_eq!(size_of(null_mut()), None);
        assert!(serve(AREA_BYTES, 16).is_null() && serve(usize::MAX, 16).is_null());
        assert!(serve(1, 1 << 62).is_null());
        assert_eq!(size_of(serve(7, 16)), Some(7), "a refusal takes nothing");
    }

    #[test]
    fn what_is_kept_comes_back_once() {
        let (mut a, mut b) = ([0usize; 2], [0usize; 2]);
        let (a, b) = (a.as_mut_ptr().cast::<u8>(), b.as_mut_ptr().cast::<u8>());
        // SAFETY: memory of this test.
        unsafe {
            free_later(a);
            free_later(b);
            assert_eq!(take_later(), b);
            assert_eq!((b.cast::<*mut u8>().read(), a.cast::<*mut u8>().read()), (a, null_mut()));
        }
        assert!(take_later().is_null());
    }
}
