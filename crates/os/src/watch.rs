//! The processor's watchpoints (Intel manual, volume 3, §18.2: debug registers).
//!
//! **What.** The processor reports accesses, by perf_event_open(2) with `sigtrap` (Linux 5.13), to
//! the [`fault`] handler.
//! **Threads.** Watches the opening thread and those it starts later; the signal comes behind the
//! instruction. **Not here.** Accesses of the kernel. A forked child inherits descriptors without
//! watches: [`Watch::forget`].
//! **Unsafe.** Opens events; the kernel calls the handler.

use crate::fault::{self, Fault};
use crate::{call, process, thp};
use core::ffi::{c_int, c_long, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};

pub const MOST: usize = 4;

/// `struct perf_event_attr`, version 7.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
    len: u64,
    rest: [u64; 7],
}

const _: () = assert!(size_of::<Attributes>() == 128);

const BREAKPOINT: u32 = 5;
const BOTH: u32 = 3;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// Threads only; closed by `exec`; a signal in the thread itself.
const INHERIT_THREAD: u64 = 1 << 35;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;
const CLOSE_ON_EXEC: c_int = 8;
const MODIFY: c_int = 0x4008_240b;
const DISABLE: c_int = 0x2401;
const TRAP_PERF: c_int = 6;
/// Programs count on low descriptors.
const LEAST_DESCRIPTOR: c_int = 200;

fn attributes(address: usize, len: usize) -> Attributes {
    let flags = INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | INHERIT_THREAD | REMOVE_ON_EXEC | SIGTRAP;
    Attributes {
        kind: BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        period: 1,
        flags,
        breakpoint: BOTH,
        address: address as u64,
        len: len as u64,
        ..Default::default()
    }
}

/// A watched byte, and bytes around it on its page, for [`Watch::is_exact`].
#[repr(align(32))]
struct Trial([AtomicU64; 4]);

static TRIAL: Trial = Trial([const { AtomicU64::new(0) }; 4]);
static TOUCHED: AtomicBool = AtomicBool::new(false);
const WATCHED: usize = 9;

impl Trial {
    fn watched(&self) -> usize {
        self.0.as_ptr() as usize + WATCHED
    }

