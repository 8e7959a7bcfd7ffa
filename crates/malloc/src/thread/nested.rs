//! Requests of signal handlers that interrupted a request, wrong as they are (docs/errors.md).
//!
//! **What.** The thread's flag is set while its request takes locks; a request that finds it set is
//! a handler's, which would hang: served from an [`area`] apart. That keeps its frees until a
//! request may take locks; objects that only a lock could classify stay for good.
//!
//! **Cost.** Two stores to thread-local memory in each slow request.

pub(crate) mod area;

use crate::statics::APART;
use crate::thread::tls;
use core::sync::atomic::Ordering::Relaxed;
use craton_os::Line;

pub(crate) struct Inside(u64);

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

#[inline(always)]
pub(crate) fn within<R>(f: impl FnOnce() -> R) -> R {
    let _inside = enter();
    f()
}

/// Two tasks that share a thread pointer cannot tell.
#[inline]
pub(crate) fn is_nested() -> bool {
    tls::is_inside() && tls::get() != tls::alone()
}

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

/// Whether a handler's request was reported.
#[cold]
pub(crate) fn was_said() -> bool {
    APART.reported.load(Relaxed)
}

pub(crate) fn size_of(pointer: *mut u8) -> Option<usize> {
    APART.size_of(pointer)
}
