//! Functions that the compiler expects of a C library. Loops read as volatile: the compiler would
//! make them calls of the functions that they are in.

use super::serial::fail;
use core::arch::{asm, global_asm};

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    match info.location() {
        Some(at) => fail!("panic at {}:{}: {}", at.file(), at.line(), info.message()),
        None => fail!("panic: {}", info.message()),
    }
}

// The library `core` names them; nothing unwinds here.
global_asm!(".globl rust_eh_personality", "rust_eh_personality: ud2", ".globl _Unwind_Resume", "_Unwind_Resume: ud2");

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: by the contract; the direction flag is clear.
    unsafe {
        asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") bytes => _, options(nostack, preserves_flags));
    }
    to
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= bytes {
        // SAFETY: by the contract: a copy forwards overwrites nothing that is still to be read.
        return unsafe { memcpy(to, from, bytes) };
    }
    // SAFETY: by the contract; backwards, from the last byte on.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rdi") to.add(bytes).sub(1) => _, inout("rsi") from.add(bytes).sub(1) => _,
            inout("rcx") bytes => _, options(nostack));
    }
    to
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // SAFETY: by the contract; the direction flag is clear.
    unsafe {
        asm!("rep stosb", inout("rdi") to => _, in("al") byte as u8, inout("rcx") bytes => _, options(nostack, preserves_flags));
    }
    to
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    for at in 0..bytes {
        // SAFETY: by the contract.
        let (a, b) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    // SAFETY: by the contract.
    unsafe { memcmp(a, b, bytes) }
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    // SAFETY: by the contract, up to the end of the string.
    (0..).find(|at| unsafe { text.add(*at).read_volatile() } == 0).unwrap_or(0)
}
