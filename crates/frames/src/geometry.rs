//! The division of frames (LLFree §3.2), a type parameter so that tests search a tiny world to the
//! end.

/// A cache line.
pub const ROWS: usize = 8;
pub const QUARTERS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search {
    Sets,
    Paper,
}

pub trait Geometry: Copy + Send + Sync + 'static {
    /// log2 of a row's frames, 1 to 6.
    const ROW_ORDER: u32;
    /// Even, at most 64.
    const CHILDREN: usize;

    const HUGE_ORDER: u32 = Self::ROW_ORDER + ROWS.trailing_zeros();
    const HUGE: usize = 1 << Self::HUGE_ORDER;
    const TREE: usize = Self::HUGE * Self::CHILDREN;
    /// Two huge frames.
    const MAX_ORDER: u32 = Self::HUGE_ORDER + 1;
    const CLAIM_ORDER: u32 = if Self::ROW_ORDER < 5 { Self::ROW_ORDER } else { 5 };
    /// For each processor; the sum is rounded up to a power of two.
    const SLOTS: usize = 16;
    const SEARCH: Search = Search::Sets;
    const FULL_ROW: u64 = u64::MAX >> (64 - (1u32 << Self::ROW_ORDER));
    const FULL_CHILD: u16 = Self::HUGE as u16;
}

/// LLFree §3.2.2.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl Geometry for Standard {
    const ROW_ORDER: u32 = 6;
    const CHILDREN: usize = 32;
}

/// Pages of 8 KiB, 256 to a huge frame.
#[derive(Clone, Copy, Debug)]
pub struct Pages;

impl Geometry for Pages {
    const ROW_ORDER: u32 = 5;
    const CHILDREN: usize = 32;
}

#[derive(Clone, Copy, Debug)]
pub struct Tiny;

impl Geometry for Tiny {
    const ROW_ORDER: u32 = 1;
    const CHILDREN: usize = 2;
    const SLOTS: usize = 1;
}
