//! Instructions that no safe code has.

use core::arch::asm;

/// # Safety
/// The port's device does nothing to memory that Rust owns.
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: by the contract.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) }
}

/// # Safety
/// As [`out8`].
pub unsafe fn out16(port: u16, value: u16) {
    // SAFETY: by the contract.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags)) }
}

/// # Safety
/// As [`out8`].
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: by the contract.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, preserves_flags)) }
    value
}

pub fn ticks() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

pub fn wait(for_ticks: u64) {
    let begin = ticks();
    while ticks() - begin < for_ticks {
        core::hint::spin_loop();
    }
}

pub fn has_giant_pages() -> bool {
    // Leaf 0x80000001 exists wherever long mode does.
    core::arch::x86_64::__cpuid(0x8000_0001).edx & 1 << 26 != 0
}

/// # Safety
/// The tables map all that the program uses, to where it lies now.
pub unsafe fn use_tables(root: u64) {
    // SAFETY: by the contract.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) }
}

/// On this CPU.
pub fn forget_translation(address: u64) {
    // SAFETY: the translation is read again from the tables.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Unless `is_over` after interrupts are shut: none is missed.
pub fn sleep_unless(is_over: impl Fn() -> bool) {
    // SAFETY: `sti` takes effect after the next instruction, so an interrupt that came meanwhile
    // ends `hlt`. The handler changes no register. The block may use the stack: the compiler keeps
    // nothing below the stack pointer, where the interrupt's frame goes.
    unsafe {
        asm!("cli");
        if !is_over() {
            asm!("sti", "hlt", "cli");
        }
    }
}

pub fn stop() -> ! {
    loop {
        // SAFETY: no interrupt is allowed.
        unsafe { asm!("cli", "hlt") }
    }
}

const LOCAL_INTERRUPTS: usize = 0xfee0_0000;

pub fn write_controller(register: usize, value: u32) {
    // SAFETY: the controller's page is mapped to itself on all tables, and is no memory.
    unsafe { ((LOCAL_INTERRUPTS + register) as *mut u32).write_volatile(value) }
}

pub fn read_controller(register: usize) -> u32 {
    // SAFETY: as above.
    unsafe { ((LOCAL_INTERRUPTS + register) as *const u32).read_volatile() }
}

/// Status 33 if the guest is well, else 3 (QEMU's `isa-debug-exit`).
pub fn leave(is_well: bool) -> ! {
    let code: u32 = if is_well { 0x10 } else { 1 };
    // SAFETY: the port's device ends the emulator; elsewhere nothing is there.
    unsafe { asm!("out dx, eax", in("dx") 0xf4u16, in("eax") code, options(nostack, preserves_flags)) }
    stop()
}
