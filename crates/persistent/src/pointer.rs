//! Offsets in a heap, with a type.

use crate::persist::{HASH, Object, Persist, hash};
use crate::record::Field;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// The place of a value in a heap, or null; valid wherever the heap is mapped.
///
/// A pointer to a freed object reads new contents there; a write through it may damage the heap,
/// not the process: each access is checked to lie inside the heap's data.
pub struct PPtr<T: ?Sized> {
    at: u64,
    to: PhantomData<fn() -> *const T>,
}

/// The place of a pointer: a root, a field or an element.
pub type Slot<T> = PPtr<PPtr<T>>;

impl<T: ?Sized> PPtr<T> {
    pub const NULL: Self = Self::at_offset(0);

    pub(crate) const fn at_offset(at: u64) -> Self {
        Self { at, to: PhantomData }
    }

    /// From the beginning of the heap; 0 for null.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.at
    }

    #[inline]
    pub const fn is_null(self) -> bool {
        self.at == 0
    }
}

impl<S> PPtr<S> {
    /// The place of a field; null for null.
    #[inline]
    pub fn field<F: Persist>(self, field: Field<S, F>) -> PPtr<F> {
        match self.at {
            0 => PPtr::NULL,
            at => PPtr::at_offset(at.saturating_add(field.offset())),
        }
    }
}

impl<T: ?Sized> Clone for PPtr<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for PPtr<T> {}

impl<T: ?Sized> PartialEq for PPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<T: ?Sized> Eq for PPtr<T> {}

impl<T: ?Sized> Hash for PPtr<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.at.hash(state);
    }
}

impl<T: ?Sized> Default for PPtr<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T: ?Sized> fmt::Debug for PPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.at)
    }
}

impl<T: Object + ?Sized> Persist for PPtr<T> {
    const BYTES: u64 = 8;
    const ALIGN: u64 = 8;
    const TAG: u64 = hash(<Self as Persist>::OLD_TAG, &T::LAYOUT.to_le_bytes());
    const LAYOUT: u64 = hash(<Self as Persist>::OLD_TAG, &T::NAME.to_le_bytes());
    const NAME: u64 = <Self as Persist>::LAYOUT;
    const OLD_TAG: u64 = hash(HASH, b"PPtr");
    const HAS_POINTERS: bool = true;

    #[inline]
    fn encode(&self, to: &mut [u8]) {
        self.at.encode(to);
    }

    #[inline]
    fn decode(from: &[u8]) -> Self {
        Self::at_offset(u64::decode(from))
    }
}
