//! Stamps that grow along every order that threads can observe.
//!
//! **What.** If one call of [`Stamps::next`] happens before another, its stamp is smaller. Calls
//! that no synchronisation orders may get equal stamps from the CPU's clock.
//! **From.** Intel's manual, volume 3, chapter 17.17: `rdtscp` reads the time-stamp counter after
//! all earlier loads. A counter that is invariant runs at one rate on all CPUs, and Linux lists it
//! as a clock source only while no CPU runs behind another.
//! **Threads.** Stamps of the clock begin anew when the machine starts: compare them within a run.
//! **Cost.** The clock: no shared memory. Without one: an atomic addition to a shared word.
//! **Unsafe.** Calls the instruction, after the CPU has reported it.

use crate::small_file::{PathText, read_start};
use core::sync::atomic::{AtomicU64, Ordering};

/// A source of stamps.
#[derive(Debug)]
pub struct Stamps {
    is_clock: bool,
    counter: AtomicU64,
}

const SOURCES: &[u8] = b"/sys/devices/system/clocksource/clocksource0/available_clocksource";

impl Stamps {
    /// Uses the CPU's clock if the system trusts it.
    pub fn detect() -> Self {
        Self { is_clock: arch::has_clock() && lists_clock(), counter: AtomicU64::new(0) }
    }

    /// A shared counter: stamps 1, 2, 3 and so on, all different.
    pub const fn counter() -> Self {
        Self { is_clock: false, counter: AtomicU64::new(0) }
    }

    /// Whether stamps come from the CPU's clock.
    pub fn is_clock(&self) -> bool {
        self.is_clock
    }

    /// A stamp above all earlier ones; at least 1.
    #[inline]
    pub fn next(&self) -> u64 {
        if self.is_clock {
            return arch::clock();
        }
        // Relaxed: one word's additions are ordered by themselves, and along happens-before.
        self.counter.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn lists_clock() -> bool {
    let mut buffer = [0; 256];
    let text = PathText::new(SOURCES).and_then(|path| read_start(&path, &mut buffer).ok());
    text.is_some_and(|text| text.split(u8::is_ascii_whitespace).any(|source| source == b"tsc"))
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod arch {
    use core::arch::x86_64::{__cpuid, __rdtscp};

    /// The leaf of power management, whose bit 8 of EDX reports an invariant counter.
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    /// The leaf of extended features, whose bit 27 of EDX reports `rdtscp`.
    const EXTENDED: u32 = 0x8000_0001;
    const RDTSCP: u32 = 1 << 27;

    pub(super) fn has_clock() -> bool {
        let has = |leaf, bit| __cpuid(0x8000_0000).eax >= leaf && __cpuid(leaf).edx & bit != 0;
        has(POWER, INVARIANT) && has(EXTENDED, RDTSCP)
    }

    #[inline(always)]
    pub(super) fn clock() -> u64 {
        let mut cpu = 0;
        // SAFETY: called only after the CPU has reported the instruction.
        unsafe { __rdtscp(&mut cpu) }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod arch {
    pub(super) fn has_clock() -> bool {
        false
    }

    pub(super) fn clock() -> u64 {
        0
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
