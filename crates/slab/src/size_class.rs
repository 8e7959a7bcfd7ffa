//! Size classes: which sizes malloc really has.
//!
//! **What.** Class 0 is "no class". Classes 1 to [`CLASSES`] are sizes from 16 B to 256 KiB: every multiple of 16 up to 128,
//! then eight steps for each doubling, so that rounding up wastes at most one part in nine (TEMERAIRE §3 asks for one in eight).
//! [`LARGE`] marks objects that are spans of their own.
//!
//! **Cost.** Up to 1 KiB a table of 65 bytes; beyond, four instructions of arithmetic.

use crate::Geometry;

/// Number of size classes.
pub const CLASSES: usize = 96;
/// The mark of a large object's first page.
pub const LARGE: u8 = CLASSES as u8 + 1;
/// The mark of the pages of a slab that holds objects of two classes.
pub const MORPHED: u8 = CLASSES as u8 + 2;
/// Values that a page's mark can have.
pub const MARKS: usize = CLASSES + 3;
/// Largest size that has a class.
pub const MAX_CLASSED: usize = 256 << 10;
/// Largest size looked up in the table.
pub const MAX_TABLED: usize = 1024;

/// Object size of class `class`, `1..=CLASSES`.
pub const fn size_of_class(class: usize) -> usize {
    if class <= 8 {
        return class * 16;
    }
    let step = (class - 9) / 8;
    let part = (class - 9) % 8 + 9;
    part << (4 + step)
}

/// The class of a size above 128 and up to [`MAX_CLASSED`].
#[inline(always)]
const fn class_by_arithmetic(size: usize) -> usize {
    let n = size - 1;
    let shift = usize::BITS - 1 - n.leading_zeros() - 3;
    // `n >> shift` is 8..=15: the eighth that `n` lies in; 128 is 2^7, so the first doubling has shift 4.
    (shift as usize - 4) * 8 + (n >> shift) + 1
}

/// The class of a size up to [`MAX_TABLED`].
static TABLE: [u8; MAX_TABLED / 16 + 1] = {
    let mut table = [1u8; MAX_TABLED / 16 + 1];
    let mut i = 1;
    while i < table.len() {
        table[i] = if i <= 8 { i as u8 } else { class_by_arithmetic(i * 16) as u8 };
        i += 1;
    }
    table
};

/// The class of a size up to [`MAX_TABLED`]; of 0 the smallest.
#[inline(always)]
pub const fn class_of_tabled(size: usize) -> usize {
    debug_assert!(size <= MAX_TABLED);
    TABLE[size.div_ceil(16)] as usize
}

/// The class of a size up to [`MAX_CLASSED`].
#[inline]
pub fn class_of(size: usize) -> usize {
    debug_assert!(size <= MAX_CLASSED);
    if size <= MAX_TABLED { class_of_tabled(size) } else { class_by_arithmetic(size) }
}

/// The smallest class whose objects hold `size` bytes and all lie at multiples of `align`, a power of two.
pub fn class_of_aligned(size: usize, align: usize) -> Option<usize> {
    if size > MAX_CLASSED || align > MAX_CLASSED {
        return None;
    }
    // Objects lie at multiples of their size on slabs aligned to themselves, so a multiple of `align` will do; there
    // is one at the latest at the next power of two. Objects of whole pages lie at pages only.
    let first = class_of(size.max(align).max(1));
    (first..=CLASSES).find(|c| {
        let g = geometry(*c);
        size_of_class(*c).is_multiple_of(align) && (!g.is_single() || align <= craton_base::PAGE_SIZE)
    })
}

/// How objects of each class lie on its slabs; entry 0 is never asked.
static GEOMETRIES: [Geometry; CLASSES + 1] = {
    let mut all = [Geometry::of(16); CLASSES + 1];
    let mut c = 1;
    while c <= CLASSES {
        all[c] = Geometry::of(size_of_class(c));
        c += 1;
    }
    all
};

/// How objects of a class lie on its slabs.
pub fn geometry(class: usize) -> Geometry {
    GEOMETRIES[class]
}

/// How many objects move between a thread's cache and a slab at a time: 16 KiB worth, from 1 to 64.
pub const fn batch(class: usize) -> u32 {
    BATCHES[class] as u32
}

static BATCHES: [u8; CLASSES + 1] = {
    let mut all = [0; CLASSES + 1];
    let mut c = 1;
    while c <= CLASSES {
        all[c] = batch_of(c);
        c += 1;
    }
    all
};

const fn batch_of(class: usize) -> u8 {
    match (16 << 10) / size_of_class(class) {
        0 => 1,
        n if n > 64 => 64,
        n => n as u8,
    }
}

#[cfg(test)]
mod tests;
