//! What object caches ask of the process around them.
//!
//! **What.** Two traits, resolved at compile time. Each method has a default for a heap without a
//! process: tests run caches over a simulated floor.
//!
//! **Unsafe.** A buffer goes back by its address.

use craton_heap::Misuse;
use craton_os::rseq::Rseq;

/// Two words of each thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words {
    /// Address of the processors' arrays, [`Words::NOT_ASKED`], or [`Words::NONE`].
    pub arrays: usize,
    /// The thread's innermost constructor or destructor, an address on its stack; 0 for none.
    pub building: usize,
}

impl Words {
    /// The thread has not asked for arrays yet.
    pub const NOT_ASKED: usize = 0;
    /// The thread must not use arrays.
    pub const NONE: usize = 1;
}

/// The process around the caches.
pub trait Process: 'static {
    /// Runs a part that takes locks; a signal handler that interrupts it then keeps away from them.
    fn within<R>(part: impl FnOnce() -> R) -> R {
        part()
    }

    /// A request was refused: has other parts free memory; whether another try is worth it.
    fn make_room() -> bool {
        false
    }

    /// A cache holds much free memory: a background thread should free it if the program sleeps.
    fn holds_much() {}

    /// Restartable sequences. With `own`, for the calling thread, which must be registered itself.
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

/// The watcher of objects: the debugging kit, and reports of corruption.
pub trait Watch: 'static {
    /// Checks for a new cache of this name; 0 for none. With checks, objects are watcher's buffers.
    fn checks_of(name: &[u8]) -> u16 {
        let _ = name;
        0
    }

    /// A buffer for cache `id`; null without memory.
    fn alloc(id: u16, size: usize, align: usize, checks: u16) -> *mut u8 {
        let _ = (id, size, align, checks);
        core::ptr::null_mut()
    }

    /// Frees a buffer of cache `id`.
    ///
    /// # Safety
    /// The caller gives the buffer up.
    unsafe fn free(id: u16, buffer: *mut u8) {
        let _ = (id, buffer);
    }

    /// Whether an object freed to cache `id` is a buffer. Does not return if another owner's.
    fn is_buffer(id: u16, object: *mut u8) -> bool {
        let _ = (id, object);
        false
    }

    /// Cache `id` cannot be destroyed while its buffers are live: reports who has them.
    fn report_live(id: u16) {
        let _ = id;
    }

    /// An array or magazine held what is no live object of its cache: memory was overwritten.
    fn corrupt(object: *mut u8, misuse: Misuse) -> ! {
        panic!("{misuse:?} at {object:?}")
    }
}

/// No process.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Process for Alone {}
impl Watch for Alone {}
