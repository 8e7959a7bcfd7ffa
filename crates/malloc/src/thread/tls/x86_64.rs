//! The thread's pointer by the initial-exec model, in two instructions.
//!
//! **What.** `thread_local!` in a shared library calls a function for each access, which costs as much as the rest of malloc.
//! Forty-eight bytes of static thread-local memory are within the surplus that the dynamic linker keeps for `dlopen`.
//!
//! **Unsafe.** Defines and reads thread-local words by assembly, which stable Rust cannot express.

use core::arch::{asm, global_asm};
use craton_heap::thread_cache::ThreadCache;

/// A word of each thread: its name, and what it begins with.
macro_rules! word {
    ($name:literal, $first:literal) => {
        concat!(
            ".globl ",
            $name,
            "\n.hidden ",
            $name,
            "\n.type ",
            $name,
            ",@object\n.size ",
            $name,
            ",8\n.balign 8\n",
            $name,
            ":\n.quad ",
            $first,
        )
    };
}

global_asm!(
    ".pushsection .tdata,\"awT\",@progbits",
    word!("__craton_tls_cache", "{none}"),
    word!("__craton_tls_uses", "0"),
    word!("__craton_tls_inside", "0"),
    word!("__craton_tls_arrays", "0"),
    word!("__craton_tls_building", "0"),
    word!("__craton_tls_number", "0"),
    ".popsection",
    none = sym crate::statics::NO_CACHE,
);

/// Where a word lies, from the thread pointer: an instruction that puts it into `p`.
macro_rules! place {
    ($name:literal) => {
        concat!("mov {p}, qword ptr [rip + ", $name, "@GOTTPOFF]")
    };
}

/// The calling thread's word of that name.
macro_rules! read {
    ($name:literal) => {{
        let word: usize;
        // SAFETY: reads a word defined above, at its offset from the thread pointer; only this thread writes it.
        unsafe {
            asm!(
                place!($name),
                "mov {p}, qword ptr fs:[{p}]",
                p = out(reg) word,
                options(readonly, nostack, preserves_flags),
            );
        }
        word
    }};
}

/// Sets the calling thread's word of that name.
macro_rules! write {
    ($name:literal, $word:expr) => {{
        // SAFETY: writes a word defined above; only this thread reads it.
        unsafe {
            asm!(
                place!($name),
                "mov qword ptr fs:[{p}], {v}",
                p = out(reg) _,
                v = in(reg) $word,
                options(nostack, preserves_flags),
            );
        }
    }};
}

/// Counts a request of the calling thread that its own cache did not serve; returns how many there were before.
pub(crate) fn count_use() -> u64 {
    let uses: u64;
    // SAFETY: reads and writes the word defined above; only this thread knows it.
    unsafe {
        asm!(
            place!("__craton_tls_uses"),
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
    read!("__craton_tls_inside") != 0
}

/// Notes whether it is; returns what it had noted. What stands before and after it in the program stays there.
#[inline(always)]
pub(crate) fn swap_inside(inside: u64) -> u64 {
    let before: u64;
    // SAFETY: reads and writes the word defined above; only this thread knows it.
    unsafe {
        asm!(
            place!("__craton_tls_inside"),
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
            place!("__craton_tls_cache"),
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
    write!("__craton_tls_cache", cache);
}

/// Where the calling thread finds the processors' arrays of object caches: an address, 0 when it has not asked yet, or 1 when it must not.
#[inline(always)]
pub(crate) fn arrays() -> usize {
    read!("__craton_tls_arrays")
}

/// Sets that.
pub(crate) fn set_arrays(arrays: usize) {
    write!("__craton_tls_arrays", arrays);
}

/// The innermost of the constructors that the calling thread runs, an address on its stack; 0 for none.
pub(crate) fn building() -> usize {
    read!("__craton_tls_building")
}

/// Sets that.
pub(crate) fn set_building(building: usize) {
    write!("__craton_tls_building", building);
}

/// What is noted of the calling thread's number: 0 for nothing.
pub(crate) fn number() -> usize {
    read!("__craton_tls_number")
}

/// Notes that.
pub(crate) fn set_number(number: usize) {
    write!("__craton_tls_number", number);
}
