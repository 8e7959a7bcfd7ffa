//! A growing array in a private mapping.
//!
//! **Unsafe.** Plain values in a mapping.

use crate::mapping;
use crate::persistent_file::FileError;
use core::ops::{Deref, DerefMut};
use core::{ptr, slice};

/// # Safety
/// Every bit pattern is a value.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: integers, without padding.
unsafe impl Plain for super::journal::Entry {}

pub(super) struct Buffer<T: Plain> {
    at: *mut T,
    len: usize,
    room: usize,
}

// SAFETY: owns the mapping of plain values.
unsafe impl<T: Plain + Send> Send for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    pub(super) const fn new() -> Self {
        Self { at: ptr::dangling_mut(), len: 0, room: 0 }
    }

    /// New values are zero or what was there.
    pub(super) fn set_len(&mut self, len: usize) -> Result<(), FileError> {
        self.reserve(len.saturating_sub(self.len))?;
        self.len = len;
        Ok(())
    }

    pub(super) fn reserve(&mut self, more: usize) -> Result<(), FileError> {
        let room = self.len + more;
        if room > self.room {
            let bytes = (room * size_of::<T>()).next_power_of_two().max(1 << 16);
            let at = match self.room {
                0 => mapping::map(bytes, 1),
                room => mapping::remap(self.at as usize, room * size_of::<T>(), bytes),
            };
            self.at = at.ok_or(FileError::AddressSpace(bytes as u64))? as *mut T;
            self.room = bytes / size_of::<T>();
        }
        Ok(())
    }

    pub(super) fn push(&mut self, value: T) -> Result<(), FileError> {
        let last = self.len;
        self.set_len(last + 1)?;
        self[last] = value;
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: room for `len` values, and any bytes are values.
        unsafe { slice::from_raw_parts(self.at, self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; `&mut self` is exclusive.
        unsafe { slice::from_raw_parts_mut(self.at, self.len) }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.room > 0 {
            mapping::unmap(self.at as usize, self.room * size_of::<T>());
        }
    }
}

#[cfg(test)]
mod tests;
