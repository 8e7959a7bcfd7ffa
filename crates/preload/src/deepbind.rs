//! `dlopen`, for libraries that are opened with `RTLD_DEEPBIND`.
//!
//! **What.** Such a library finds the C library's `malloc` before ours, because the C library is
//! among its dependencies. Its objects and the program's then meet in the wrong `free`. So before
//! the first such call, [`redirect`] changes the C library's symbols to the addresses of the
//! process's functions. All other names are bound as the flag demands, and a library whose
//! dependencies include another allocator keeps it.
//!
//! **Failure.** The symbols' pages must not become writable: a line on standard error, and the
//! library is opened as without us.
//!
//! **Cost.** A microsecond for each `dlopen`; up to 72 KiB of private pages after the first such
//! call.
//!
//! **Not here.** The name: the linker calls `craton_dlopen` `dlopen` in the shared library alone
//! (`build.rs`).
//!
//! **Unsafe.** Exports, in assembly, a name that the whole process calls. The C library's `dlopen`
//! reads its return address to find the caller's search path, so ours has to jump there.

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

/// The target of the assembly's jump: the next `dlopen`, usually the C library's.
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

/// A `dlopen` that fails, for processes without another.
extern "C" fn none(_file: *const c_char, _mode: c_int) -> *mut c_void {
    null_mut()
}

/// The malloc family. If another library precedes us, these are its functions, by the linker's
/// order.
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

/// Changes nothing if the process's functions are the C library's: opened late, we serve only our
/// callers.
#[cold]
fn redirect() {
    if !loaded::redirect(c"libc.so.6", &NAMES.map(|name| (name, symbol::find(name)))) {
        let line = Line::new()
            .text("craton: dlopen: memory of libc.so.6 cannot be made writable: a library that is opened with ");
        line.text("RTLD_DEEPBIND has the C library's malloc; it must free its memory itself, and no other").print();
    }
}
