//! Where the debugging kit looks at object caches: when one is made, and in slow paths.
//!
//! **What.** A cache to which debugging applies when it is made has no arrays, so that each object comes by here.

/// Whether a cache of such a name is looked at.
pub(super) fn applies_to(_name: &[u8]) -> bool {
    false
}

/// Before an object of such a cache goes out.
pub(super) fn debug_alloc(_cache: u16, _object: *mut u8, _size: usize) {}

/// Before one that the program gives up goes into the depot.
pub(super) fn debug_free(_cache: u16, _object: *mut u8, _size: usize) {}
