//! The marks of free objects, which reveal double frees and writes to freed memory.
//!
//! **What.** A free object's second word is its mark: (address ⊕ secret of its class) × factor,
//! both odd 64-bit numbers drawn at the process's start. A free that finds the mark is a double
//! free. Only an object with its mark goes out, and loses it then. So an overwritten link ends the
//! process before it hands out an address that is live, or no object.
//!
//! **From.** Safe unlinking and linking of the C library, snmalloc's signed links; here the mark of
//! the object that a link leads to stands for the link, which costs nothing to write.
//!
//! **State.** Marks depend on the class, so that a free object serves no list of another size, and
//! are odd, so never 0. On its slab's own list an object bears the mark with the upper half changed
//! by one more secret: the lower half still shows a double free, but the object cannot go out past
//! its slab. So a whole mark means: in one cache, or on the way there.
//!
//! **Reads of marks.** One mark of an object leaves one factor for each of 2⁶³ secrets; a
//! neighbour's mark has 2⁶⁰ values. Two marks of one class whose addresses differ in one known bit
//! give factor and secret of that class up to a few bits: they can then be forged. Each other class
//! takes one more mark. An object's mark is the same each time that it is free; marks are wiped
//! when their slab is complete. Links are plain, and reveal addresses of the heap.
//!
//! **Not here.** A mark from an earlier life of a page, in bytes not overwritten since, serves only
//! the slab's own list, and only where its class and the slab's cut places agree. Two threads that
//! pop one object at the same moment, after a link was overwritten, are not told apart.
//!
//! **Unsafe.** Reads and writes the second word of objects.

use crate::page_map::{PLACE, PageMap};
use crate::size_class::{self, MARKS, size_of_class};
use craton_base::{PAGE_SHIFT, PageId, PageRange, Pages};
use craton_slab::Marks;

/// The smallest object: its link and its mark.
const LEAST: usize = 16;

/// The secrets of all classes' marks. All zeros: none.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Key {
    pub(crate) secrets: [usize; MARKS],
    // Beside the secret of object caches' marks, the last.
    pub(crate) factor: usize,
    /// How marks on slabs differ, in the upper half.
    pub(crate) on_slab: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    pub(crate) factor: usize,
    pub(crate) secret: usize,
}

/// Half of a product, from which neither factor can be computed.
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Key {
    pub const NONE: Self = Self { factor: 0, on_slab: 0, secrets: [0; MARKS] };
    /// For readers of another process's memory.
    pub const SECRETS: usize = core::mem::offset_of!(Self, secrets);
    pub const FACTOR: usize = core::mem::offset_of!(Self, factor);
    pub const ON_SLAB: usize = core::mem::offset_of!(Self, on_slab);

    /// Makes secrets from two random numbers that nothing else knows.
    pub fn new(random: [u64; 2]) -> Self {
        let secret = |n: u64| {
            let (a, b) = (random[0] ^ 0x9e37_79b9_7f4a_7c15, random[1] ^ 0xbf58_476d_1ce4_e5b9);
            let once = fold(a.wrapping_add(n << 32), b ^ n);
            fold(once ^ b, a ^ n << 48) as usize | 1
        };
        let on_slab = (secret(MARKS as u64 + 1) | 1) << 32;
        Self { factor: secret(MARKS as u64), on_slab, secrets: core::array::from_fn(|class| secret(class as u64)) }
    }

    #[inline(always)]
    pub fn seal(&self, class: usize) -> Seal {
        Seal { factor: self.factor, secret: self.secrets[class] }
    }
}

impl Seal {
    #[inline(always)]
    pub fn of(self, object: *mut u8) -> usize {
        (object as usize ^ self.secret).wrapping_mul(self.factor)
    }

    /// # Safety
    /// The object has at least 16 writable bytes, and the caller owns it.
    #[inline(always)]
    pub unsafe fn set(self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe { object.cast::<usize>().add(1).write(self.of(object)) };
    }

