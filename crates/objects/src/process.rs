//! What object caches ask of the process. The defaults are for tests.
//!
//! **Unsafe.** A buffer is freed by its address.

use craton_heap::Misuse;
use craton_os::rseq::Rseq;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words {
    pub arrays: usize,
    /// The thread's innermost constructor or destructor, on its stack.
    pub building: usize,
}

impl Words {
    pub const NOT_ASKED: usize = 0;
    /// The thread must not use arrays.
    pub const NONE: usize = 1;
}

pub trait Process: 'static {
    /// A signal handler that interrupts `part` keeps away from its locks.
    fn within<R>(part: impl FnOnce() -> R) -> R {
        part()
    }

    /// Returns whether another try is worth it.
    fn make_room() -> bool {
        false
    }

    /// The cache's free memory should be freed in the background if the program sleeps.
    fn holds_much() {}

    /// `own`: for the calling thread, which must be registered.
    fn sequences(own: bool) -> Option<&'static Rseq> {
        let _ = own;
        None
    }

    fn words() -> Words {
        Words::default()
    }

    fn set_words(words: Words) {
        let _ = words;
    }
}

/// The debugging kit, and reports of corruption.
pub trait Watch: 'static {
    /// With checks, objects are the watcher's buffers.
    fn checks_of(name: &[u8]) -> u16 {
        let _ = name;
        0
    }

    /// Null: no memory.
    fn alloc(id: u16, size: usize, align: usize, checks: u16) -> *mut u8 {
        let _ = (id, size, align, checks);
        core::ptr::null_mut()
    }

    /// # Safety
    /// The buffer is given up.
    unsafe fn free(id: u16, buffer: *mut u8) {
        let _ = (id, buffer);
    }

    /// Does not return if it is another owner's.
    fn is_buffer(id: u16, object: *mut u8) -> bool {
        let _ = (id, object);
        false
    }

    /// Reports the live buffers of a cache that cannot be destroyed.
    fn report_live(id: u16) {
        let _ = id;
    }

    /// An array or magazine held no live object of its cache.
    fn corrupt(object: *mut u8, misuse: Misuse) -> ! {
        panic!("{misuse:?} at {object:?}")
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Process for Alone {}
impl Watch for Alone {}
