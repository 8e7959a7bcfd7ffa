//! Size classes: 16 to 256 bytes in steps of 16. Then sizes that fill a slab's 64,512 bytes, at
//! most 12.5 % apart up to 8 KiB; above, 9,216, 10,752, 12,864 and 16,128 bytes.
//!
//! **From.** NVAlloc §4.2 and §5.1: consecutive objects have their bits in different stripes, each
//! a cache line. A *mid* numbers a bit of a bitmap: stripe × 512 + position.

use crate::layout::{SLAB_HEADER, UNIT};

pub const SLAB_BYTES: u32 = (UNIT - SLAB_HEADER) as u32;
pub const SMALL_MOST: u64 = (SLAB_BYTES / 4) as u64;
pub const STRIPE_BITS: u32 = 512;
pub const STRIPES_MOST: u32 = 8;

const STEP: u32 = 16;
const FINE: usize = 16;

const fn size_for(n: u32) -> u32 {
    let size = SLAB_BYTES / n;
    // From 512 bytes on objects begin with a cache line.
    if size >= 512 { size / 64 * 64 } else { size / STEP * STEP }
}

/// As large as 12.5 % allow, or one object fewer in a slab.
const fn size_after(size: u32) -> u32 {
    let mut n = SLAB_BYTES / size;
    loop {
        if n == 4 {
            return size_for(4);
        }
        n -= 1;
        if size_for(n) > size {
            break;
        }
    }
    while n > 4 && size_for(n - 1) * 8 <= size * 9 {
        n -= 1;
    }
    size_for(n)
}

const fn count_classes() -> usize {
    let mut size = FINE as u32 * STEP;
    let mut classes = FINE;
    while size < SMALL_MOST as u32 {
        size = size_after(size);
        classes += 1;
    }
    classes
}

pub const CLASSES: usize = count_classes();

const fn list_sizes() -> [u32; CLASSES] {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        sizes[class] = if class < FINE { (class as u32 + 1) * STEP } else { size_after(sizes[class - 1]) };
        class += 1;
    }
    sizes
}

pub const SIZES: [u32; CLASSES] = list_sizes();

const LOOKUP: usize = SMALL_MOST as usize / STEP as usize + 1;

const fn look_up() -> [u8; LOOKUP] {
    let mut table = [0; LOOKUP];
    let (mut i, mut class) = (0, 0);
    while i < LOOKUP {
        if SIZES[class] < i as u32 * STEP {
            class += 1;
        }
        table[i] = class as u8;
        i += 1;
    }
    table
}

static TABLE: [u8; LOOKUP] = look_up();

/// For 1 to [`SMALL_MOST`] bytes.
#[inline]
pub fn class_of(size: u64) -> usize {
    usize::from(TABLE[size.div_ceil(u64::from(STEP)) as usize])
}

/// Most objects that a lane caches: 64 KiB, within reason.
pub const fn cached_of(class: usize) -> u32 {
    let n = 65536 / SIZES[class];
    if n > 256 {
        256
    } else if n < 8 {
        8
    } else {
        n
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Class {
    pub size: u32,
    /// In a slab.
    pub objects: u32,
    pub stripes: u32,
    /// Most that a lane caches of a stripe.
    pub cached: u32,
    /// Reciprocals in units of 2^-32, exact within a slab.
    by_size: u64,
    by_stripes: u64,
}

impl Class {
    /// Many objects need more stripes.
    pub fn new(class: usize, stripes: u32) -> Self {
        let size = SIZES[class];
        let objects = SLAB_BYTES / size;
        let stripes = stripes.clamp(objects.div_ceil(STRIPE_BITS), STRIPES_MOST);
        let reciprocal = |n: u32| (1u64 << 32).div_ceil(u64::from(n));
        let cached = (cached_of(class) + 8) / stripes;
        Self { size, objects, stripes, cached, by_size: reciprocal(size), by_stripes: reciprocal(stripes) }
    }

    #[inline]
    pub fn index_at(&self, at: u64) -> Option<u32> {
        let index = self.index_within(at)?;
        (u64::from(index) * u64::from(self.size) + SLAB_HEADER == at).then_some(index)
    }

    /// The object that holds the byte.
    #[inline]
    pub fn index_within(&self, at: u64) -> Option<u32> {
        let inside = at.checked_sub(SLAB_HEADER)?;
        let index = ((inside * self.by_size) >> 32) as u32;
        (index < self.objects).then_some(index)
    }

    /// After the slab.
    #[inline]
    pub fn offset_of(&self, index: u32) -> u64 {
        SLAB_HEADER + u64::from(index) * u64::from(self.size)
    }

    #[inline]
    pub fn mid_of(&self, index: u32) -> u32 {
        let position = ((u64::from(index) * self.by_stripes) >> 32) as u32;
        (index - position * self.stripes) * STRIPE_BITS + position
    }

    #[inline]
    pub fn index_of(&self, mid: u32) -> u32 {
        (mid % STRIPE_BITS) * self.stripes + mid / STRIPE_BITS
    }
}

#[cfg(test)]
mod tests;
