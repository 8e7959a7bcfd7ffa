//! The C interface of Craton: thin wrappers of [`craton_malloc::front`].
//!
//! **Failure.** No memory: null and `ENOMEM`, or `std::bad_alloc`. A bad pointer goes to the
//! process's other allocator; without one, a line with call and address, then `SIGABRT`.
//!
//! **Unsafe.** Takes pointers from C.
#![no_std]

mod alien;
mod api;
mod c;
mod caches;
mod clone;
mod cxx;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod deepbind;
mod heaps;
mod introspection;
mod next;
mod restrict;
mod sized;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

/// At load. Rust programs with the crate trust sizes instead.
extern "C" fn at_start() {
    craton_malloc::sizes::let_classes_lend();
}

/// Must not allocate.
#[cfg(not(test))]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = craton_os::Line::new().text("craton: internal error");
    match info.location() {
        Some(at) => line.text(" at ").text(at.file()).text(":").number(at.line().into()),
        None => line,
    }
    .text("; please report it")
    .abort()
}

// Shared code refers to it, though nothing unwinds. Weak: programs that have one link
// `libcraton.a`.
core::arch::global_asm!(".weak rust_eh_personality", ".hidden rust_eh_personality", "rust_eh_personality:", ".long 0",);
