//! Memory for signal handlers that interrupted a request, handed out once; and a list of objects
//! that they freed, linked by their first words.
//!
//! **Unsafe.** Hands out parts of its memory, and links objects given up.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, Ordering::Relaxed};

/// The object's size lies before it.
const HEAD: usize = 16;

#[repr(align(4096))]
struct Bytes(UnsafeCell<[u8; Area::BYTES]>);

pub(crate) struct Area {
    bytes: Bytes,
    used: AtomicUsize,
    later: AtomicPtr<u8>,
    pub(super) reported: AtomicBool,
}

// SAFETY: `serve` hands out each part once, and only its receiver uses it.
unsafe impl Sync for Area {}

impl Area {
    pub(crate) const BYTES: usize = 1 << 20;

    pub(crate) const fn new() -> Self {
        Self {
            bytes: Bytes(UnsafeCell::new([0; Self::BYTES])),
            used: AtomicUsize::new(0),
            later: AtomicPtr::new(null_mut()),
            reported: AtomicBool::new(false),
        }
    }

    /// For readers of the memory.
    pub(crate) const fn parts(this: *const Self) -> [*const u8; 3] {
        let start = this.cast::<u8>();
        [
            start.wrapping_add(offset_of!(Self, bytes)),
            start.wrapping_add(offset_of!(Self, used)),
            start.wrapping_add(offset_of!(Self, later)),
        ]
    }

    #[cold]
    pub(crate) fn serve(&self, size: usize, align: usize) -> *mut u8 {
        let base = self.bytes.0.get() as usize;
        let mut start = 0;
        let taken = self.used.fetch_update(Relaxed, Relaxed, |used| {
            let object = (base + used + HEAD).checked_next_multiple_of(align.max(HEAD))?;
            start = object - base;
            let end = start.checked_add(size.max(1))?.checked_next_multiple_of(HEAD)?;
            (end <= Self::BYTES).then_some(end)
        });
        if taken.is_err() {
            return null_mut();
        }
        // SAFETY: the exchange reserved the bytes between the marks, with room for the head.
        unsafe {
            let object = self.bytes.0.get().cast::<u8>().add(start);
            object.sub(HEAD).cast::<usize>().write(size);
            object
        }
    }

    pub(crate) fn size_of(&self, pointer: *mut u8) -> Option<usize> {
        let offset = (pointer as usize).wrapping_sub(self.bytes.0.get() as usize);
        // SAFETY: only `serve`'s objects lie there, each with a head.
        (HEAD..Self::BYTES).contains(&offset).then(|| unsafe { pointer.sub(HEAD).cast::<usize>().read() })
    }

    /// # Safety
    /// A live object of a size class, given up.
    #[cold]
    pub(crate) unsafe fn free_later(&self, object: *mut u8) {
        let mut first = self.later.load(Relaxed);
        loop {
            // SAFETY: by the contract.
            unsafe { object.cast::<*mut u8>().write(first) };
            // ORDERING: pairs with the Acquire in `pop_deferred`: the link is seen.
            match self.later.compare_exchange(first, object, Ordering::Release, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    pub(crate) fn pop_deferred(&self) -> *mut u8 {
        // ORDERING: pairs with the Release in `free_later`.
        self.later.swap(null_mut(), Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
