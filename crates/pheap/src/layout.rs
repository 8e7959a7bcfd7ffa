//! The file format, version 4. Integers are little endian; offsets count bytes from the beginning.
//! ```text
//! 0        superblock  1 line   magic, version·model·stripes, uuid (2 words),
//!                               lanes·lines of a half, created, most bytes, check
//! 128,256  state       1 line   settled epoch, generation, state, sequence, 0, 0, 0, check
//! 1024     bookkeeping 3 KiB    heads of the bookkeeping log
//! 4096     roots       60 KiB   lines: pointer, tag, name (39 bytes and its length), check
//! 65536    lanes                a header of 128 B each: pending lines, generation that used the
//!                               ring; from 64 on: transaction, undo slot, a check of each
//!          rings                2 halves of H lines each
//!          records              of frames alone, from the next page on: `frame_extents.rs`
//! then     data                 units of 64 KiB, from the next multiple of 64 KiB
//! ```
//! A redo line:
//! ```text
//! 0  epoch 48 | kind 4 | part 6 | parts 6        4  new value of the slot, or new object
//! 1  stamp                                       5  home word 48 | length, high 16
//! 2  slot 48 | length, low 16                    6  value of the home word, or its bits
//! 3  old value of the slot, or old object        7  check
//! ```
//! A slab is one unit: a header of 1 KiB, then objects.
//! ```text
//! 0    line   magic 16 | class 8 | old class 8 | old objects 16 | stripes 8; unit; 0 …; check
//! 64   bitmap 8 stripes of a line: object b is bit b / stripes of stripe b % stripes
//! 576  table  96 entries of 2 B: object of the old class 14 | allocated 1
//! 768  guests 2,016 bits, one for each 32 B
//! ```
//! A torn state line leaves the other. A root's check leaves out its pointer.

use crate::frame_extents::FrameConfig;
use craton_base::{LINE_BYTES, Line};

pub const MAGIC: u64 = u64::from_le_bytes(*b"CRATONPH");
pub const VERSION: u32 = 4;

pub const SUPER: u64 = 0;
pub const STATES: [u64; 2] = [128, 256];
pub const BOOK: u64 = 1024;
pub const BOOK_BYTES: u64 = 3072;
pub const ROOTS: u64 = 4096;
pub const ROOTS_END: u64 = 65536;
pub const LANES: u64 = 65536;
pub const LANE_HEADER_BYTES: u64 = 128;

/// Offsets in a lane's header. The transaction need not be the lane's thread's.
pub const LANE_PENDING: u64 = 0;
pub const LANE_USED: u64 = 8;
pub const LANE_TX: u64 = 64;
pub const LANE_UNDO: u64 = 72;
pub const LANE_TX_CHECK: u64 = 80;
pub const LANE_UNDO_CHECK: u64 = 88;

pub const PAGE: u64 = 4096;
pub const UNIT: u64 = 65536;
pub const UNIT_SHIFT: u32 = 16;
pub const PAGES_PER_UNIT: u32 = (UNIT / PAGE) as u32;

pub const SLAB_HEADER: u64 = 1024;
pub const SLAB_BITMAP: u64 = 64;
pub const SLAB_TABLE: u64 = 576;
pub const SLAB_TABLE_ENTRIES: usize = 96;
pub const SLAB_GUESTS: u64 = 768;
pub const SLAB_GUESTS_BYTES: u64 = 256;
pub const SLAB_MAGIC: u64 = 0x51ab;

/// 36 of a page's number and 12 inside it (NVAlloc §5.3).
pub const OFFSET_BITS: u32 = 48;
pub const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub lanes: u32,
    /// Lines of half a ring.
    pub half: u32,
    /// Largest end of a heap of frames; 0 for other models.
    pub frames_end: u64,
}

impl Places {
    pub const fn lane_header(&self, lane: u32) -> u64 {
        LANES + lane as u64 * LANE_HEADER_BYTES
    }

    pub const fn ring(&self, lane: u32) -> u64 {
        self.lane_header(self.lanes) + lane as u64 * 2 * self.half as u64 * LINE_BYTES
    }

    pub const fn records(&self) -> u64 {
        self.ring(self.lanes).next_multiple_of(PAGE)
    }

    /// A multiple of [`UNIT`].
    pub const fn data(&self) -> u64 {
        // Counts the records' pages too: a few records too many.
        let pages = self.frames_end.saturating_sub(self.records()) / PAGE;
        let records = if self.frames_end == 0 { 0 } else { FrameConfig::bytes_for(pages) };
        (self.records() + records).next_multiple_of(UNIT)
    }

    /// Most pages of data, in a heap of frames.
    pub const fn frames(&self) -> u64 {
        self.frames_end.saturating_sub(self.data()) / PAGE
    }
}

const KEYS: [u64; 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_95b0_3f1b,
    0x8bb8_4b93_962e_acc9,
    0x2d35_8dcc_aa6c_78a5,
    0xbf58_476d_1ce4_e5b9,
];

const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product as u64) ^ (product >> 64) as u64
}

/// Of a line's first seven words, and of `seed`, which tells whose line it is.
#[inline]
pub const fn check_of(line: &Line, seed: u64) -> u64 {
    let a = fold(line[0] ^ KEYS[0], line[1] ^ KEYS[1]);
    let b = fold(line[2] ^ KEYS[2], line[3] ^ KEYS[3]);
    let c = fold(line[4] ^ KEYS[4], line[5] ^ KEYS[5]);
    let d = fold(line[6] ^ KEYS[6], seed ^ KEYS[7]);
    // The rotations keep equal pairs from cancelling out. 0 marks an empty line.
    fold(a.wrapping_add(b.rotate_left(17)), c.wrapping_add(d.rotate_left(31)) ^ KEYS[0]) | 1
}

#[cfg(test)]
mod tests;
