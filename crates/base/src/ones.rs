//! How many bits are set in groups of words.
//!
//! **What.** [`Ones`] counts with the processor's instruction for it, where there is one. We are built for machines
//! that may have none, and the compiler's way without takes six times as long.
//!
//! **Unsafe.** The instruction is used after the processor has said that it has it.
//!
//! **Cost.** A group of eight words takes 6 cycles with the instruction.

use crate::atomic::{AtomicU64, Ordering};

/// A way to count, as good as the processor has.
#[derive(Clone, Copy, Debug)]
pub struct Ones {
    /// Only [`Ones::new`] says yes.
    has_instruction: bool,
}

impl Ones {
    /// Asks the processor, which is slow in a virtual machine: once for many groups.
    pub fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        let has_instruction = core::arch::x86_64::__cpuid(1).ecx >> 23 & 1 == 1;
        #[cfg(not(target_arch = "x86_64"))]
        let has_instruction = false;
        Self { has_instruction }
    }

    /// Without the instruction.
    pub const fn portable() -> Self {
        Self { has_instruction: false }
    }

    /// For each group of `N` words how many bits are set, at most `u16::MAX`. Words that change meanwhile are counted
    /// as they were at some time.
    #[inline]
    pub fn count<const N: usize>(self, words: &[AtomicU64], counts: &mut [u16]) {
        #[cfg(target_arch = "x86_64")]
        if self.has_instruction {
            // SAFETY: `new` is the only one to say that there is the instruction, and has asked.
            return unsafe { count_by_instruction::<N>(words, counts) };
        }
        count::<N>(words, counts);
    }
}

impl Default for Ones {
    fn default() -> Self {
        Self::new()
    }
}

/// # Safety
/// The processor has the instruction.
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
