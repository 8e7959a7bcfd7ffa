//! A heap that survives, after "NVAlloc: Rethinking Heap Metadata Management in Persistent Memory
//! Allocators", ASPLOS 2022: objects in persistent memory or a file, and slots with their offsets.
//!
//! **From.** Where we differ:
//! - One redo line and one fence make an operation durable; lines are written back later, once for
//!   many. NVAlloc fences log, bitmap and slot (§4.2).
//! - Free clears the slot in the same step; in NVAlloc the caller does.
//! - Any slab may change its class, by one line (§5.2 counts steps in a flag).
//! - The fullest slabs serve first (§4.2 has one list a class, and an LRU).
//!
//! Options bring the paper's ways back, to measure them: `eager` (§4.2), `stripes` (§5.1), `morph`
//! (§5.2).
//!
//! ```
//! use craton_pheap::{Config, Error, Heap, Options, Slot};
//! use craton_sim::SimMedium;
//!
//! let medium = SimMedium::new(1 << 20, 64 << 20);
//! let heap = Heap::create(medium.clone(), Config::default(), Options::default())?;
//! let list = heap.add_root(b"list", 0)?;
//! // A node whose first word is a slot for the next node.
//! let first = heap.alloc_with(list, 64, |heap, at| heap.write(at, 0, 0))?;
//! heap.alloc_to(Slot(first.0), 100)?;
//! drop(heap); // As in a crash.
//! let after = SimMedium::from_image(&medium.now().durable());
//! let (heap, report) = Heap::open(after, Options::default())?;
//! assert!(!report.clean);
//! let first = heap.read(heap.root(b"list")?.slot.0);
//! heap.free_from(Slot(first))?;
//! assert_eq!(heap.free_from(Slot(first)), Err(Error::Null { slot: first }));
//! heap.check()?;
//! heap.close();
//! # Ok::<(), Error>(())
//! ```
//! Recovery redoes lines by stamp, in happens-before order. `layout.rs` has the file format.
#![forbid(unsafe_code)]

mod alloc;
mod arena;
mod batch;
mod book_log;
mod check;
mod claim;
mod class;
mod collect;
mod config;
mod defrag;
mod error;
mod extents;
mod fixed;
mod frame_extents;
mod guests;
mod heap;
mod lane;
mod layout;
mod line;
mod morph;
mod object;
mod record;
mod recover;
mod roots;
mod seat;
mod slab;
mod spare;
mod state;
mod sync;
mod tcache;
mod tx;
mod units;
mod view;

pub use batch::{Batch, Reserved};
pub use book_log::{ChunkView, LogConfig, LogStats};
pub use check::Stats;
pub use class::SMALL_MOST;
pub use collect::{Conservative, Trace};
pub use config::{Config, FRAMES_MOST, Model, Options};
pub use defrag::Moved;
pub use error::Error;
pub use extents::{
    Extent, ExtentConfig, ExtentError, ExtentKind, ExtentStats, Extents, Home, PAGE_BYTES, Plan, Range, RangeState,
    UNIT_PAGES,
};
pub use frame_extents::{FrameConfig, FrameExtents};
pub use heap::{Heap, Offset, Slot};
pub use recover::Report;
pub use roots::{ROOT_NAME_BYTES, Root};
pub use state::Phase;
pub use tx::Tx;
pub use view::{Identity, SlabView};
