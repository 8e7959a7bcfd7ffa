//! Size classes.
//!
//! 1. up to 256 B every multiple of 16: small sizes are common, and the C ABI aligns to 16;
//! 2. up to 8 KiB the sizes 2^k ÷ 15, … ÷ 8 of each doubling, rounded down to 16. Steps are 1/15
//!    just above a power of two, since programs put a header of 8 to 300 bytes before 1, 4 or 8
//!    KiB;
//! 3. up to 256 KiB the shorter spans of `SPANS`: most programs have few such objects.
//!
//! Rounding and tail waste at most 1/8 of sizes above 128 B (TEMERAIRE §3; experiment
//! `size-classes`).

use crate::Geometry;

pub const MAX_TABLED: usize = 8 << 10;
const MAX_MULTIPLE: usize = 256;
const SMALL_CLASSES: usize = MAX_MULTIPLE / 16 + 8 * (MAX_TABLED / MAX_MULTIPLE).ilog2() as usize;

/// Pages and objects.
#[rustfmt::skip]
const SPANS: [(u32, u16); 38] = [
    // To 16 KiB: parts of 64 and 128 KiB, but for 32 ÷ 3 and 56 ÷ 4.
    (16, 15), (8, 7), (16, 13), (4, 3), (16, 11), (8, 5), (7, 4), (2, 1),
    // To 32 KiB.
    (16, 7), (32, 13), (8, 3), (3, 1), (16, 5), (7, 2), (4, 1),
    // To 64 KiB: half pages in pairs, since a page more is up to a fifth.
    (9, 2), (5, 1), (11, 2), (6, 1), (13, 2), (7, 1), (8, 1),
    // To 256 KiB: eight sizes in each doubling.
    (9, 1), (10, 1), (11, 1), (12, 1), (13, 1), (14, 1), (15, 1), (16, 1), (18, 1), (20, 1), (22, 1), (24, 1),
    (26, 1), (28, 1), (30, 1), (32, 1),
];

pub const CLASSES: usize = SMALL_CLASSES + SPANS.len();
/// A large object's first page.
pub const LARGE: u8 = CLASSES as u8 + 1;
/// A slab of two classes.
pub const MORPHED: u8 = CLASSES as u8 + 2;
/// A separate heap; the slab's record names it.
pub const OWNED: u8 = CLASSES as u8 + 3;
pub const MARKS: usize = CLASSES + 4;
pub const MAX_CLASSED: usize = 256 << 10;

static GEOMETRIES: [Geometry; CLASSES + 1] = {
    let mut all = [Geometry::of(16); CLASSES + 1];
    let mut class = 1;
    while class <= CLASSES {
        all[class] = layout(class);
        class += 1;
    }
    all
};

const fn layout(class: usize) -> Geometry {
    let multiples = MAX_MULTIPLE / 16;
    if class > SMALL_CLASSES {
        let (pages, objects) = SPANS[class - SMALL_CLASSES - 1];
        return Geometry::parts(pages, objects);
    }
    if class <= multiples {
        return Geometry::of(class * 16);
    }
    let (doubling, part) = ((class - multiples - 1) / 8, (class - multiples - 1) % 8);
    let span = (16 * MAX_MULTIPLE) << doubling;
    Geometry::of(span / (15 - part) / 16 * 16)
}

const fn smallest(size: usize) -> u8 {
    let mut class = 1;
    while (layout(class).object as usize) < size {
        class += 1;
    }
    class as u8
}

const fn by_units<const N: usize>() -> [u8; N] {
    let mut table = [1; N];
    let (mut i, mut class) = (1, 1);
    while i < N {
        if (layout(class).object as usize) < i * 16 {
            class += 1;
        }
        table[i] = class as u8;
        i += 1;
    }
    table
}

static TABLE: [u8; MAX_TABLED / 16 + 1] = by_units();

const GRAIN: usize = 512;

/// For each grain's smallest size; the largest is in this class or the next.
static GRAINS: [u8; MAX_CLASSED / GRAIN] = {
    let mut table = [0; MAX_CLASSED / GRAIN];
    let mut i = MAX_TABLED / GRAIN;
    while i < table.len() {
        table[i] = smallest(i * GRAIN + 1);
        assert!(smallest((i + 1) * GRAIN) <= table[i] + 1, "two classes end in one grain");
        i += 1;
    }
    table
};

/// Up to here classes borrow nothing: programs have many such objects.
const MAX_OWN: usize = 64;
/// The most classes between a size and its double.
pub const MOST_LENDERS: usize = 16;

/// The result is at most twice as large.
pub const fn largest_lender(class: usize) -> usize {
    let mut lender = class;
    while lender < CLASSES && size_of_class(class) > MAX_OWN && size_of_class(lender + 1) <= 2 * size_of_class(class) {
        lender += 1;
    }
    lender
}

const _: () = {
    let mut class = 1;
    while class <= CLASSES {
        assert!(largest_lender(class) - class <= MOST_LENDERS);
        class += 1;
    }
};

#[inline(always)]
pub const fn size_of_class(class: usize) -> usize {
    GEOMETRIES[class].object as usize
}

pub const fn geometry(class: usize) -> Geometry {
    GEOMETRIES[class]
}

/// Up to [`MAX_TABLED`].
#[inline(always)]
pub const fn class_of_tabled(size: usize) -> usize {
    debug_assert!(size <= MAX_TABLED);
    TABLE[size.div_ceil(16)] as usize
}

const MAX_UNITS: usize = 1 << 12;

static BY_UNITS: [u8; MAX_UNITS] = by_units();

/// Units of 16 bytes, below 64 KiB.
#[inline(always)]
pub fn class_of_units(units: usize) -> usize {
    BY_UNITS[units % MAX_UNITS] as usize
}

/// Up to [`MAX_CLASSED`].
#[inline]
pub fn class_of(size: usize) -> usize {
    debug_assert!(size <= MAX_CLASSED);
    if size <= MAX_TABLED {
        return class_of_tabled(size);
    }
    let class = GRAINS[(size - 1) / GRAIN] as usize;
    class + usize::from(size > size_of_class(class))
}

/// `align`: a power of two.
pub fn class_of_aligned(size: usize, align: usize) -> Option<usize> {
    if size > MAX_CLASSED || align > MAX_CLASSED {
        return None;
    }
    // Slabs are aligned to a power of two ≥ their size, single objects to pages only.
    let first = class_of(size.max(align).max(1));
    (first..=CLASSES).find(|c| {
        let g = geometry(*c);
        size_of_class(*c).is_multiple_of(align) && (!g.is_single() || align <= craton_base::PAGE_SIZE)
    })
}

/// Objects moved between a thread's cache and a slab at a time: 16 KiB worth, 1 to 64.
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
