//! Cache-line write-back, which makes stores durable.
//!
//! **From.** Intel's manual, volume 1, chapter 12: `clwb` keeps the line cached, `clflushopt` does
//! not; `sfence` waits for both, `clflush` for each line. Non-temporal stores need only the fence.
//! **Unsafe.** These instructions in assembly (the intrinsics are unstable), once the CPU has
//! reported them.

use craton_base::LINE_BYTES;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBack {
    instruction: Instruction,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Instruction {
    Clwb,
    Clflushopt,
    Clflush,
}

const LINE: usize = LINE_BYTES as usize;

impl WriteBack {
    pub fn detect() -> Option<Self> {
        instruction().map(|instruction| Self { instruction })
    }

    pub fn name(self) -> &'static str {
        match self.instruction {
            Instruction::Clwb => "clwb",
            Instruction::Clflushopt => "clflushopt",
            Instruction::Clflush => "clflush",
        }
    }

    /// Begins the write-back of an aligned word's line.
    #[inline(always)]
    pub fn flush<W>(self, word: &W) {
        const { assert!(size_of::<W>() <= LINE && align_of::<W>() == size_of::<W>(), "more than a line") };
        flush(self.instruction, core::ptr::from_ref(word).cast());
    }

    /// # Safety
    /// The address is mapped.
    #[inline(always)]
    pub(crate) unsafe fn flush_at(self, at: *const u8) {
        flush(self.instruction, at);
    }

    /// # Safety
    /// `to` is a multiple of 64, and its line is mapped for writing.
    #[inline(always)]
    pub(crate) unsafe fn store_line(self, to: *mut u64, line: &craton_base::Line) {
        // SAFETY: by the contract.
        unsafe { store_line(to, line) };
    }

    /// Waits until this thread's write-backs are durable.
    #[inline(always)]
    pub fn fence(self) {
        fence();
    }
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
fn instruction() -> Option<Instruction> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    /// A leaf, and bits of its EBX.
    const FEATURES: u32 = 7;
    const CLFLUSHOPT: u32 = 1 << 23;
    const CLWB: u32 = 1 << 24;
    /// EDX, leaf 1.
    const CLFLUSH: u32 = 1 << 19;
    let has = if __cpuid(0).eax < FEATURES { 0 } else { __cpuid_count(FEATURES, 0).ebx };
    match (has & CLWB != 0, has & CLFLUSHOPT != 0) {
        (true, _) => Some(Instruction::Clwb),
        (_, true) => Some(Instruction::Clflushopt),
        _ => (__cpuid(1).edx & CLFLUSH != 0).then_some(Instruction::Clflush),
    }
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[inline(always)]
fn flush(instruction: Instruction, at: *const u8) {
    // SAFETY: the CPU reported the instruction; the address can be read.
    unsafe {
        match instruction {
            Instruction::Clwb => core::arch::asm!("clwb [{}]", in(reg) at, options(nostack, preserves_flags)),
            Instruction::Clflushopt => {
                core::arch::asm!("clflushopt [{}]", in(reg) at, options(nostack, preserves_flags));
            }
            Instruction::Clflush => core::arch::asm!("clflush [{}]", in(reg) at, options(nostack, preserves_flags)),
        }
    }
}

/// # Safety
/// As [`WriteBack::store_line`].
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[inline(always)]
unsafe fn store_line(to: *mut u64, line: &craton_base::Line) {
    // The intrinsics are weaker than plain stores for later code of the thread.
    // SAFETY: the source is 64 readable bytes; the target is writable and aligned by contract.
    unsafe {
        core::arch::asm!(
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movntps [{to}], {a}",
            "movntps [{to} + 16], {b}",
            "movntps [{to} + 32], {c}",
            "movntps [{to} + 48], {d}",
            from = in(reg) line,
            to = in(reg) to,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[inline(always)]
fn fence() {
    // SAFETY: every x86-64 CPU has it.
    unsafe { core::arch::asm!("sfence", options(nostack, preserves_flags)) };
}

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
fn instruction() -> Option<Instruction> {
    None
}

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
fn flush(_: Instruction, _: *const u8) {}

/// # Safety
/// As [`WriteBack::store_line`].
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
unsafe fn store_line(to: *mut u64, line: &craton_base::Line) {
    // SAFETY: by the contract.
    unsafe { to.cast::<craton_base::Line>().write(*line) };
}

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
fn fence() {}

#[cfg(test)]
mod tests;
