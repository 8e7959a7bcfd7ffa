//! The marks of free objects, which reveal double frees and writes to freed memory.
//!
//! **What.** A free object's second word is its mark: (address ⊕ secret of its class) × factor, both
//! odd numbers of 64 bits that the process draws at its start. A free that finds the mark is a
//! double free. Only an object with its mark goes out, and loses it then. So a link that a program
//! overwrote ends the process before an address is handed out that is live, or no object.
//!
//! **From.** Safe unlinking and linking of the C library, snmalloc's signed links; here the mark of
//! the object that a link leads to stands for the link, which costs nothing to write.
//!
//! **State.** Marks depend on the class, so that a free object serves no list of another size. They
//! are odd and so never 0.
//!
//! **What a read of marks tells.** One mark m of an object at a says only that factor = m ÷ (a ⊕
//! secret): for each of the 2⁶³ secrets there is one factor. The mark of another address stays
//! open, in all bits above those in which the addresses agree: 2⁶⁰ values for a neighbour. Two marks
//! of one class whose addresses differ in one known bit give factor and secret of that class up to
//! a few bits: they can then be forged. Each other class has its secret, for which one more mark is
//! needed. Links are plain; they tell addresses of the heap.
//!
//! **Not here.** A mark that is left in memory which now belongs to a live object of another size,
//! and was not overwritten there, is as good as that of a free object: it helps those who know its
//! address and can write a link. Two threads that pop one object at the same moment, after a link
//! was overwritten, are not told apart.
//!
//! **Unsafe.** Reads and writes the second word of objects.

use crate::page_map::LIST_BYTES;
use crate::size_class::MARKS;
use craton_slab::Marks;

/// The secrets of all classes' marks. All zeros: none.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Key {
    pub(crate) secrets: [usize; MARKS],
    // Beside the secret of object caches' marks, the last.
    pub(crate) factor: usize,
}

/// What makes the marks of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    pub(crate) factor: usize,
    pub(crate) secret: usize,
}

/// Half of a product, from which neither factor can be computed.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Key {
    pub const NONE: Self = Self { factor: 0, secrets: [0; MARKS] };
    /// Byte offsets, for readers of another process's memory.
    pub const SECRETS: usize = core::mem::offset_of!(Self, secrets);
    pub const FACTOR: usize = core::mem::offset_of!(Self, factor);

    /// Secrets from two random numbers that nothing else knows.
    pub fn new(random: [u64; 2]) -> Self {
        let secret = |n: u64| {
            let (a, b) = (random[0] ^ 0x9e37_79b9_7f4a_7c15, random[1] ^ 0xbf58_476d_1ce4_e5b9);
            let once = fold(a.wrapping_add(n << 32), b ^ n);
            fold(once ^ b, a ^ n << 48) as usize | 1
        };
        Self { factor: secret(MARKS as u64), secrets: core::array::from_fn(|class| secret(class as u64)) }
    }

    #[inline(always)]
    pub fn seal(&self, class: usize) -> Seal {
        Seal { factor: self.factor, secret: self.secrets[class] }
    }
}

impl Seal {
    /// An object's mark.
    #[inline(always)]
    pub fn of(self, object: *mut u8) -> usize {
        (object as usize ^ self.secret).wrapping_mul(self.factor)
    }

    /// Marks an object as free.
    ///
    /// # Safety
    /// The object has at least 16 writable bytes, and the caller owns it.
    #[inline(always)]
    pub unsafe fn set(self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe { object.cast::<usize>().add(1).write(self.of(object)) };
    }

    /// Whether an object bears its mark.
    ///
    /// # Safety
    /// The object has at least 16 readable bytes.
    #[inline(always)]
    pub unsafe fn is_on(self, object: *mut u8) -> bool {
        // SAFETY: by the contract. A program may have written to any byte.
        unsafe { object.cast::<usize>().add(1).read_unaligned() == self.of(object) }
    }
}

/// Wipes the mark of an object that goes out.
///
/// # Safety
/// The object has at least 16 writable bytes, and the caller owns it.
#[inline(always)]
pub unsafe fn wipe(object: *mut u8) {
    // SAFETY: by the contract.
    unsafe { object.cast::<usize>().add(1).write(0) };
}

/// The marks of a class's objects in a region, for its slabs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassMarks {
    pub(crate) seal: Seal,
    pub(crate) base: usize,
    /// Bytes of granted pages.
    pub(crate) bytes: usize,
}

impl Marks for ClassMarks {
    #[inline(always)]
    fn set(&self, object: *mut u8) {
        // SAFETY: slabs mark objects that they own, of at least 16 bytes.
        unsafe { self.seal.set(object) };
    }

    #[inline(always)]
    fn is_set(&self, object: *mut u8) -> bool {
        // SAFETY: slabs ask for addresses on slabs, or that `is_here`; the region goes on behind.
        unsafe { self.seal.is_on(object) }
    }

    #[inline(always)]
    fn is_here(&self, at: *mut u8) -> bool {
        (at as usize).wrapping_sub(self.base) < self.bytes.saturating_sub(LIST_BYTES)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
