//! The mark of a free object, by which a second free shows.
//!
//! **What.** The second word of a free object is its address mixed with a number of this process. Allocation wipes it, so that
//! a free that finds it is a double free. A copy of the mark in another object is not that object's mark.
//!
//! **Unsafe.** Reads and writes the second word of objects.

/// The mark of a free object. Keys are odd and objects even, so that it is never 0.
#[inline(always)]
pub fn mark(key: usize, object: *mut u8) -> usize {
    key ^ object as usize
}

/// Marks an object as free.
///
/// # Safety
/// The object has at least 16 writable bytes, and the caller owns it.
#[inline(always)]
pub unsafe fn mark_free(key: usize, object: *mut u8) {
    // SAFETY: by the contract.
    unsafe { object.cast::<usize>().add(1).write(mark(key, object)) };
}

/// Wipes the mark of an object that goes out; null stays null.
///
/// # Safety
/// As [`mark_free`], unless it is null.
#[inline(always)]
pub unsafe fn wipe(object: *mut u8) -> *mut u8 {
    if !object.is_null() {
        // SAFETY: by the contract.
        unsafe { object.cast::<usize>().add(1).write(0) };
    }
    object
}

/// Whether an object bears the mark of a free one.
///
/// # Safety
/// The object has at least 16 readable bytes.
#[inline(always)]
pub unsafe fn is_marked(key: usize, object: *mut u8) -> bool {
    // SAFETY: by the contract.
    unsafe { object.cast::<usize>().add(1).read() == mark(key, object) }
}

#[cfg(all(test, not(loom)))]
mod tests;