    /// Loads the word before the watched byte, and stores one behind it, both unaligned. QEMU 7.2
    /// checks the two aligned words around such a load, and the page up to the end of such a store.
    fn touch_beside(&self) {
        let bytes = self.0.as_ptr().cast::<u8>();
        // SAFETY: within the cells, which no other thread uses; a packed word needs no alignment.
        unsafe {
            bytes.add(WATCHED - 4).cast::<Word>().read_volatile();
            bytes.add(WATCHED + 13).cast_mut().cast::<Word>().write_volatile(Word(0));
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Word(u32);

/// All zeros: no watch.
pub struct Watch {
    /// Plus one.
    fd: AtomicI32,
}

impl Watch {
    pub const fn new() -> Self {
        Self { fd: AtomicI32::new(0) }
    }

    /// Watches 1, 2, 4 or 8 aligned bytes, instead of the previous.
    pub fn set(&self, address: usize, len: usize) -> bool {
        if !thp::may_query() {
            return false;
        }
        let attributes = attributes(address, len);
        let fd = self.fd.load(Relaxed) - 1;
        if fd >= 0 {
            // SAFETY: the kernel reads the structure; another descriptor is an error.
            return unsafe { libc::syscall(libc::SYS_ioctl, fd, MODIFY, &raw const attributes) } == 0;
        }
        // SAFETY: as above; the calling thread, on every processor.
        let opened =
            unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
        if opened < 0 {
            return false;
        }
        // SAFETY: the descriptor just opened.
        let high = unsafe { libc::syscall(libc::SYS_fcntl, opened, libc::F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR) };
        if high >= 0 {
            // SAFETY: nothing else uses it.
            unsafe { close(opened) };
        }
        self.fd.store(if high < 0 { opened } else { high } as c_int + 1, Relaxed);
        true
    }

    /// Whether accesses beside watched bytes stay unreported. For one thread at a time, behind
    /// [`install`]. Leaves the watch on a byte of this module.
    pub fn is_exact(&self) -> bool {
        TOUCHED.store(false, Relaxed);
        if !self.set(TRIAL.watched(), 1) {
            return false;
        }
        TRIAL.touch_beside();
        !TOUCHED.load(Relaxed)
    }

    pub fn stop(&self) {
        let fd = self.fd.load(Relaxed) - 1;
        if fd >= 0 && thp::may_query() {
            // SAFETY: touches no memory.
            unsafe { libc::syscall(libc::SYS_ioctl, fd, DISABLE, 0) };
        }
    }

    /// In a forked child, the watch is the parent's.
    pub fn forget(&self) {
        let fd = self.fd.swap(0, Relaxed) - 1;
        if fd >= 0 && thp::may_query() {
            // SAFETY: this watch's.
            unsafe { close(fd.into()) };
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

/// # Safety
/// Nothing else uses the descriptor.
unsafe fn close(fd: c_long) {
    // SAFETY: by the contract.
    unsafe { call::close(fd as c_int) };
}

/// The fault handler gets the watch's start and the next instruction. `false`: the program handles
/// `SIGTRAP`.
pub fn install() -> bool {
    // SAFETY: zeros are a valid action.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        let mut before: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(libc::SIGTRAP, null(), &mut before) != 0 || before.sa_sigaction != libc::SIG_DFL {
            return false;
        }
        libc::sigemptyset(&mut action.sa_mask);
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(libc::SIGTRAP, &action, null_mut()) == 0
    }
}

pub fn is_installed() -> bool {
    // SAFETY: zeros are a valid action.
    unsafe {
        let mut now: libc::sigaction = core::mem::zeroed();
        libc::sigaction(libc::SIGTRAP, null(), &mut now) == 0 && now.sa_sigaction == on_trap as *const () as usize
    }
}

/// # Safety
/// The kernel calls it.
unsafe extern "C" fn on_trap(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let saved = process::errno();
    // SAFETY: the kernel passes what SA_SIGINFO promises.
    unsafe {
        let is_watch = (*info).si_code == TRAP_PERF;
        if is_watch && (*info).si_addr() as usize == TRIAL.watched() {
            TOUCHED.store(true, Relaxed);
        } else if let Some(handler) = fault::handler().filter(|_| is_watch) {
            handler(&Fault { write: None, target_at: None, is_watch: true, ..fault::read(info, context.cast()) });
        } else {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &action, null_mut());
            libc::raise(signal);
        }
    }
    process::set_errno(saved);
}

/// Correct programs' vector instructions go past their data's end. May be true for others.
/// # Safety
/// The 12 bytes before `at` can be read.
pub unsafe fn follows_vectors(at: usize) -> bool {
    // SAFETY: by the contract.
    let code: [u8; 12] = unsafe { ((at - 12) as *const [u8; 12]).read_unaligned() };
    is_of_vectors(&code)
}

/// Behind the escape byte: moves, jumps and arithmetic on general registers.
fn is_general(opcode: u8) -> bool {
    matches!(opcode, 0x05 | 0x0b | 0x18..=0x1f | 0x31 | 0x40..=0x4f | 0x80..=0x9f | 0xa0..=0xbf | 0xc0 | 0xc1 | 0xc3 | 0xc7..=0xcf)
}

fn is_of_vectors(code: &[u8]) -> bool {
    code.windows(2).enumerate().any(|(i, pair)| match pair[0] {
        0x0f => !is_general(pair[1]),
        // Before an opcode and an operand.
        0xc5 => i + 4 <= code.len() && pair[1] & 0x78 == 0x78,
        0xc4 => i + 5 <= code.len() && (1..=3).contains(&(pair[1] & 0x1f)),
        0x62 => i + 6 <= code.len() && (1..=3).contains(&(pair[1] & 0x0f)),
        _ => false,
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