    /// Whether an object bears its mark, and not that of its slab's list.
    ///
    /// # Safety
    /// The object has at least 16 readable bytes.
    #[inline(always)]
    pub unsafe fn is_on(self, object: *mut u8) -> bool {
        // SAFETY: by the contract. A program may have written to any byte.
        unsafe { object.cast::<usize>().add(1).read_unaligned() == self.of(object) }
    }

    /// Whether an object is free, by the lower half of its mark: wrong once in 2³² live objects.
    /// For fast paths, which leave such objects to slow ones.
    ///
    /// # Safety
    /// As [`Seal::is_on`].
    #[inline(always)]
    pub unsafe fn may_be_free(object: *mut u8, mark: usize) -> bool {
        // SAFETY: by the contract.
        unsafe { object.cast::<u32>().add(2).read() == mark as u32 }
    }
}

/// Wipes link and mark of an object that goes out. They would show addresses of the heap or of the
/// library, and what marks are made of.
///
/// # Safety
/// The object has at least 16 writable bytes, and the caller owns it.
#[inline(always)]
pub unsafe fn clear_head(object: *mut u8) {
    // SAFETY: by the contract.
    unsafe { object.cast::<[usize; 2]>().write([0; 2]) };
}

/// Wipes the mark of an object whose place is gone, or that is no longer free.
///
/// # Safety
/// As [`clear_head`].
#[inline(always)]
pub unsafe fn wipe(object: *mut u8) {
    // SAFETY: by the contract.
    unsafe { object.cast::<usize>().add(1).write(0) };
}

/// Most bytes of a freed object that a hardened heap clears.
pub const CLEARED: usize = 128;

/// Pairs of words that [`clear`] clears.
pub const fn cleared_pairs(size: usize) -> u32 {
    let bytes = if size < CLEARED { size } else { CLEARED };
    ((bytes - LEAST) / LEAST) as u32
}

/// Clears a free object behind its mark.
///
/// # Safety
/// The object has `size` ≥ 16 writable bytes, and the caller owns it.
#[inline(always)]
pub unsafe fn clear(object: *mut u8, size: usize) {
    // SAFETY: by the contract.
    unsafe { clear_pairs(object, cleared_pairs(size)) };
}

/// [`clear`], by [`cleared_pairs`]. One jump and the stores: a call of `memset` takes 40
/// instructions.
///
/// # Safety
/// As there.
#[inline(always)]
pub unsafe fn clear_pairs(object: *mut u8, pairs: u32) {
    macro_rules! store {
        ($($n:literal)*) => {
            match pairs {
                // SAFETY: by the contract.
                $($n => unsafe { object.cast::<[usize; 2]>().add(1).cast::<[[usize; 2]; $n]>().write([[0; 2]; $n]) },)*
                _ => {}
            }
        };
    }
    store!(1 2 3 4 5 6 7);
}
const _: () = assert!(cleared_pairs(CLEARED) == 7 && cleared_pairs(LEAST) == 0);

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassMarks {
    pub(crate) seal: Seal,
    pub(crate) on_slab: usize,
    pub(crate) class: u8,
    pub(crate) map: PageMap,
    pub(crate) base: usize,
    /// Of granted pages.
    pub(crate) bytes: usize,
    /// Bytes of an object that a hardened heap clears when it cuts it; else 0.
    pub(crate) clears: usize,
}

impl ClassMarks {
    /// # Safety
    /// As [`Seal::is_on`].
    #[inline(always)]
    unsafe fn its(object: *mut u8) -> usize {
        // SAFETY: by the contract.
        unsafe { object.cast::<usize>().add(1).read_unaligned() }
    }

    /// # Safety
    /// As [`Seal::set`].
    #[inline(always)]
    unsafe fn write(object: *mut u8, mark: usize) {
        // SAFETY: by the contract.
        unsafe { object.cast::<usize>().add(1).write(mark) };
    }

    /// Clears an object that is cut, from memory that may have served others.
    ///
    /// # Safety
    /// As [`clear`].
    #[inline(always)]
    unsafe fn clear(&self, object: *mut u8) {
        if self.clears > 0 {
            // SAFETY: by the contract.
            unsafe { clear(object, self.clears) };
        }
    }

