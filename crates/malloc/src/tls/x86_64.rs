//! The thread's pointer by the initial-exec model, in two instructions.
//!
//! **What.** `thread_local!` in a shared library calls a function for each access, which costs as much as the rest of malloc.
//! Forty bytes of static thread-local memory are within the surplus that the dynamic linker keeps for `dlopen`.
//!
//! **Unsafe.** Defines and reads thread-local words by assembly, which stable Rust cannot express.

use crate::cpu_cache::thread::ThreadCache;
use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tdata,\"awT\",@progbits",
    ".globl __craton_tls_cache",
    ".hidden __craton_tls_cache",
    ".type __craton_tls_cache,@object",
    ".size __craton_tls_cache,8",
    ".balign 8",
    "__craton_tls_cache:",
    ".quad {none}",
    ".globl __craton_tls_uses",
    ".hidden __craton_tls_uses",
    ".type __craton_tls_uses,@object",
    ".size __craton_tls_uses,8",
    "__craton_tls_uses:",
    ".quad 0",
    ".globl __craton_tls_inside",
    ".hidden __craton_tls_inside",
    ".type __craton_tls_inside,@object",
    ".size __craton_tls_inside,8",
    "__craton_tls_inside:",
    ".quad 0",
    ".globl __craton_tls_arrays",
    ".hidden __craton_tls_arrays",
    ".type __craton_tls_arrays,@object",
    ".size __craton_tls_arrays,8",
    "__craton_tls_arrays:",
    ".quad 0",
    ".globl __craton_tls_building",
    ".hidden __craton_tls_building",
    ".type __craton_tls_building,@object",
    ".size __craton_tls_building,8",
    "__craton_tls_building:",
    ".quad 0",
    ".popsection",
    none = sym super::NO_CACHE,
);

/// Counts a request of the calling thread that its own cache did not serve; returns how many there were before.
pub(crate) fn count_use() -> u64 {
    let uses: u64;
    // SAFETY: reads and writes the word defined above; only this thread knows it.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_uses@GOTTPOFF]",
            "mov {u}, qword ptr fs:[{p}]",
            "inc qword ptr fs:[{p}]",
            p = out(reg) _,
            u = out(reg) uses,
            options(nostack),
        );
    }
    uses
}

/// Whether the calling thread noted that it is in a request.
#[inline(always)]
pub(crate) fn is_inside() -> bool {
    let inside: u64;
    // SAFETY: reads the word defined above, at its offset from the thread pointer.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_inside@GOTTPOFF]",
            "mov {p}, qword ptr fs:[{p}]",
            p = out(reg) inside,
            options(nostack, preserves_flags),
        );
    }
    inside != 0
}

/// Notes whether it is; returns what it had noted. What stands before and after it in the program stays there.
#[inline(always)]
pub(crate) fn swap_inside(inside: u64) -> u64 {
    let before: u64;
    // SAFETY: reads and writes the word defined above; only this thread knows it.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_inside@GOTTPOFF]",
            "mov {b}, qword ptr fs:[{p}]",
            "mov qword ptr fs:[{p}], {v}",
            p = out(reg) _,
            b = out(reg) before,
            v = in(reg) inside,
            options(nostack, preserves_flags),
        );
    }
    before
}

/// The calling thread's cache.
#[inline(always)]
pub(crate) fn get() -> *mut ThreadCache {
    let (offset, cache): (usize, *mut ThreadCache);
    // SAFETY: reads the word defined above, at its offset from the thread pointer; touches nothing else. The offset is the same for all
    // threads and all time, so that a loop need read it once only.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_cache@GOTTPOFF]",
            p = out(reg) offset,
            options(pure, nomem, nostack, preserves_flags),
        );
        asm!(
            "mov {c}, qword ptr fs:[{p}]",
            p = in(reg) offset,
            c = out(reg) cache,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    cache
}

/// Sets the calling thread's cache.
pub(crate) fn set(cache: *mut ThreadCache) {
    // SAFETY: writes the word defined above; only this thread reads it.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_cache@GOTTPOFF]",
            "mov qword ptr fs:[{p}], {v}",
            p = out(reg) _,
            v = in(reg) cache,
            options(nostack, preserves_flags),
        );
    }
}

/// Where the calling thread finds the processors' arrays of object caches: an address, 0 when it has not asked yet, or 1 when it must not.
#[inline(always)]
pub(crate) fn arrays() -> usize {
    let arrays: usize;
    // SAFETY: reads the word defined above, at its offset from the thread pointer.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_arrays@GOTTPOFF]",
            "mov {p}, qword ptr fs:[{p}]",
            p = out(reg) arrays,
            options(readonly, nostack, preserves_flags),
        );
    }
    arrays
}

/// Sets that.
pub(crate) fn set_arrays(arrays: usize) {
    // SAFETY: writes the word defined above; only this thread reads it.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_arrays@GOTTPOFF]",
            "mov qword ptr fs:[{p}], {v}",
            p = out(reg) _,
            v = in(reg) arrays,
            options(nostack, preserves_flags),
        );
    }
}

/// The innermost of the constructors that the calling thread runs, an address on its stack; 0 for none.
pub(crate) fn building() -> usize {
    let building: usize;
    // SAFETY: reads the word defined above, at its offset from the thread pointer.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_building@GOTTPOFF]",
            "mov {p}, qword ptr fs:[{p}]",
            p = out(reg) building,
            options(readonly, nostack, preserves_flags),
        );
    }
    building
}

/// Sets that.
pub(crate) fn set_building(building: usize) {
    // SAFETY: writes the word defined above; only this thread reads it.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + __craton_tls_building@GOTTPOFF]",
            "mov qword ptr fs:[{p}], {v}",
            p = out(reg) _,
            v = in(reg) building,
            options(nostack, preserves_flags),
        );
    }
}
