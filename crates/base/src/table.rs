//! Metadata arrays that grow with the heap.
//!
//! [`crate::Floor::reserve`] makes entries of granted pages usable, all zero. A table never moves
//! or shrinks; no reference spans ungranted entries.
//! **Unsafe.** Keeps an array in given memory.

/// # Safety
/// All-zero bytes are a valid value of the type.
pub unsafe trait Zeroed {}

/// An entry may be touched once its page is granted.
pub struct Table<T: 'static> {
    first: *mut T,
    len: usize,
}

// SAFETY: a table owns its entries like a boxed slice does.
unsafe impl<T: Send> Send for Table<T> {}
// SAFETY: `&Table` gives only `&T`.
unsafe impl<T: Sync> Sync for Table<T> {}

impl<T> Table<T> {
    /// For readers of another process.
    pub const SHAPE: [usize; 2] = [core::mem::offset_of!(Self, first), core::mem::offset_of!(Self, len)];
}

impl<T: Zeroed> Table<T> {
    pub const EMPTY: Self = Self { first: core::ptr::null_mut(), len: 0 };

    /// # Safety
    /// `first..first + len` is aligned for `T` and this table's for ever; each entry is zero or
    /// valid, and writable, before its first access.
    pub const unsafe fn new(first: *mut T, len: usize) -> Self {
        Self { first, len }
    }

    pub fn from_slice(slice: &'static mut [T]) -> Self {
        Self { first: slice.as_mut_ptr(), len: slice.len() }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    /// # Safety
    /// `i` is below the length.
    #[inline(always)]
    pub const unsafe fn get_unchecked(&self, i: usize) -> &T {
        // SAFETY: by the contract, and that of `new`.
        unsafe { &*self.first.add(i) }
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> core::ops::Index<usize> for Table<T> {
    type Output = T;
    fn index(&self, i: usize) -> &T {
        assert!(i < self.len, "table index out of range");
        // SAFETY: `i < len`; by `new`, entry `i` is ours, and valid when used.
        unsafe { &*self.first.add(i) }
    }
}

impl<T> core::ops::IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, i: usize) -> &mut T {
        assert!(i < self.len, "table index out of range");
        // SAFETY: as in `index`; `&mut self` excludes other accesses.
        unsafe { &mut *self.first.add(i) }
    }
}
