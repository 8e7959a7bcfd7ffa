//! The child of a `vfork` runs on its parent's memory and thread pointer.
//!
//! It may use the thread cache, but no per-CPU cache: the kernel restarts the parent's sequences
//! only, and the child reads the parent's last CPU number. So the thread goes without per-CPU
//! caches during the call, and for a `clone` with `CLONE_VM` and without `CLONE_SETTLS`; unless the
//! parent sleeps, both tasks then go without for good. `syscall()` is not covered.
//!
//! **Unsafe.** Exports names that the whole process calls; `vfork` returns twice.

#[cfg(target_arch = "x86_64")]
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use craton_malloc::front;
use craton_os::process;

/// The child returns on its parent's stack: kept registers hold the return address and
/// `before_vfork`'s result.
///
/// # Safety
/// As `vfork`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> c_int {
    naked_asm!(
        "endbr64",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "mov rdx, rax",
        "pop rdi",
        "mov eax, {vfork}",
        "syscall",
        "push rdi",
        "test rax, rax",
        "jz 2f",
        "mov rdi, rdx",
        "mov rsi, rax",
        "sub rsp, 8",
        "call {after}",
        "add rsp, 8",
        "2: ret",
        before = sym before_vfork,
        after = sym after_vfork,
        vfork = const craton_os::task::VFORK,
    )
}

#[cfg(target_arch = "x86_64")]
extern "C" fn before_vfork() -> usize {
    front::before_clone(false)
}

#[cfg(target_arch = "x86_64")]
extern "C" fn after_vfork(before: usize, result: isize) -> isize {
    front::after_clone(before, true);
    if result > 0 {
        return result;
    }
    process::set_errno(-result as i32);
    -1
}

/// # Safety
/// As `clone`; omitted arguments are what the registers hold, as in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone(
    function: *mut c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: *mut c_void,
    pointer: *mut c_void,
    child: *mut c_void,
) -> c_int {
    use craton_os::task::{self, CLONE_SETTLS, CLONE_VFORK, CLONE_VM};
    let arguments = [argument, parent, pointer, child];
    if flags & (CLONE_VM | CLONE_SETTLS) != CLONE_VM {
        // SAFETY: by the contract.
        return unsafe { task::clone(function, stack, flags, arguments) };
    }
    let sleeps = flags & CLONE_VFORK != 0;
    let before = front::before_clone(!sleeps);
    // SAFETY: by the contract.
    let task = unsafe { task::clone(function, stack, flags, arguments) };
    front::after_clone(before, sleeps || task < 0);
    task
}
