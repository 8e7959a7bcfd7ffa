//! The layout of a slab of constructed objects, in bytes (Bonwick94 §3.2.2).
//!
//! A large object's record lies apart unless the tail has room. Short pages suit small caches,
//! which have one unfinished slab.

use super::colour;
use craton_base::PAGE_SIZE;

pub(super) const RECORD_BYTES: usize = 40;
const WORD: usize = 8;
/// Up to this part of a page objects are small.
const SMALL_PART: usize = 16;
const GOOD_PART: usize = 16;
/// Slabs of as many objects waste less than 1/8.
const ENOUGH: usize = 16;
/// Of 1 / stride: exact for offsets below 2^22 and strides up to 2^20.
const POINT: u32 = 43;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadLayout {
    Zero,
    TooLarge { size: usize },
    Alignment { align: usize },
    Page { bytes: usize },
}

impl core::fmt::Display for BadLayout {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Zero => write!(f, "an object has at least 1 byte"),
            Self::TooLarge { size } => {
                write!(f, "objects of {size} bytes are larger than {}; take such from malloc", ObjectLayout::MAX_OBJECT)
            }
            Self::Alignment { align } => {
                write!(f, "an alignment of {align} is not a power of two up to {}", ObjectLayout::MAX_ALIGN)
            }
            Self::Page { bytes } => {
                write!(
                    f,
                    "pages of {bytes} bytes: a power of two from {} to {} is wanted",
                    ObjectLayout::MIN_PAGE,
                    ObjectLayout::MAX_PAGE
                )
            }
        }
    }
}

impl core::error::Error for BadLayout {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectLayout {
    pub(super) size: u32,
    pub(super) stride: u32,
    pub(super) capacity: u32,
    pub(super) words: u32,
    /// 0: the record lies apart.
    pub(super) record_at: u32,
    pub(super) colour_step: u32,
    pub(super) colours: u32,
    pub(super) align: u32,
    pub(super) constructed: bool,
    pub(super) grain_shift: u32,
    pub(super) page_bytes: u32,
    pub(super) slab_bytes: usize,
    /// From the first object's start to the last one's end.
    pub(super) extent: usize,
    reciprocal: u64,
}

const fn align_up(n: usize, align: usize) -> usize {
    (n + align - 1) & !(align - 1)
}

impl ObjectLayout {
    pub const MAX_OBJECT: usize = 1 << 20;
    pub const MAX_ALIGN: usize = 1 << 20;
    pub const MIN_PAGE: usize = 1 << 10;
    pub const MAX_PAGE: usize = PAGE_SIZE;

    pub const UNSET: Self = Self {
        size: 0,
        stride: 0,
        capacity: 0,
        words: 0,
        record_at: 0,
        colour_step: 0,
        colours: 0,
        align: 0,
        constructed: false,
        grain_shift: 0,
        page_bytes: 0,
        slab_bytes: 0,
        extent: 0,
        reciprocal: 0,
    };

    /// `align`: 0 (for 8) or a power of two. `constructed` objects stay so while free.
    pub const fn of(size: usize, align: usize, constructed: bool) -> Result<Self, BadLayout> {
        Self::of_pages(size, align, constructed, Self::MAX_PAGE)
    }

    /// `page`: the supplier's, or a multiple.
    pub const fn of_pages(size: usize, align: usize, constructed: bool, page: usize) -> Result<Self, BadLayout> {
        if size == 0 {
            return Err(BadLayout::Zero);
        }
        if size > Self::MAX_OBJECT {
            return Err(BadLayout::TooLarge { size });
        }
        if align != 0 && !align.is_power_of_two() || align > Self::MAX_ALIGN {
            return Err(BadLayout::Alignment { align });
        }
        if !page.is_power_of_two() || page < Self::MIN_PAGE || page > Self::MAX_PAGE {
            return Err(BadLayout::Page { bytes: page });
        }
        let align = if align < WORD { WORD } else { align };
        let stride = align_up(size, align);
        let of = Self { size: size as u32, stride: stride as u32, align: align as u32, constructed, ..Self::UNSET };
        if stride <= page / SMALL_PART {
            return Ok(of.in_slab(1, page));
        }
        let first = stride.div_ceil(page);
        let mut best = of.apart(first, page);
        let mut pages = first;
        loop {
            let (inside, apart) = (of.in_slab(pages, page), of.apart(pages, page));
            let here = if inside.capacity == apart.capacity { inside } else { apart };
            if here.waste() * best.bytes() < best.waste() * here.bytes() || pages == first {
                best = here;
            }
            if best.waste() * GOOD_PART <= best.bytes() || here.capacity as usize >= ENOUGH {
                return Ok(best);
            }
            pages += 1;
        }
    }

    const fn in_slab(self, pages: usize, page: usize) -> Self {
        let bytes = pages * page;
        let mut capacity = (bytes - RECORD_BYTES) / self.stride();
        while capacity * self.stride() + record_bytes(capacity, self.constructed) > bytes {
            capacity -= 1;
        }
        self.with(bytes, page, capacity, bytes - record_bytes(capacity, self.constructed))
    }

    const fn apart(self, pages: usize, page: usize) -> Self {
        self.with(pages * page, page, pages * page / self.stride(), 0)
    }

    const fn with(self, bytes: usize, page: usize, capacity: usize, record_at: usize) -> Self {
        let end = if record_at == 0 { bytes } else { record_at };
        let (extent, step) = (capacity * self.stride(), colour::step(self.align(), self.stride()));
        Self {
            capacity: capacity as u32,
            words: capacity.div_ceil(64) as u32,
            record_at: record_at as u32,
            colour_step: step as u32,
            colours: colour::count(end - extent, step),
            grain_shift: bytes.next_power_of_two().trailing_zeros(),
            page_bytes: page as u32,
            slab_bytes: bytes,
            extent,
            reciprocal: (1 << POINT) / self.stride() as u64 + 1,
            ..self
        }
    }

    pub const fn size(&self) -> usize {
        self.size as usize
    }

    pub const fn stride(&self) -> usize {
        self.stride as usize
    }

    pub const fn align(&self) -> usize {
        self.align as usize
    }

    pub const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    pub const fn page_bytes(&self) -> usize {
        self.page_bytes as usize
    }

    pub const fn is_constructed(&self) -> bool {
        self.constructed
    }

    pub const fn is_apart(&self) -> bool {
        self.record_at == 0
    }

    pub const fn colours(&self) -> u32 {
        self.colours
    }

    pub const fn colour_step(&self) -> u32 {
        self.colour_step
    }

    pub const fn bytes(&self) -> usize {
        self.slab_bytes
    }

    pub const fn waste(&self) -> usize {
        self.slab_bytes - self.extent
    }

    pub(super) const fn slab_align(&self) -> usize {
        if self.align > self.page_bytes { self.align as usize } else { self.page_bytes as usize }
    }

    #[inline]
    pub(super) const fn index_of(&self, offset: usize) -> usize {
        ((offset as u64 * self.reciprocal) >> POINT) as usize
    }
}

pub(super) const fn record_bytes(capacity: usize, constructed: bool) -> usize {
    let words = capacity.div_ceil(64);
    RECORD_BYTES + WORD * words * if constructed { 2 } else { 1 }
}

#[cfg(test)]
mod tests;
