//! A failed throwing `operator new`, in assembly: no exception may pass through a Rust frame. The
//! unwinder knows this frame, which is gone before the throw.
//!
//! **Unsafe.** Defines a function by assembly.

use crate::sized::Sized;
use core::arch::global_asm;
use core::ffi::c_void;
use craton_os::{Line, symbol, weak};

global_asm!(
    ".pushsection .text.unlikely,\"ax\",@progbits",
    ".globl __craton_new_failed",
    ".hidden __craton_new_failed",
    ".type __craton_new_failed,@function",
    "__craton_new_failed:",
    ".cfi_startproc",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    "push r12",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r12, 0",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "mov rbx, rdi",
    "mov r12, rsi",
    "2:",
    "call {handler}",
    "test rax, rax",
    "jz 3f",
    "call rax",
    "mov rdi, rbx",
    "mov rsi, r12",
    "call {retry}",
    "test rax, rax",
    "jz 2b",
    "add rsp, 8",
    ".cfi_remember_state",
    ".cfi_adjust_cfa_offset -8",
    "pop r12",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r12",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    "ret",
    "3:",
    ".cfi_restore_state",
    "mov rdi, rbx",
    "call {thrower}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "pop r12",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore r12",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    "jmp rax",
    ".cfi_endproc",
    ".size __craton_new_failed, . - __craton_new_failed",
    // For forms that return a size: the third argument, returned in the second register.
    ".globl __craton_sized_new_failed",
    ".hidden __craton_sized_new_failed",
    ".type __craton_sized_new_failed,@function",
    "__craton_sized_new_failed:",
    ".cfi_startproc",
    "push rdx",
    ".cfi_adjust_cfa_offset 8",
    "call __craton_new_failed",
    "pop rdx",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size __craton_sized_new_failed, . - __craton_sized_new_failed",
    ".popsection",
    handler = sym super::new_handler,
    retry = sym super::retry,
    thrower = sym thrower,
);

// SAFETY: the assembly's signatures.
unsafe extern "C" {
    #[link_name = "__craton_new_failed"]
    pub(crate) fn new_failed(size: usize, align: usize) -> *mut c_void;
    #[link_name = "__craton_sized_new_failed"]
    pub(crate) fn sized_new_failed(size: usize, align: usize, good: usize) -> Sized;
}

/// Ends the process if no C++ runtime is loaded.
extern "C" fn thrower(size: usize) -> usize {
    let mut throw = weak!("_ZSt17__throw_bad_allocv");
    if throw == 0 {
        throw = symbol::find(c"_ZSt17__throw_bad_allocv");
    }
    if throw == 0 {
        Line::new()
            .text("craton: operator new(")
            .number(size as u64)
            .text("): no memory, and no C++ runtime to throw")
            .abort();
    }
    throw
}
