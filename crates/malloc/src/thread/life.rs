//! How a thread gets its server and its cache.
//!
//! **Unsafe.** Hands out caches, each to one thread.

use crate::govern;
use crate::observe::segment;
use crate::start::set_up;
use crate::statics::{ADMISSION, BACKGROUND, EXIT_KEY, HEAP, PROCESSOR_CACHES, REGISTRY, SEGMENT};
use crate::thread::leave::count_threads;
use crate::thread::mode::{Server, ThreadMode};
use crate::thread::registry::Registry;
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::thread_cache::ThreadCache;
use craton_os::cpus;
use craton_os::rseq::Rseq;
use craton_os::thread::Key;

/// New caches between flushes of the per-CPU caches.
const THREADS_TO_EMPTY: u64 = 8;

/// Counts the request if that decides.
#[inline]
pub(crate) fn server() -> Server<&'static Rseq> {
    let earns = || ADMISSION.earns(tls::count_use);
    match ThreadMode::now().server(|| PROCESSOR_CACHES.rseq(), earns) {
        Server::PerCpuIfRegistered(rseq) => register(rseq),
        server => server,
    }
}

/// The kernel can wrongly seem to restart the sequences of a task made past the C library.
#[cold]
fn register(rseq: &'static Rseq) -> Server<&'static Rseq> {
    let registered = rseq.is_registered();
    tls::set(if registered { tls::visitor() } else { tls::alone() });
    if registered { Server::PerCpu(rseq) } else { Server::Central }
}

/// Follows a flush request.
pub(crate) fn cache_for(server: Server<&'static Rseq>) -> Option<*mut ThreadCache> {
    match server {
        Server::Cache(cache) => {
            // SAFETY: `Server::Cache` has the calling thread's.
            unsafe { govern::flush_if_requested(cache) };
            Some(cache)
        }
        Server::NewCache => thread_begins(),
        _ => None,
    }
}

#[cold]
fn thread_begins() -> Option<*mut ThreadCache> {
    if !set_up() {
        return None;
    }
    let cache = nested::within(new_cache)?;
    segment::add(&SEGMENT.threads_seen, 1);
    tls::set(cache);
    // Now this thread can allocate, as `Key::set` may.
    if let Some(key) = EXIT_KEY.load(Relaxed).checked_sub(1) {
        Key::from_number(key).set(cache as usize);
    }
    Some(cache)
}

fn new_cache() -> Option<*mut ThreadCache> {
    let mut caches = REGISTRY.lock();
    let cache = caches.alloc(HEAP.is_hardened())?;
    let share = ADMISSION.share(caches.taken());
    count_threads(&caches);
    if caches.taken() > 1 {
        prepare_for_threads(&caches);
    }
    // SAFETY: the registry gave it to us alone.
    let home = HEAP.home(unsafe { (*cache).number });
    drop(caches);
    // SAFETY: likewise.
    unsafe { govern::begin_cache(cache, home, share) };
    // Ended threads left objects in the per-CPU caches, which pin slabs.
    if (SEGMENT.threads_seen.load(Relaxed) + 1).is_multiple_of(THREADS_TO_EMPTY) {
        PROCESSOR_CACHES.empty(&HEAP);
    }
    Some(cache)
}

/// Before further threads allocate; the registry's lock keeps a fork out.
fn prepare_for_threads(_caches: &Registry) {
    let processors = cpus::known();
    ADMISSION.allow(processors);
    HEAP.use_shards(processors);
}

pub(crate) fn register_threads() {
    if !PROCESSOR_CACHES.in_use() {
        nested::within(|| {
            let caches = REGISTRY.lock();
            prepare_for_threads(&caches);
            BACKGROUND.count_threads(caches.taken() + 1);
        });
    }
}
