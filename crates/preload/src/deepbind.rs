//! `dlopen` for `RTLD_DEEPBIND`: such a library finds the C library's `malloc`, a dependency's,
//! before ours, and objects meet in the wrong `free`.
//!
//! **What.** [`redirect`] first points the C library's symbols to the process's functions; if their
//! pages cannot be written, it prints a line. A library whose dependencies include another
//! allocator keeps that. `build.rs` links `craton_dlopen` as `dlopen`, in the shared library alone.
//!
//! **Cost.** 1 µs for each `dlopen`; up to 72 KiB of private pages.
//!
//! **Unsafe.** Exports a name that the whole process calls. The C library's `dlopen` reads its
//! return address for the caller's search path, so the assembly jumps there.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use craton_os::{Line, loaded, symbol};

const RTLD_DEEPBIND: c_int = 8;

core::arch::global_asm!(
    ".pushsection .text.craton_dlopen, \"ax\", @progbits",
    ".globl craton_dlopen",
    ".hidden craton_dlopen",
    ".type craton_dlopen, @function",
    "craton_dlopen:",
    "endbr64",
    "push rdi",
    "push rsi",
    "sub rsp, 8",
    "mov edi, esi",
    "call {before}",
    "add rsp, 8",
    "pop rsi",
    "pop rdi",
    "jmp rax",
    ".size craton_dlopen, . - craton_dlopen",
    ".popsection",
    before = sym before,
);

extern "C" fn before(mode: c_int) -> usize {
    if mode & RTLD_DEEPBIND != 0 {
        redirect();
    }
    unsafe extern "C" {
        fn craton_dlopen();
    }
    match loaded::function(c"dlopen", craton_dlopen as *const () as usize) {
        0 => none as *const () as usize,
        found => found,
    }
}

extern "C" fn none(_file: *const c_char, _mode: c_int) -> *mut c_void {
    null_mut()
}

const NAMES: [&CStr; 18] = [
    c"malloc",
    c"free",
    c"calloc",
    c"realloc",
    c"reallocarray",
    c"aligned_alloc",
    c"memalign",
    c"posix_memalign",
    c"valloc",
    c"pvalloc",
    c"cfree",
    c"malloc_usable_size",
    c"malloc_trim",
    c"malloc_stats",
    c"malloc_info",
    c"mallopt",
    c"mallinfo",
    c"mallinfo2",
];

/// Only if the process's functions are not the C library's: opened late, we serve only our callers.
#[cold]
fn redirect() {
    if !loaded::redirect(c"libc.so.6", &NAMES.map(|name| (name, symbol::find(name)))) {
        let line = Line::new()
            .text("craton: dlopen: memory of libc.so.6 cannot be made writable: a library that is opened with ");
        line.text("RTLD_DEEPBIND has the C library's malloc; it must free its memory itself, and no other").print();
    }
}
