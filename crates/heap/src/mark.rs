//! The mark of a free object, which reveals a double free.
//!
//! **What.** A free object's second word is its address mixed with the process's key. Allocation
//! wipes it: a free that finds it is a double free. A copy in another object does not match.
//!
//! **Unsafe.** Reads and writes the second word of objects.

/// An object's mark. Keys are odd and objects even, so it is never 0.
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

/// Whether an object bears its mark.
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