    /// Whether the page of the slab's next place has a sample: the place before lies on it, too,
    /// and the page's number does not reach behind it (M8).
    #[inline]
    fn is_near_sample(&self, next: usize) -> bool {
        let page = (next - self.base) >> PAGE_SHIFT;
        let before = next.wrapping_sub(size_of_class(self.class.into()));
        if before.wrapping_sub(self.base) >> PAGE_SHIFT != page {
            return false;
        }
        let geometry = size_class::geometry(self.class.into());
        let slab = self.base + geometry.slab_of(PageId(page as u32)).offset().0;
        // SAFETY: a slab's pages are granted.
        let number = unsafe { self.map.entry(page) }.cut() / PLACE;
        ((before - slab) / geometry.object as usize) as u64 >= number
    }

    /// Whether an object is free, on its slab or elsewhere.
    ///
    /// # Safety
    /// As [`Seal::is_on`].
    pub(crate) unsafe fn is_free(&self, object: *mut u8) -> bool {
        // SAFETY: by the contract.
        let difference = unsafe { Self::its(object) } ^ self.seal.of(object);
        difference == 0 || difference == self.on_slab
    }
}

// Slabs ask for addresses on slabs, or that `is_here`; the region goes on behind. They mark objects
// of at least 16 bytes that they own.
impl Marks for ClassMarks {
    #[inline(always)]
    fn set(&self, object: *mut u8) {
        // SAFETY: as said above.
        unsafe {
            self.seal.set(object);
            self.clear(object);
        }
    }

    #[inline(always)]
    fn set_on_slab(&self, object: *mut u8) {
        // SAFETY: as said above.
        unsafe {
            Self::write(object, self.seal.of(object) ^ self.on_slab);
            self.clear(object);
        }
    }

    #[inline(always)]
    fn is_set(&self, object: *mut u8) -> bool {
        // SAFETY: as said above.
        unsafe { self.seal.is_on(object) }
    }

    #[inline(always)]
    fn put(&self, object: *mut u8) -> bool {
        let mark = self.seal.of(object);
        // SAFETY: as said above; what bears its mark is an object.
        unsafe {
            let is_right = Self::its(object) == mark;
            if is_right {
                Self::write(object, mark ^ self.on_slab);
            }
            is_right
        }
    }

    #[inline(always)]
    fn take(&self, object: *mut u8) -> bool {
        let mark = self.seal.of(object);
        // SAFETY: as in `put`.
        unsafe {
            let is_right = Self::its(object) == mark ^ self.on_slab;
            if is_right {
                Self::write(object, mark);
            }
            is_right
        }
    }

    #[inline(always)]
    fn leave(&self, object: *mut u8) -> bool {
        // SAFETY: as in `put`.
        unsafe {
            let is_right = Self::its(object) == self.seal.of(object) ^ self.on_slab;
            if is_right {
                wipe(object);
            }
            is_right
        }
    }

    #[inline(always)]
    fn wipe(&self, object: *mut u8) {
        // SAFETY: as said above.
        unsafe { wipe(object) };
    }

    #[inline]
    fn set_cut(&self, first: *mut u8, last: *mut u8, places: u16) {
        let page = |at: usize| ((at - self.base) >> PAGE_SHIFT) as u32;
        let (mut begin, end) = (page(first as usize), page(last as usize) + 1);
        if places > 0 && self.is_near_sample(first as usize) {
            begin += 1;
        }
        let range = PageRange::new(PageId(begin), Pages(end - begin));
        // SAFETY: the pages are a slab's, whose cache the caller owns.
        unsafe { self.map.set_cut(range, self.class, places) };
    }

    #[inline(always)]
    fn is_here(&self, at: *mut u8) -> bool {
        // The last object of all begins [`LEAST`] bytes before the end.
        (at as usize).wrapping_sub(self.base) < self.bytes.saturating_sub(LEAST - 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
