//! The atomics of the parts that threads share: those of `core`, or, under `cfg(loom)`, those of loom.
//!
//! **What.** Who uses an atomic in a protocol between threads takes it from here, so that `tests/loom_*.rs` run the real code in every
//! order of its steps that the memory model allows. Without `cfg(loom)` this is a list of names, and no code.
//!
//! **Not here.** Atomics that only count, or that the kernel or a C library reads.

pub use core::sync::atomic::Ordering;
#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
};
#[cfg(loom)]
pub use model::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(loom)]
pub mod model;

/// Waits a moment for another thread, in a loop that looks again.
#[inline]
pub fn spin() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
