//! Threads: exit hooks, fork handlers, the background thread.
//!
//! **Unsafe.** Calls POSIX thread functions; reads the thread pointer.

pub mod block;

use crate::{call, guarded, label, mapping, process};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

#[derive(Clone, Copy, Debug)]
pub struct Key(libc::pthread_key_t);

/// Only for a value that is not null.
pub type AtExit = unsafe extern "C" fn(*mut c_void);

impl Key {
    /// `None`: the process has no more keys. Allocates nothing.
    pub fn create(at_exit: Option<AtExit>) -> Option<Self> {
        let mut key = 0;
        // SAFETY: `key` can be written; the handler's library stays loaded.
        (unsafe { libc::pthread_key_create(&mut key, at_exit) } == 0).then_some(Self(key))
    }

    pub fn number(self) -> u32 {
        self.0
    }

    pub fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// 0: unset.
    pub fn get(self) -> usize {
        // SAFETY: the key exists.
        unsafe { libc::pthread_getspecific(self.0) as usize }
    }

    /// From the 33rd key on, the C library allocates here.
    pub fn set(self, value: usize) {
        // SAFETY: the key exists; nothing reads through the value.
        unsafe { libc::pthread_setspecific(self.0, value as *const c_void) };
    }
}

pub fn at_fork(prepare: unsafe extern "C" fn(), parent: unsafe extern "C" fn(), child: unsafe extern "C" fn()) {
    // SAFETY: the handlers stay loaded.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

static FORKS: AtomicU32 = AtomicU32::new(0);
static COUNTS_FORKS: AtomicBool = AtomicBool::new(false);

/// From now on [`forks`] differs in a forked child. A `clone` past the C library is not counted.
pub fn count_forks() {
    extern "C" fn count() {
        FORKS.fetch_add(1, Relaxed);
    }
    // Two threads may both register: a child then counts twice.
    if !COUNTS_FORKS.load(Relaxed) {
        // SAFETY: the handler stays loaded; without memory for it, forks are not counted.
        unsafe { pthread_atfork(None, None, Some(count)) };
        COUNTS_FORKS.store(true, Relaxed);
    }
}

/// How many forks lie between this process and the one that began to count.
#[inline(always)]
pub fn forks() -> u32 {
    // A child has one thread, which was counted for.
    FORKS.load(Relaxed)
}

/// A thread that the program need not know of.
#[derive(Clone, Copy, Debug)]
pub struct Hidden(libc::pthread_t);

impl Hidden {
    /// The thread inherits blocked signals: block all, so that the program's handlers run
    /// elsewhere. The C library allocates.
    pub fn start(run: fn()) -> Option<Self> {
        extern "C" fn begin(run: *mut c_void) -> *mut c_void {
            // SAFETY: a C string of less than 16 bytes.
            unsafe { libc::prctl(libc::PR_SET_NAME, c"craton".as_ptr()) };
            // SAFETY: `start` passed a `fn()`.
            let run: fn() = unsafe { core::mem::transmute(run) };
            run();
            core::ptr::null_mut()
        }
        // Large thread-local variables need more stack.
        HIDDEN_STACKS.into_iter().find_map(|bytes| {
            let stack = Stack::new(bytes)?;
            // SAFETY: zeros are valid attributes; the stack stays until the thread was joined.
            let (refused, thread) = unsafe {
                let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
                libc::pthread_attr_init(&mut attributes);
                let mut thread = core::mem::zeroed();
                let mut refused = libc::pthread_attr_setstack(&mut attributes, stack.usable(), bytes);
                if refused == 0 {
                    refused = libc::pthread_create(&mut thread, &attributes, begin, run as *mut c_void);
                }
                libc::pthread_attr_destroy(&mut attributes);
                (refused, thread)
            };
            if refused == 0 {
                stack.keep()
            } else {
                stack.unmap()
            }
            (refused == 0).then_some(Self(thread))
        })
    }

    /// # Safety
    /// Once for a thread, by the process that started it.
    pub unsafe fn join(self) {
        let mut old = 0;
        // SAFETY: joinable by the contract.
        unsafe {
            pthread_setcancelstate(CANCEL_DISABLE, &mut old);
            libc::pthread_join(self.0, core::ptr::null_mut());
            pthread_setcancelstate(old, core::ptr::null_mut());
        }
        Stack::kept().unmap();
    }

    pub fn number(self) -> usize {
        self.0 as usize
    }

    pub fn from_number(number: usize) -> Self {
        Self(number as libc::pthread_t)
    }
}

/// The C library would reuse stacks: in a forked child, with data still in use.
struct Stack {
    at: usize,
    bytes: usize,
}

static STACK_AT: AtomicUsize = AtomicUsize::new(0);
static STACK_BYTES: AtomicUsize = AtomicUsize::new(0);

impl Stack {
    fn new(usable: usize) -> Option<Self> {
        let guard = process::page_size();
        let bytes = usable + guard;
        let stack = Self { at: mapping::map_as(label::STACK, bytes, guard)?, bytes };
        if !guarded::close(stack.at, guard) {
            stack.unmap();
            return None;
        }
        Some(stack)
    }

    fn usable(&self) -> *mut c_void {
        (self.at + process::page_size()) as *mut c_void
    }

    fn keep(self) {
        STACK_AT.store(self.at, Relaxed);
        STACK_BYTES.store(self.bytes, Relaxed);
    }

    fn kept() -> Self {
        Self { at: STACK_AT.swap(0, Relaxed), bytes: STACK_BYTES.swap(0, Relaxed) }
    }

    fn unmap(self) {
        mapping::unmap(self.at, self.bytes);
    }
}

static SINGLE_THREADED: AtomicUsize = AtomicUsize::new(0);

/// Finds glibc's single-thread flag (2.32).
pub fn find_flag() {
    if SINGLE_THREADED.load(Relaxed) == 0 {
        SINGLE_THREADED.store(crate::symbol::find(c"__libc_single_threaded"), Relaxed);
    }
}

/// Whether this process and its ancestors surely started no thread.
pub fn never_started() -> bool {
    single_threaded() == Some(true)
}

pub fn had_others() -> bool {
    single_threaded() == Some(false)
}

fn single_threaded() -> Option<bool> {
    let flag = SINGLE_THREADED.load(Relaxed) as *const AtomicU8;
    // SAFETY: a byte that lives with the process.
    (!flag.is_null()).then(|| unsafe { (*flag).load(Relaxed) } != 0)
}

/// No signal handler of the program runs in this thread meanwhile.
pub fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: zeros are valid signal sets, which the calls fill.
    unsafe {
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let result = f();
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, core::ptr::null_mut());
        result
    }
}

