//! Threads: what they tell us about their end, fork handlers, and one of our own.
//!
//! **Unsafe.** Calls the POSIX thread functions.

use core::ffi::c_void;

/// A thread-specific value.
#[derive(Clone, Copy, Debug)]
pub struct Key(libc::pthread_key_t);

/// What runs when a thread ends whose value is not null.
pub type AtExit = unsafe extern "C" fn(*mut c_void);

impl Key {
    /// Makes a key; `None` when the process has no more. Allocates nothing.
    pub fn create(at_exit: Option<AtExit>) -> Option<Self> {
        let mut key = 0;
        // SAFETY: `key` is a valid place for the answer; the handler is a function of ours that lives as long as the
        // process, since the library cannot be unloaded.
        (unsafe { libc::pthread_key_create(&mut key, at_exit) } == 0).then_some(Self(key))
    }

    /// The number behind the key.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The key with a number that [`Key::number`] gave.
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// The calling thread's value, an address; 0 if none was set.
    pub fn get(self) -> usize {
        // SAFETY: the key exists.
        unsafe { libc::pthread_getspecific(self.0) as usize }
    }

    /// Sets the calling thread's value. For a process's 33rd key and later ones, the C library allocates memory here.
    pub fn set(self, value: usize) {
        // SAFETY: the key exists; the C library does not look at the value.
        unsafe { libc::pthread_setspecific(self.0, value as *const c_void) };
    }
}

/// Registers what runs around a `fork`: before it, after it in the parent, after it in the child.
pub fn at_fork(prepare: unsafe extern "C" fn(), parent: unsafe extern "C" fn(), child: unsafe extern "C" fn()) {
    // SAFETY: the handlers live as long as the process.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

/// Starts a thread that the program need not know of: all signals blocked, so that its handlers run elsewhere, with a small stack,
/// and detached. The C library allocates for it. `false` if the system refuses.
pub fn start_hidden(run: fn() -> !) -> bool {
    extern "C" fn begin(run: *mut c_void) -> *mut c_void {
        // SAFETY: the name is a C string of less than 16 bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"craton".as_ptr()) };
        // SAFETY: `start_hidden` passed a function of this type.
        let run: fn() -> ! = unsafe { core::mem::transmute(run) };
        run()
    }
    // SAFETY: zeros are valid signal sets and attributes, which the calls fill; the function lives as long as the process. The
    // signals that the caller lets through are restored.
    unsafe {
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = core::mem::zeroed();
        let mut refused = 1;
        // A program with large thread-local variables needs more for them alone; 0 stands for the default.
        for stack in [HIDDEN_STACK, 0] {
            if refused != 0 && (stack == 0 || libc::pthread_attr_setstacksize(&mut attributes, stack) == 0) {
                refused = libc::pthread_create(&mut thread, &attributes, begin, run as *mut c_void);
            }
        }
        libc::pthread_attr_destroy(&mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, core::ptr::null_mut());
        refused == 0
    }
}

/// Bytes of a hidden thread's stack.
const HIDDEN_STACK: usize = 64 << 10;

/// Sleeps for so many nanoseconds, or a little less.
pub fn sleep_ns(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    // SAFETY: a valid time; nothing is told of what is left.
    unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
}

type Handler = Option<unsafe extern "C" fn()>;

// SAFETY: the signature is that of POSIX.
unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> core::ffi::c_int;
}
