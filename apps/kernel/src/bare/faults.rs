//! Exceptions end the guest, but for page faults of the page heap; one interrupt ends `hlt`. Each
//! CPU has segments, a task state and a stack of exceptions.

use super::cpus::MOST;
use super::serial::fail;
use core::arch::asm;
use core::cell::UnsafeCell;

pub const WAKE: u8 = 0xf0;
const CODE: u16 = 8;
const TASK: u16 = 24;
const STACK: usize = 8192;
const PAGE_FAULT: u64 = 14;
const INTERRUPT_GATE: u64 = 0x8e00;

unsafe extern "C" {
    static exception_stubs: u8;
    static page_fault_stub: u8;
    static wake_stub: u8;
}

#[repr(C, align(16))]
struct Cpu {
    stack: [u8; STACK],
    segments: [u64; 5],
    task: [u32; 26],
}

struct Shared<T>(UnsafeCell<T>);

// SAFETY: each CPU changes its own element before it takes work; the first writes the table of
// interrupts before the others start.
unsafe impl<T> Sync for Shared<T> {}

static CPUS: Shared<[Cpu; MOST]> =
    Shared(UnsafeCell::new([const { Cpu { stack: [0; STACK], segments: [0; 5], task: [0; 26] } }; MOST]));
static GATES: Shared<[[u64; 2]; 256]> = Shared(UnsafeCell::new([[0; 2]; 256]));

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

pub fn prepare() {
    // SAFETY: the first CPU alone runs.
    let gates = unsafe { &mut *GATES.0.get() };
    let stubs = &raw const exception_stubs as u64;
    for (number, gate) in gates.iter_mut().enumerate().take(32) {
        // The first of the stacks that a task state names.
        *gate = gate_to(stubs + 16 * number as u64, 1);
    }
    gates[PAGE_FAULT as usize] = gate_to(&raw const page_fault_stub as u64, 1);
    gates[usize::from(WAKE)] = gate_to(&raw const wake_stub as u64, 0);
}

fn gate_to(handler: u64, stack: u64) -> [u64; 2] {
    let low =
        handler & 0xffff | u64::from(CODE) << 16 | stack << 32 | INTERRUPT_GATE << 32 | (handler >> 16 & 0xffff) << 48;
    [low, handler >> 32]
}

pub fn install(cpu: usize) {
    // SAFETY: the element is this CPU's, which comes once.
    let of = unsafe { &mut (*CPUS.0.get())[cpu] };
    let top = (&raw const of.stack as u64 + STACK as u64) & !15;
    // Words 9 and 10: the first stack of exceptions. No map of ports: its offset is the end.
    (of.task[9], of.task[10]) = (top as u32, (top >> 32) as u32);
    of.task[25] = (size_of_val(&of.task) as u32) << 16;
    let (at, limit) = (&raw const of.task as u64, size_of_val(&of.task) as u64 - 1);
    let task = limit | (at & 0xff_ffff) << 16 | 0x89 << 40 | (at >> 24 & 0xff) << 56;
    of.segments = [0, 0x00af_9a00_0000_ffff, 0x00cf_9200_0000_ffff, task, at >> 32];
    let segments = Pointer { limit: size_of_val(&of.segments) as u16 - 1, base: &raw const of.segments as u64 };
    let gates = Pointer { limit: size_of::<[[u64; 2]; 256]>() as u16 - 1, base: GATES.0.get() as u64 };
    // SAFETY: code and data segments are as those in use; the tables live for ever.
    unsafe {
        asm!("lgdt [{}]", "lidt [{}]", "ltr {:x}", in(reg) &raw const segments, in(reg) &raw const gates, in(reg) TASK);
    }
}

#[unsafe(no_mangle)]
extern "C" fn page_fault(address: u64, code: u64, at: u64) {
    const WAS_PRESENT: u64 = 1;
    if code & WAS_PRESENT != 0 || !super::heap::back(address) {
        exception(PAGE_FAULT, code, at, address);
    }
}

#[unsafe(no_mangle)]
extern "C" fn exception(number: u64, code: u64, at: u64, address: u64) -> ! {
    const NAMES: [(u64, &str); 5] = [
        (0, "division by zero"),
        (6, "invalid instruction"),
        (8, "double fault"),
        (13, "protection"),
        (PAGE_FAULT, "page fault"),
    ];
    let name = NAMES.iter().find(|(of, _)| *of == number).map_or("exception", |(_, name)| name);
    fail!("{name} {number}, code {code:#x}, at instruction {at:#x}, address {address:#x}")
}
