//! Atomics of protocols between threads: `core`'s, or loom's under `cfg(loom)`. Plain
//! counts, and words that the kernel reads, are `core`'s.
//!
//! **Unsafe.** An instruction that prefetches.

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

#[inline]
pub fn spin() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// A read first would fetch the line twice.
#[inline(always)]
pub fn about_to_change<T>(word: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: a prefetch changes nothing and never faults.
    unsafe {
        core::arch::asm!("prefetchw byte ptr [{}]", in(reg) word, options(nostack, preserves_flags));
    }
    let _ = word;
}
