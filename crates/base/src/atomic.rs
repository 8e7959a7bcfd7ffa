//! Atomics of protocols between threads: `core`'s, or loom's under `cfg(loom)`, so that
//! `tests/loom_*.rs` run the real code in every interleaving. **Not here.** Atomics that only
//! count, or that the kernel or a C library reads.

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
