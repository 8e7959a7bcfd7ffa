//! A crash-consistent persistent heap, after NVAlloc (ASPLOS 2022).
#![forbid(unsafe_code)]

mod book_log;
mod extents;
mod frame_extents;

pub use book_log::{ChunkView, LogConfig, LogStats};
pub use extents::{
    Extent, ExtentConfig, ExtentError, ExtentKind, ExtentStats, Extents, Home, PAGE_BYTES, Plan, Range, RangeState,
    UNIT_PAGES,
};
pub use frame_extents::{FrameConfig, FrameExtents, FrameMemory};