/// The initial thread; 0: unknown.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// Call when the library is loaded, and in a forked child.
pub fn record_main() {
    if is_main_by_kernel() {
        // SAFETY: no preconditions.
        MAIN.store(unsafe { libc::pthread_self() } as usize, Relaxed);
    }
}

/// A system call if another thread loaded the library.
pub fn is_main() -> bool {
    match MAIN.load(Relaxed) {
        0 => is_main_by_kernel(),
        // SAFETY: no preconditions.
        main => main == unsafe { libc::pthread_self() } as usize,
    }
}

/// Every usual limit exceeds it.
const SURELY_STACK: usize = 4 << 20;

/// With room for some pages: other threads' stacks may have 16 KiB, coroutines' less.
pub fn on_main_stack() -> bool {
    let here = 0u8;
    // SAFETY: no preconditions. The kernel puts these bytes above the first stack.
    let end = unsafe { libc::getauxval(libc::AT_RANDOM) as usize };
    end.wrapping_sub(&raw const here as usize) < SURELY_STACK
}

/// Unique in the process, never 0.
pub fn own_number() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// A multiple of 16, unique but for threads cloned past the C library.
#[inline(always)]
pub fn pointer() -> usize {
    #[cfg(loom)]
    {
        craton_base::atomic::model::thread_pointer()
    }
    #[cfg(all(not(loom), target_arch = "x86_64", not(feature = "portable")))]
    {
        let pointer: usize;
        // SAFETY: x86-64's ABI has the thread pointer in this word.
        unsafe {
            core::arch::asm!("mov {p}, qword ptr fs:[0]", p = out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(all(not(loom), not(all(target_arch = "x86_64", not(feature = "portable")))))]
    own_number()
}

fn is_main_by_kernel() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

const HIDDEN_STACKS: [usize; 2] = [64 << 10, 8 << 20];

pub fn sleep_ns(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    call::sleep(time);
}

const CANCEL_DISABLE: c_int = 1;

type Handler = Option<unsafe extern "C" fn()>;

// SAFETY: POSIX's signatures.
unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

#[cfg(test)]
mod tests;
