//! Returns a thread's cache.
//!
//! **Unsafe.** Empties the calling thread's cache; the C library calls it.

use crate::govern;
use crate::statics::{ADMISSION, BACKGROUND, HEAP, PROCESSOR_CACHES, REGISTRY};
use crate::thread::registry::Registry;
use crate::thread::{nested, tls};
use core::ffi::c_void;
use craton_heap::thread_cache::ThreadCache;
use craton_os::rseq::Rseq;
use craton_os::thread;

pub(crate) fn count_threads(caches: &Registry) {
    ADMISSION.count(caches.taken());
    BACKGROUND.count_threads(caches.taken() + usize::from(PROCESSOR_CACHES.in_use()));
}

pub(crate) fn return_cache(instead: *mut ThreadCache) {
    let Some(cache) = tls::own() else { return };
    tls::set(instead);
    nested::within(|| {
        // SAFETY: the thread gave it up two lines before.
        unsafe {
            HEAP.empty_cache(cache);
            let mut caches = REGISTRY.lock();
            caches.free(cache);
            count_threads(&caches);
        }
    });
}

/// Perhaps before other destructors, which then allocate and free without a cache.
///
/// # Safety
/// For the C library only.
pub(crate) unsafe extern "C" fn thread_ends(_: *mut c_void) {
    let registered = PROCESSOR_CACHES.rseq().is_some_and(Rseq::is_registered);
    return_cache(if registered { tls::gone() } else { tls::alone() });
    // The C library exits after all threads; ours would count.
    if thread::is_main() {
        govern::seal();
    }
}
