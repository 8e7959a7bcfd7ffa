//! A clock whose readings grow along every order that threads can observe.
//!
//! **What.** Unordered readings may be equal. The clock begins anew with the machine.
//! **From.** Intel's manual, volume 3, §17.17: `rdtscp` reads the counter after all earlier loads.
//! Linux lists an invariant counter as a clock source only while no CPU runs behind another.
//! **Unsafe.** Calls the instruction, after the CPU has reported it.

use crate::small_file::{PathText, read_start};

const SOURCES: &[u8] = b"/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// `None`: the processor has none, or the system does not trust it.
pub fn stamp_clock() -> Option<fn() -> u64> {
    (arch::has_clock() && lists_clock()).then_some(arch::clock)
}

fn lists_clock() -> bool {
    let mut buffer = [0; 256];
    let text = PathText::new(SOURCES).and_then(|path| read_start(&path, &mut buffer).ok());
    text.is_some_and(|text| text.split(u8::is_ascii_whitespace).any(|source| source == b"tsc"))
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod arch {
    use core::arch::x86_64::{__cpuid, __rdtscp};

    /// EDX bit 8: invariant counter.
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    /// EDX bit 27: `rdtscp`.
    const EXTENDED: u32 = 0x8000_0001;
    const RDTSCP: u32 = 1 << 27;

    pub(super) fn has_clock() -> bool {
        let has = |leaf, bit| __cpuid(0x8000_0000).eax >= leaf && __cpuid(leaf).edx & bit != 0;
        has(POWER, INVARIANT) && has(EXTENDED, RDTSCP)
    }

    pub(super) fn clock() -> u64 {
        let mut cpu = 0;
        // SAFETY: the CPU has reported the instruction.
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
