//! What a thread or a process tells us about its end: thread-specific values and fork handlers.
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

type Handler = Option<unsafe extern "C" fn()>;

// SAFETY: the signature is that of POSIX.
unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> core::ffi::c_int;
}
