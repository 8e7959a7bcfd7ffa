//! Requests of signal handlers that interrupted a request.
//!
//! **What.** A program may not allocate in a signal handler; those that do so by mistake hang, elsewhere, when the handler interrupted
//! malloc at the wrong moment. Here a thread notes while it is in the part of a request that takes locks. A request that finds the
//! note is a handler's: one line says so, once, and the request is served apart from the heap.
//!
//! **State.** [`area::Area`] has the memory, and what such a request frees until a request that may take locks frees it. An
//! object that cannot be recognised without a lock stays allocated for good.
//!
//! **Failure.** Beyond the area: no memory. A handler that interrupts the few instructions of the fast path is not seen
//! here; what it does to a thread's list of free objects shows in the list's count ([`craton_heap::thread_cache::ThreadCache::miscount`]).
//!
//! **Cost.** Two stores to thread-local memory in each slow request.
//!
//! **Not here.** Locks outside of requests (options, statistics): there [`craton_os::Mutex`] ends the process with a line.

pub(crate) mod area;

use crate::statics::APART;
use crate::thread::tls;
use core::sync::atomic::Ordering::Relaxed;
use craton_os::Line;

/// The part of a request that takes locks; ends when dropped.
pub(crate) struct Inside(u64);

/// Begins the part of a request that takes locks.
#[inline(always)]
pub(crate) fn enter() -> Inside {
    Inside(tls::swap_inside(1))
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        tls::swap_inside(self.0);
    }
}

/// Runs the part of a request that takes locks.
#[inline(always)]
pub(crate) fn within<R>(f: impl FnOnce() -> R) -> R {
    let _inside = enter();
    f()
}

/// Whether this thread is in such a part already. A thread pointer that two tasks share says nothing.
#[inline]
pub(crate) fn is_nested() -> bool {
    tls::is_inside() && tls::get() != tls::alone()
}

/// Reports once what the program does.
#[cold]
pub(crate) fn say(call: &str) {
    if !APART.reported.swap(true, Relaxed) {
        Line::new()
            .text("craton: ")
            .text(call)
            .text(" called in a signal handler that interrupted malloc or free, which signal-safety(7) forbids; ")
            .text("it goes on apart from the heap, with little memory")
            .print();
    }
}

/// The size of an object of the process's area; `None` for any other pointer.
pub(crate) fn size_of(pointer: *mut u8) -> Option<usize> {
    APART.size_of(pointer)
}
