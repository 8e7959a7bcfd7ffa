//! The time for slow paths.
//!
//! **Unsafe.** Calls `clock_gettime`.

use craton_base::Clock;

/// A kernel tick (1 to 10 ms) exact, about 5 ns a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoarseClock;

impl Clock for CoarseClock {
    fn now_ns(&self) -> u64 {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `t` can be written. On failure time stands still at 0, which every policy
        // tolerates.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut t) };
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    }
}

/// About 200 ns a call.
pub fn processor_ns() -> u64 {
    ns_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

pub fn process_cpu_ns() -> u64 {
    ns_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Monotonic; about 30 ns a call.
pub fn precise_ns() -> u64 {
    ns_of(libc::CLOCK_MONOTONIC)
}

fn ns_of(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
