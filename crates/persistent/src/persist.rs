//! Types whose values may lie in a heap: numbers, arrays, [`PPtr`](crate::PPtr), and structs of
//! [`persist!`](crate::persist).
//!
//! **State.** Values are copied as bytes, little-endian, laid out as in C: C programs read the same
//! objects.

/// A value that is copied to the heap and back.
pub trait Persist: Copy {
    /// A multiple of `ALIGN`.
    const BYTES: u64;
    /// 1, 2, 4 or 8.
    const ALIGN: u64;
    /// Distinguishes types, also after a restart: with the types of fields and elements, and the
    /// [`LAYOUT`](Self::LAYOUT) of what pointers lead to.
    const TAG: u64;
    /// As `TAG`, but with the [`NAME`](Self::NAME) of what pointers lead to: types may point to
    /// themselves.
    const LAYOUT: u64 = Self::TAG;
    /// The name alone.
    const NAME: u64 = Self::TAG;
    /// The tag of roots that an earlier version made, which it accepts still.
    #[doc(hidden)]
    const OLD_TAG: u64 = Self::TAG;
    /// Such values change only by the heap's calls.
    const HAS_POINTERS: bool;

    /// Writes the value to `BYTES` zero bytes.
    fn encode(&self, to: &mut [u8]);

    /// Reads the value from `BYTES` arbitrary bytes.
    fn decode(from: &[u8]) -> Self;
}

/// FNV-1a.
pub const fn hash(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}

/// Of an empty string.
pub const HASH: u64 = 0xcbf2_9ce4_8422_2325;

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Persist for $type {
            const BYTES: u64 = size_of::<$type>() as u64;
            const ALIGN: u64 = Self::BYTES;
            const TAG: u64 = hash(HASH, stringify!($type).as_bytes());
            const HAS_POINTERS: bool = false;

            #[inline]
            fn encode(&self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn decode(from: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$type>()];
                bytes.copy_from_slice(from);
                Self::from_le_bytes(bytes)
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl Persist for bool {
    const BYTES: u64 = 1;
    const ALIGN: u64 = 1;
    const TAG: u64 = hash(HASH, b"bool");
    const HAS_POINTERS: bool = false;

    #[inline]
    fn encode(&self, to: &mut [u8]) {
        to[0] = u8::from(*self);
    }

    #[inline]
    fn decode(from: &[u8]) -> Self {
        from[0] != 0
    }
}

impl<T: Persist, const N: usize> Persist for [T; N] {
    const BYTES: u64 = N as u64 * T::BYTES;
    const ALIGN: u64 = T::ALIGN;
    const TAG: u64 = hash(T::TAG, &(N as u64).to_le_bytes());
    const LAYOUT: u64 = hash(T::LAYOUT, &(N as u64).to_le_bytes());
    const NAME: u64 = hash(T::NAME, &(N as u64).to_le_bytes());
    const OLD_TAG: u64 = hash(T::OLD_TAG, &(N as u64).to_le_bytes());
    const HAS_POINTERS: bool = T::HAS_POINTERS;

    #[inline]
    fn encode(&self, to: &mut [u8]) {
        for (value, to) in self.iter().zip(to.chunks_exact_mut(bytes_of::<T>() as usize)) {
            value.encode(to);
        }
    }

    #[inline]
    fn decode(from: &[u8]) -> Self {
        std::array::from_fn(|i| T::decode(&from[i * T::BYTES as usize..][..T::BYTES as usize]))
    }
}

/// A pointer's target: a value or an array. Other types have a tag alone.
pub trait Object {
    const TAG: u64;
    const LAYOUT: u64 = Self::TAG;
    const NAME: u64 = Self::TAG;
    #[doc(hidden)]
    const OLD_TAG: u64 = Self::TAG;
}

impl<T: Persist> Object for T {
    const TAG: u64 = T::TAG;
    const LAYOUT: u64 = T::LAYOUT;
    const NAME: u64 = T::NAME;
    const OLD_TAG: u64 = T::OLD_TAG;
}

impl<T: Persist> Object for [T] {
    const TAG: u64 = hash(T::TAG, b"[]");
    const LAYOUT: u64 = hash(T::LAYOUT, b"[]");
    const NAME: u64 = hash(T::NAME, b"[]");
    const OLD_TAG: u64 = hash(T::OLD_TAG, b"[]");
}

/// Also the step between elements; at least one.
pub(crate) const fn bytes_of<T: Persist>() -> u64 {
    if T::BYTES == 0 { 1 } else { T::BYTES }
}

/// Longer values are copied through a `Vec`.
const ON_STACK: usize = 256;

/// With `T::BYTES` zero bytes.
#[inline]
pub(crate) fn with_buffer<T: Persist, R>(f: impl FnOnce(&mut [u8]) -> R) -> R {
    with_bytes(T::BYTES as usize, f)
}

/// With zero bytes.
#[inline]
pub(crate) fn with_bytes<R>(bytes: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    if bytes <= ON_STACK { f(&mut [0; ON_STACK][..bytes]) } else { f(&mut vec![0; bytes]) }
}

#[cfg(test)]
mod tests;
