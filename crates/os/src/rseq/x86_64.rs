//! The critical sections, on x86-64.
//!
//! A section ends in the one store that commits; interrupted before it, it restarts. The kernel
//! finds sections by descriptors; the abort address follows glibc's signature.
//! **Unsafe.** All of it.

use super::{AREA_SHIFT, Counting, PROCESSORS, Place, Rseq, Table};
use core::arch::asm;
use core::mem::offset_of;

pub(super) const SUPPORTED: bool = true;

/// glibc's, before the abort address.
pub(super) const SIGNATURE: u32 = 0x5305_3053;

/// # Safety
/// A word lies at this distance from the thread pointer.
#[inline(always)]
pub(super) unsafe fn field(at: isize) -> i32 {
    let value: i32;
    // SAFETY: by the contract.
    unsafe {
        asm!("mov {v:e}, dword ptr fs:[{at}]", v = out(reg) value, at = in(reg) at, options(readonly, nostack, preserves_flags));
    }
    value
}

/// Descriptor at 62 of the range 63 to 64; restarts at 67 on abort.
macro_rules! descriptor {
    () => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "62: .long 0, 0\n",
            ".quad 63f, 64f - 63f, 66f\n",
            ".popsection\n",
            ".pushsection .text.unlikely.craton_rseq, \"ax\"\n",
            // The operand of an instruction that never runs.
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long {signature}\n",
            "66: jmp 67f\n",
            ".popsection\n",
            "67:\n",
        )
    };
}

/// Jumps to 5 if there is no memory.
macro_rules! enter {
    () => {
        concat!(
            descriptor!(),
            "xor {r:e}, {r:e}\n",
            "cmp dword ptr fs:[{area} + 4], 0\n",
            "jl 65f\n",
            "lea {m}, [rip + 62b]\n",
            "mov qword ptr fs:[{area} + 8], {m}\n",
            "63:\n",
            "mov {m:e}, dword ptr fs:[{number}]\n",
            "cmp {m:e}, {processors}\n",
            "jae 65f\n",
            "mov {m}, qword ptr [{table} + {m}*8]\n",
            "test {m}, {m}\n",
            "jz 65f\n",
        )
    };
}

/// # Safety
/// As [`super::Rseq::pop`].
#[inline]
pub(super) unsafe fn pop(area: isize, number: isize, table: &Table, place: Place) -> *mut u8 {
    let object: *mut u8;
    // SAFETY: by the contract, the memory is this CPU's until the section is interrupted.
    unsafe {
        asm!(
            enter!(),
            "mov {n:e}, dword ptr [{m} + {counts}]",
            "test {n:e}, {n:e}",
            "jz 65f",
            "lea {s}, [{m} + {slots}]",
            "mov {r}, qword ptr [{s} + {n}*8 - 8]",
            "dec {n:e}",
            "mov dword ptr [{m} + {counts}], {n:e}",
            "64:",
            "65:",
            r = out(reg) object, m = out(reg) _, n = out(reg) _, s = out(reg) _,
            area = in(reg) area, number = in(reg) number, table = in(reg) table.as_ptr(),
            counts = in(reg) place.counts as usize, slots = in(reg) place.slots as usize,
            signature = const SIGNATURE, processors = const PROCESSORS,
            options(nostack),
        );
    }
    object
}

/// # Safety
/// As [`super::Rseq::push`].
#[inline]
pub(super) unsafe fn push(area: isize, number: isize, table: &Table, place: Place, pointer: *mut u8) -> bool {
    let done: usize;
    // SAFETY: as in `pop`. The pointer is written behind the last that counts.
    unsafe {
        asm!(
            enter!(),
            "mov {n:e}, dword ptr [{m} + {counts}]",
            "cmp {n:e}, dword ptr [{m} + {counts} + 4]",
            "jae 65f",
            "lea {s}, [{m} + {slots}]",
            "mov qword ptr [{s} + {n}*8], {pointer}",
            "inc {n:e}",
            "mov dword ptr [{m} + {counts}], {n:e}",
            "64:",
            "mov {r:e}, 1",
            "65:",
            r = out(reg) done, m = out(reg) _, n = out(reg) _, s = out(reg) _, pointer = in(reg) pointer,
            area = in(reg) area, number = in(reg) number, table = in(reg) table.as_ptr(),
            counts = in(reg) place.counts as usize, slots = in(reg) place.slots as usize,
            signature = const SIGNATURE, processors = const PROCESSORS,
            options(nostack),
        );
    }
    done != 0
}

/// The CPU's array in `{m}`; arithmetic saves the table load.
macro_rules! enter_known {
    () => {
        concat!(
            descriptor!(),
            "lea {m}, [rip + 62b]\n",
            "mov qword ptr fs:[{area} + 8], {m}\n",
            "63:\n",
            "mov {m:e}, dword ptr fs:[{number}]\n",
            "shl {m}, {shift}\n",
            "add {m}, {at}\n",
        )
    };
}

