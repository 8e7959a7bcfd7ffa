//! Stacks: where a thread is and how it came there, taken without memory and without a lock.
//!
//! **What.** [`capture`] follows the calling thread's frames outwards and notes the return addresses; [`capture_from`] begins at
//! registers that a signal handler was given; [`capture_outside`] leaves the library's own frames out. [`crate::names`] turns addresses
//! into text.
//!
//! **From.** The DWARF call frame information that every program carries in `.eh_frame` (System V ABI for x86-64, §6.2), found by
//! `_dl_find_object` (glibc 2.35 and later, takes no lock) or else by `dl_iterate_phdr`. What it says of an address is kept in a table of
//! rules, so that a frame is two loads of a rule and two of the stack. Code without such information (made at run time, or stripped of
//! it) is passed by its frame pointer where that looks like one.
//!
//! **Units.** Addresses. Each one noted lies behind the instruction that was under way: a return address, or, of a frame that a signal
//! interrupted, one byte past the interrupted instruction's start. Whoever looks one up looks up the byte before it.
//!
//! **Invariants.** `U1` nothing is read that is not a word of a page known to be readable: its own, or one that was asked for.
//! `U2` no memory is asked for, no lock is taken, `errno` is kept. `U3` a stack has at most as many frames as the caller has room for.
//!
//! **Threads.** Any, also inside a signal handler that interrupted this very code: the tables hold words that check themselves
//! ([`table`]).
//!
//! **Failure.** A stack that cannot be followed ends early. Rules of a module that was unloaded go when a later one at the same place is first
//! met at an address without a rule: a frame of it that comes before may be wrong; memory is never touched that may not be.
//!
//! **Cost.** Some nanoseconds a frame once its rule is known, half a microsecond before; a system call for each page of a stack that was
//! not met before. 170 KiB of zeros, of which the used part becomes memory.
//!
//! **Not here.** Other processors than x86-64, and builds without assembly: their stacks are empty.

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod cfi;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod known;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod module;
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod reader;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod rules;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod stack;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod table;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
use portable as arch;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
use x86_64 as arch;

/// Whether stacks can be taken here; where not, all are empty.
pub const SUPPORTED: bool = arch::SUPPORTED;

/// The registers at which a stack begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// The instruction.
    pub pc: usize,
    /// The stack pointer.
    pub sp: usize,
    /// The frame pointer, or whatever else the register holds.
    pub bp: usize,
    /// RBX.
    pub bx: usize,
}

/// Notes the return addresses of the calling function, the innermost first: where it goes back to, where its caller does, and so on to the
/// thread's first function or until `into` is full. Returns how many.
#[inline(always)]
pub fn capture(into: &mut [usize]) -> usize {
    arch::walk(arch::here(), false, into)
}

/// As [`capture`], without the leading frames that lie in the library itself. Linked into the program there is nothing that tells them
/// apart, and they stay.
#[inline(always)]
pub fn capture_outside(into: &mut [usize]) -> usize {
    arch::walk(arch::here(), true, into)
}

/// The stack that registers belong to: of the calling thread, at most as far in as the caller, or of the code that a signal
/// interrupted. The first address is one past `pc`.
pub fn capture_from(registers: Registers, into: &mut [usize]) -> usize {
    let Some((first, rest)) = into.split_first_mut() else { return 0 };
    *first = registers.pc.wrapping_add(1);
    1 + arch::walk(registers, false, rest)
}

/// Where the calling thread's stack holds what is in use once `main` has returned: the stack pointer of the code that called it. `None` while
/// code of the program is still on the stack, or where that cannot be told, as in a program that has the library linked into it.
#[inline(always)]
pub fn after_main() -> Option<usize> {
    arch::after_main(arch::here())
}

/// Forgets all rules: after modules were unloaded, others may lie in their place.
pub fn forget() {
    arch::forget();
}

#[cfg(all(test, target_arch = "x86_64", not(feature = "portable")))]
mod tests;
