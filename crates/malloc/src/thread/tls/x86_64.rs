//! Thread-local words by the initial-exec model, in two instructions.
//!
//! **What.** In a shared library `thread_local!` calls a function for each access, at the cost of
//! the rest of malloc. These 56 bytes fit the linker's static TLS surplus for `dlopen`.
//!
//! **Unsafe.** Stable Rust cannot express it without assembly.

use core::arch::{asm, global_asm};
use craton_heap::thread_cache::ThreadCache;

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
    word!("__craton_tls_countdown", "{not_begun}"),
    ".popsection",
    none = sym crate::statics::NO_CACHE,
    not_begun = const crate::statics::NOT_BEGUN,
);

macro_rules! place {
    ($name:literal) => {
        concat!("mov {p}, qword ptr [rip + ", $name, "@GOTTPOFF]")
    };
}

macro_rules! read {
    ($name:literal) => {{
        let word: usize;
        // SAFETY: a word defined above, which only this thread uses.
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

macro_rules! write {
    ($name:literal, $word:expr) => {{
        // SAFETY: as in `read`.
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

/// Requests without a thread cache; returns the earlier ones.
pub(crate) fn count_use() -> u64 {
    let uses: u64;
    // SAFETY: as in `read`.
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

/// Counts bytes down for the heap profile; returns what is left.
#[inline(always)]
pub(crate) fn count_bytes(bytes: i64) -> i64 {
    let left = read!("__craton_tls_countdown") as i64 - bytes;
    set_countdown(left);
    left
}

#[inline(always)]
pub(crate) fn set_countdown(bytes: i64) {
    write!("__craton_tls_countdown", bytes);
}

/// In the part of a request that takes locks.
#[inline(always)]
pub(crate) fn is_inside() -> bool {
    read!("__craton_tls_inside") != 0
}

/// Returns the old value. A compiler barrier for surrounding accesses.
#[inline(always)]
pub(crate) fn swap_inside(inside: u64) -> u64 {
    let before: u64;
    // SAFETY: as in `read`.
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

#[inline(always)]
pub(crate) fn get() -> *mut ThreadCache {
    let (offset, cache): (usize, *mut ThreadCache);
    // SAFETY: as in `read`; the offset is constant, so a loop may read it once.
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

pub(crate) fn set(cache: *mut ThreadCache) {
    write!("__craton_tls_cache", cache);
}

/// An address; 0 if not yet requested; 1 if not allowed.
#[inline(always)]
pub(crate) fn arrays() -> usize {
    read!("__craton_tls_arrays")
}

pub(crate) fn set_arrays(arrays: usize) {
    write!("__craton_tls_arrays", arrays);
}

/// The innermost running constructor, an address on its stack; 0 for none.
pub(crate) fn building() -> usize {
    read!("__craton_tls_building")
}

pub(crate) fn set_building(building: usize) {
    write!("__craton_tls_building", building);
}

/// 0 if unset.
pub(crate) fn number() -> usize {
    read!("__craton_tls_number")
}

pub(crate) fn set_number(number: usize) {
    write!("__craton_tls_number", number);
}
