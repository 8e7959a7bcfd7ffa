//! Sources of objects, for the timed loop.
//!
//! **Unsafe.** Calls allocators.

use super::library::Cached;
use super::types::Type;
use crate::objects::{Arena, Store};
use craton_lab::micro::calls::{Calls, System};
use craton_slab::object::{ObjectLayout, ObjectSlabs};

/// Objects that are ready to be used.
pub(super) trait Source {
    fn alloc(&mut self) -> Option<*mut u8>;

    /// # Safety
    /// It was allocated here.
    unsafe fn free(&mut self, object: *mut u8);
}

pub(super) trait Memory {
    fn get(&mut self) -> *mut u8;

    /// # Safety
    /// As [`Source::free`].
    unsafe fn put(&mut self, object: *mut u8);
}

/// The first word is written.
pub(super) struct Plain<M>(pub M);

impl<M: Memory> Source for Plain<M> {
    #[inline(always)]
    fn alloc(&mut self) -> Option<*mut u8> {
        let object = self.0.get();
        if object.is_null() {
            return None;
        }
        // SAFETY: a word at least, and ours.
        unsafe { object.cast::<u64>().write_volatile(1) };
        Some(object)
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe { self.0.put(object) }
    }
}

pub(super) struct Malloc(pub usize);

impl Memory for Malloc {
    #[inline(always)]
    fn get(&mut self) -> *mut u8 {
        System::malloc(self.0)
    }

    #[inline(always)]
    unsafe fn put(&mut self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe { System::free(object) }
    }
}

pub(super) struct Stored<S>(pub S, pub usize);

impl<S: Store> Memory for Stored<S> {
    #[inline(always)]
    fn get(&mut self) -> *mut u8 {
        self.0.get(self.1).unwrap_or_default()
    }

    #[inline(always)]
    unsafe fn put(&mut self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe { self.0.put(object, self.1) }
    }
}

pub(super) struct Slabs {
    arena: Arena,
    slabs: ObjectSlabs,
}

impl Slabs {
    pub fn new(arena: Arena, bytes: usize) -> Result<Self, String> {
        let layout = ObjectLayout::of(bytes, 0, false).map_err(|why| why.to_string())?;
        Ok(Self { arena, slabs: ObjectSlabs::new(layout) })
    }
}

impl Memory for Slabs {
    #[inline(always)]
    fn get(&mut self) -> *mut u8 {
        // SAFETY: the one supplier.
        unsafe { self.slabs.alloc(&mut self.arena) }.map_or(std::ptr::null_mut(), |taken| taken.object())
    }

    #[inline(always)]
    unsafe fn put(&mut self, object: *mut u8) {
        // SAFETY: by the contract.
        let given = unsafe { self.slabs.free(object, false) };
        assert!(given.is_ok(), "an object that was taken comes back");
    }
}

pub(super) struct Constructed(pub &'static Type);

impl Source for Constructed {
    #[inline(always)]
    fn alloc(&mut self) -> Option<*mut u8> {
        let object = System::malloc(self.0.bytes);
        if object.is_null() {
            return None;
        }
        // SAFETY: ours, and as large as the type.
        unsafe {
            if !(self.0.construct)(object) {
                System::free(object);
                return None;
            }
            (self.0.begin)(object);
        }
        Some(object)
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe {
            (self.0.end)(object);
            (self.0.destroy)(object);
            System::free(object);
        }
    }
}

pub(super) struct Used(pub Cached);

impl Source for Used {
    #[inline(always)]
    fn alloc(&mut self) -> Option<*mut u8> {
        let object = self.0.get();
        if object.is_null() {
            return None;
        }
        // SAFETY: ours, and constructed.
        unsafe { (self.0.of.begin)(object) };
        Some(object)
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe {
            (self.0.of.end)(object);
            self.0.put(object);
        }
    }
}