/// # Safety
/// As [`super::Rseq::pop_counted`].
#[inline(always)]
pub(super) unsafe fn pop_counted(rseq: &Rseq, at: usize, owner: usize) -> *mut u8 {
    let object: *mut u8;
    // SAFETY: as in `pop`. One store changes both counts.
    unsafe {
        asm!(
            enter_known!(),
            "cmp qword ptr [{m} + {owned}], {owner}",
            "jne 65f",
            "mov {n}, qword ptr [{m}]",
            "movzx {r:e}, {n:l}",
            "test {r:e}, {r:e}",
            "jz 68f",
            "mov {r}, qword ptr [{m} + {r}*8 + {slots} - 8]",
            "add {n}, 255",
            "mov qword ptr [{m}], {n}",
            "64:",
            "68:",
            // Rare: out of line.
            ".pushsection .text.unlikely.craton_rseq, \"ax\"",
            "65: xor {r:e}, {r:e}",
            "jmp 68b",
            ".popsection",
            r = out(reg) object, m = out(reg) _, n = out(reg) _,
            at = in(reg) at, owner = in(reg) owner,
            area = in(reg) rseq.offset, number = in(reg) rseq.number,
            owned = const offset_of!(Counting, owner), slots = const offset_of!(Counting, slots),
            signature = const SIGNATURE, shift = const AREA_SHIFT,
            options(nostack),
        );
    }
    object
}

/// # Safety
/// As [`super::Rseq::push_counted`].
#[inline(always)]
pub(super) unsafe fn push_counted(rseq: &Rseq, at: usize, pointer: *mut u8) -> bool {
    // SAFETY: as in `pop_counted`. The pointer is written behind the last that counts.
    unsafe {
        asm!(
            enter_known!(),
            "mov {n}, qword ptr [{m}]",
            "movzx {c:e}, {n:l}",
            "cmp {c:e}, dword ptr [{m} + {capacity}]",
            "jae {full}",
            "mov qword ptr [{m} + {c}*8 + {slots}], {pointer}",
            "inc {n}",
            "mov qword ptr [{m}], {n}",
            "64:",
            m = out(reg) _, c = out(reg) _, n = out(reg) _, pointer = in(reg) pointer,
            at = in(reg) at, area = in(reg) rseq.offset, number = in(reg) rseq.number,
            capacity = const offset_of!(Counting, capacity), slots = const offset_of!(Counting, slots),
            signature = const SIGNATURE, shift = const AREA_SHIFT,
            full = label { return false; },
            options(nostack),
        );
    }
    true
}

macro_rules! copy {
    ($from:literal, $to:literal) => {
        concat!(
            "xor {c:e}, {c:e}\n",
            "68: cmp {c}, {k}\n",
            "jae 69f\n",
            "mov {t}, qword ptr [{",
            $from,
            "} + {c}*8]\n",
            "mov qword ptr [{",
            $to,
            "} + {c}*8], {t}\n",
            "inc {c}\n",
            "jmp 68b\n",
            "69:\n",
        )
    };
}

/// # Safety
/// As [`super::Rseq::pop_many`].
pub(super) unsafe fn pop_many(rseq: &Rseq, at: usize, owner: usize, into: &mut [*mut u8]) -> usize {
    let taken: usize;
    // SAFETY: as in `pop_counted`. A restart writes `into` again.
    unsafe {
        asm!(
            enter_known!(),
            "xor {k:e}, {k:e}",
            "cmp qword ptr [{m} + {owned}], {owner}",
            "jne 65f",
            "mov {n}, qword ptr [{m}]",
            "movzx {c:e}, {n:l}",
            "mov {k}, {want}",
            "cmp {c}, {want}",
            "cmovb {k}, {c}",
            "sub {c}, {k}",
            "lea {s}, [{m} + {c}*8 + {slots}]",
            copy!("s", "into"),
            // The length falls by `k`, the count of takes rises by it.
            "imul {t}, {k}, 255",
            "add {n}, {t}",
            "mov qword ptr [{m}], {n}",
            "64:",
            "65:",
            m = out(reg) _, n = out(reg) _, k = out(reg) taken, c = out(reg) _, s = out(reg) _, t = out(reg) _,
            at = in(reg) at, owner = in(reg) owner, into = in(reg) into.as_mut_ptr(), want = in(reg) into.len(),
            area = in(reg) rseq.offset, number = in(reg) rseq.number,
            owned = const offset_of!(Counting, owner), slots = const offset_of!(Counting, slots),
            signature = const SIGNATURE, shift = const AREA_SHIFT,
            options(nostack),
        );
    }
    taken
}

/// # Safety
/// As [`super::Rseq::push_many`].
pub(super) unsafe fn push_many(rseq: &Rseq, at: usize, from: &[*mut u8]) -> usize {
    let put: usize;
    // SAFETY: as in `push_counted`.
    unsafe {
        asm!(
            enter_known!(),
            "mov {n}, qword ptr [{m}]",
            "movzx {c:e}, {n:l}",
            "mov {k:e}, dword ptr [{m} + {capacity}]",
            "sub {k}, {c}",
            // A closed or shrunk array may exceed its capacity.
            "mov {t:e}, 0",
            "cmovb {k}, {t}",
            "cmp {k}, {len}",
            "cmova {k}, {len}",
            // A closed area is read-only.
            "test {k}, {k}",
            "jz 65f",
            "lea {s}, [{m} + {c}*8 + {slots}]",
            copy!("from", "s"),
            "add {n}, {k}",
            "mov qword ptr [{m}], {n}",
            "64:",
            "65:",
            m = out(reg) _, n = out(reg) _, k = out(reg) put, c = out(reg) _, s = out(reg) _, t = out(reg) _,
            at = in(reg) at, from = in(reg) from.as_ptr(), len = in(reg) from.len(),
            area = in(reg) rseq.offset, number = in(reg) rseq.number,
            capacity = const offset_of!(Counting, capacity), slots = const offset_of!(Counting, slots),
            signature = const SIGNATURE, shift = const AREA_SHIFT,
            options(nostack),
        );
    }
    put
}
