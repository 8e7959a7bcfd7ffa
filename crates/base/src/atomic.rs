//! Atomics of protocols between threads: `core`'s, or loom's under `cfg(loom)`, so that
//! `tests/loom_*.rs` run the real code in every interleaving. **Not here.** Atomics that only
//! count, or that the kernel or a C library reads.
//!
//! **Unsafe.** An instruction that fetches a cache line and changes nothing.

pub use core::sync::atomic::Ordering;
#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
};
#[cfg(loom)]
pub use model::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(loom)]
#[path = "atomic/tests/model.rs"]
pub mod model;

/// Waits a moment for another thread, in a loop that looks again.
#[inline]
pub fn spin() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Fetches the cache line of a word that is read next and then changed: once, as its owner. To read
/// it first would fetch it from another processor's cache twice.
#[inline(always)]
pub fn about_to_change<T>(word: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: a prefetch reads and writes nothing and never faults; processors without this one
    // do nothing.
    unsafe {
        core::arch::asm!("prefetchw byte ptr [{}]", in(reg) word, options(nostack, preserves_flags));
    }
    let _ = word;
}
