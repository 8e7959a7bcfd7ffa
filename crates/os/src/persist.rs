//! Cache-line write-back, which makes stores durable where caches are not.
//!
//! **From.** Intel's manual, volume 1, chapter 12: `clwb` keeps the line cached, `clflushopt` does
//! not; both wait for older stores to the same line, and `sfence` waits for both. The older
//! `clflush` waits for each line and is not used. [`WriteBack::detect`] is `None` without either.
//! **Unsafe.** Names these instructions in assembly, since the intrinsics are unstable, and only
//! after the CPU has reported them.

/// The CPU's best way to make stores durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBack {
    instruction: Instruction,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Instruction {
    Clwb,
    Clflushopt,
}

const LINE: usize = 64;

impl WriteBack {
    /// Asks the CPU; `None` if it has neither instruction, or is of another architecture.
    pub fn detect() -> Option<Self> {
        instruction().map(|instruction| Self { instruction })
    }

    /// The instruction's name, for reports.
    pub fn name(self) -> &'static str {
        match self.instruction {
            Instruction::Clwb => "clwb",
            Instruction::Clflushopt => "clflushopt",
        }
    }

    /// Begins to write back the line of a word, which must be aligned, so that it is on one line.
    #[inline(always)]
    pub fn flush<W>(self, word: &W) {
        const { assert!(size_of::<W>() <= LINE && align_of::<W>() == size_of::<W>(), "more than a line") };
        flush(self.instruction, core::ptr::from_ref(word).cast());
    }

    /// Waits until this thread's write-backs are in memory, or on a path that survives.
    #[inline(always)]
    pub fn fence(self) {
        fence();
    }
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
fn instruction() -> Option<Instruction> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    /// The leaf of features, and its bits in EBX.
    const FEATURES: u32 = 7;
    const CLFLUSHOPT: u32 = 1 << 23;
    const CLWB: u32 = 1 << 24;
    if __cpuid(0).eax < FEATURES {
        return None;
    }
    let has = __cpuid_count(FEATURES, 0).ebx;
    match (has & CLWB != 0, has & CLFLUSHOPT != 0) {
        (true, _) => Some(Instruction::Clwb),
        (_, true) => Some(Instruction::Clflushopt),
        _ => None,
    }
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[inline(always)]
fn flush(instruction: Instruction, at: *const u8) {
    // SAFETY: only `detect` makes an `Instruction`, after the CPU has reported it. The address is
    // that of a readable value; the instructions change no value, flag or stack.
    unsafe {
        match instruction {
            Instruction::Clwb => core::arch::asm!("clwb [{}]", in(reg) at, options(nostack, preserves_flags)),
            Instruction::Clflushopt => {
                core::arch::asm!("clflushopt [{}]", in(reg) at, options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[inline(always)]
fn fence() {
    // SAFETY: every CPU of this architecture has the instruction.
    unsafe { core::arch::asm!("sfence", options(nostack, preserves_flags)) };
}

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
fn instruction() -> Option<Instruction> {
    None
}

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
fn flush(_: Instruction, _: *const u8) {}

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
fn fence() {}

#[cfg(test)]
mod tests;
