//! The division of frames, huge frames and trees (LLFree §3.2: 64 frames a word, 512 a huge frame,
//! 32 huge frames a tree). A type parameter, so that a test can search a tiny world to the end.

/// Rows of a bit field: words, of which eight are a cache line.
pub const ROWS: usize = 8;
/// Parts of a huge frame that can be allocated as a whole besides it.
pub const QUARTERS: usize = 4;

/// How a CPU finds its next tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search {
    /// By sets of trees of each class and kind.
    Sets,
    /// As [`crate::Paper`].
    Paper,
}

/// Sizes of a zone's parts, and how it searches them.
pub trait Geometry: Copy + Send + Sync + 'static {
    /// log2 of the frames in a row, 1 to 6.
    const ROW_ORDER: u32;
    /// Huge frames in a tree: an even number, at most 64.
    const CHILDREN: usize;

    /// log2 of the frames in a huge frame.
    const HUGE_ORDER: u32 = Self::ROW_ORDER + ROWS.trailing_zeros();
    /// Frames in a huge frame.
    const HUGE: usize = 1 << Self::HUGE_ORDER;
    /// Frames in a tree.
    const TREE: usize = Self::HUGE * Self::CHILDREN;
    /// The largest order: two huge frames.
    const MAX_ORDER: u32 = Self::HUGE_ORDER + 1;
    /// log2 of the frames that a CPU claims at once.
    const CLAIM_ORDER: u32 = if Self::ROW_ORDER < 5 { Self::ROW_ORDER } else { 5 };
    /// Slots of claims for each processor, rounded up to a power of two in all.
    const SLOTS: usize = 16;
    const SEARCH: Search = Search::Sets;
    /// All frames of a row.
    const FULL_ROW: u64 = u64::MAX >> (64 - (1u32 << Self::ROW_ORDER));
    /// A child's counter when all its frames are free.
    const FULL_CHILD: u16 = Self::HUGE as u16;
}

/// The paper's: huge frames of 512 frames, trees of 32 huge frames (LLFree §3.2.2).
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl Geometry for Standard {
    const ROW_ORDER: u32 = 6;
    const CHILDREN: usize = 32;
}

/// Frames of 8 KiB, Craton's pages, 256 to a huge frame of 2 MiB. Rows have half of their bits.
#[derive(Clone, Copy, Debug)]
pub struct Pages;

impl Geometry for Pages {
    const ROW_ORDER: u32 = 5;
    const CHILDREN: usize = 32;
}

/// Huge frames of 16 frames, trees of two: for tests that try every sequence of operations.
#[derive(Clone, Copy, Debug)]
pub struct Tiny;

impl Geometry for Tiny {
    const ROW_ORDER: u32 = 1;
    const CHILDREN: usize = 2;
    const SLOTS: usize = 1;
}
