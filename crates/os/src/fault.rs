//! Memory faults (`SIGSEGV`, `SIGBUS`).
//!
//! [`install`]'s function runs in the faulting thread, on its stack or alternative stack, then the
//! previous handler. A handler installed later gets these signals alone.
//! **Unsafe.** The kernel calls it; it reads saved registers.

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

pub const REGISTERS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// 0: unknown, as for non-canonical addresses.
    pub address: usize,
    /// `None`: unknown.
    pub write: Option<bool>,
    pub at: usize,
    pub stack: usize,
    pub frame: usize,
    /// RBX on x86-64, which some functions use as the frame pointer.
    pub base: usize,
    pub registers: [usize; REGISTERS],
    /// Of a call or jump to a non-canonical address.
    pub target_at: Option<usize>,
    /// A watchpoint, touched by the instruction before `at`.
    pub is_watch: bool,
}

pub type Handler = fn(&Fault);

const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

static HANDLER: AtomicPtr<()> = AtomicPtr::new(null_mut());
static INSTALLED: AtomicBool = AtomicBool::new(false);
static mut BEFORE: [Option<libc::sigaction>; SIGNALS.len()] = [None; SIGNALS.len()];

/// `false`: refused, or already installed.
pub fn install(handler: Handler) -> bool {
    HANDLER.store(handler as *mut (), Ordering::Relaxed);
    if INSTALLED.swap(true, Ordering::Relaxed) {
        return false;
    }
    SIGNALS.iter().enumerate().all(|(i, signal)| {
        // SAFETY: zeros are a valid action; the old one is saved before the new one can run.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            libc::sigemptyset(&mut action.sa_mask);
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            let mut before: libc::sigaction = core::mem::zeroed();
            if libc::sigaction(*signal, null(), &mut before) != 0 {
                return false;
            }
            (&raw mut BEFORE).cast::<Option<libc::sigaction>>().add(i).write(Some(before));
            libc::sigaction(*signal, &action, null_mut()) == 0
        }
    })
}

pub(crate) fn handler() -> Option<Handler> {
    let handler = HANDLER.load(Ordering::Relaxed);
    // SAFETY: null or a `Handler`.
    unsafe { core::mem::transmute::<*mut (), Option<Handler>>(handler) }
}

/// # Safety
/// The kernel calls it.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let saved = crate::process::errno();
    let handler = HANDLER.load(Ordering::Relaxed);
    // SAFETY: the kernel passes what SA_SIGINFO promises; the pointer is a `Handler`.
    unsafe {
        if (*info).si_code > 0 && !handler.is_null() {
            core::mem::transmute::<*mut (), Handler>(handler)(&read(info, context.cast()));
        }
        let i = usize::from(signal != SIGNALS[0]);
        let before = (&raw const BEFORE).cast::<Option<libc::sigaction>>().add(i).read();
        if let Some(before) = before {
            libc::sigaction(signal, &before, null_mut());
        }
        // The instruction faults again; a sent signal must be resent.
        if (*info).si_code <= 0 {
            libc::raise(signal);
        }
    }
    crate::process::set_errno(saved);
}

/// # Safety
/// As [`on_fault`].
pub(crate) unsafe fn read(info: *const libc::siginfo_t, context: *const libc::ucontext_t) -> Fault {
    // SAFETY: by the contract.
    let address = unsafe { (*info).si_addr() } as usize;
    // SAFETY: by the contract.
    unsafe { arch::read(address, context) }
}

#[cfg(target_arch = "x86_64")]
mod operand;

#[cfg(target_arch = "x86_64")]
mod arch {
    use super::{Fault, REGISTERS, operand};

    const WRITE: i64 = 2;
    const PAGE_FAULT: i64 = 14;
    /// General protection, as for non-canonical addresses.
    const PROTECTION: i64 = 13;
    const NUMBERED: [i32; REGISTERS] = [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];

    /// # Safety
    /// The kernel passed the context to a handler.
    pub(super) unsafe fn read(address: usize, context: *const libc::ucontext_t) -> Fault {
        // SAFETY: by the contract.
        let saved = unsafe { &(*context).uc_mcontext.gregs };
        let get = |r: i32| saved[r as usize];
        let is_page_fault = get(libc::REG_TRAPNO) == PAGE_FAULT;
        let mut registers = [0; REGISTERS];
        // R8 to R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP.
        for (register, value) in registers.iter_mut().zip(saved) {
            *register = *value as usize;
        }
        let at = get(libc::REG_RIP) as usize;
        // Else the instruction was not fetched. Reads no byte past it.
        let was_fetched = get(libc::REG_TRAPNO) == PROTECTION && crate::process::can_read(at);
        // SAFETY: the instruction's bytes, as far as requested.
        let byte = |i: usize| unsafe { (at as *const u8).add(i).read_volatile() };
        let target_at = if was_fetched { operand::of_jump(byte, |n| get(NUMBERED[n]) as usize) } else { None };
        Fault {
            address,
            target_at,
            write: is_page_fault.then_some(get(libc::REG_ERR) & WRITE != 0),
            at,
            stack: get(libc::REG_RSP) as usize,
            frame: get(libc::REG_RBP) as usize,
            base: get(libc::REG_RBX) as usize,
            registers,
            is_watch: false,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    use super::{Fault, REGISTERS};

    /// # Safety
    /// None: the context is unused.
    pub(super) unsafe fn read(address: usize, _context: *const libc::ucontext_t) -> Fault {
        Fault {
            address,
            write: None,
            at: 0,
            stack: 0,
            frame: 0,
            base: 0,
            registers: [0; REGISTERS],
            target_at: None,
            is_watch: false,
        }
    }
}
