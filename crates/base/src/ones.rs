//! Counts set bits: 6 cycles for eight words by the CPU's instruction, which the build's baseline
//! lacks, else six times as long.
//!
//! **Unsafe.** Uses the instruction after the CPU has reported it.

use crate::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug)]
pub struct Ones {
    has_instruction: bool,
}

impl Ones {
    /// Slow in a virtual machine: ask once for many groups.
    pub fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        let has_instruction = core::arch::x86_64::__cpuid(1).ecx >> 23 & 1 == 1;
        #[cfg(not(target_arch = "x86_64"))]
        let has_instruction = false;
        Self { has_instruction }
    }

    pub const fn portable() -> Self {
        Self { has_instruction: false }
    }

    /// Of each `N` words. Concurrent changes count or do not.
    #[inline]
    pub fn count<const N: usize>(self, words: &[AtomicU64], counts: &mut [u16]) {
        #[cfg(target_arch = "x86_64")]
        if self.has_instruction {
            // SAFETY: `new` alone sets `has_instruction`, and asked the CPU.
            return unsafe { count_by_instruction::<N>(words, counts) };
        }
        count::<N>(words, counts);
    }
}

/// # Safety
/// The CPU has the instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn count_by_instruction<const N: usize>(words: &[AtomicU64], counts: &mut [u16]) {
    count::<N>(words, counts);
}

#[inline(always)]
fn count<const N: usize>(words: &[AtomicU64], counts: &mut [u16]) {
    for (group, count) in words.as_chunks::<N>().0.iter().zip(counts) {
        *count = group.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum::<u32>() as u16;
    }
}

#[cfg(test)]
mod tests;
