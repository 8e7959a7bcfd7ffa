//! A heap that survives, after NVAlloc.
//!
//! **What.** Objects in persistent memory or in a file, with slots that hold their offsets. Each
//! operation changes an object's state and its slot together, also in a crash.
//! **From.** "NVAlloc: Rethinking Heap Metadata Management in Persistent Memory Allocators", ASPLOS
//! 2022. Where we differ:
//! - One redo line and one fence make an operation durable; words are written back later, a line
//!   once for many. NVAlloc fences log, bitmap and slot; its log cannot tell what to redo (§4.2).
//! - Free clears the slot in the same step.
//! - A slab's header is the first KiB of its 64, always: objects never lie there, so any slab may
//!   change its class. A change commits by one line (§5.2 counts steps in a flag).
//! - Slabs are listed by occupancy: the fullest serve first (§4.2 has one list, and an LRU).
//!
//! The paper's ways are options, to measure them: `eager` (§4.2), `stripes` (§5.1), `morph` (§5.2);
//! [`Model::Frames`] leaves out the bookkeeping log (§5.3).
//!
//! ```
//! use craton_pheap::{Config, Error, Heap, Options, Slot};
//! use craton_sim::SimMedium;
//!
//! let medium = SimMedium::new(1 << 20, 64 << 20);
//! let heap = Heap::create(medium.clone(), Config::default(), Options::default())?;
//! let list = heap.add_root(b"list", 0)?;
//! // A node whose first word is a slot for the next node; durable before the root has it.
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
//! **State.** `layout.rs` has the file format. In DRAM: lanes (redo lines, cached objects), arenas
//! (slabs by class and occupancy), extents, a word for each unit of 64 KiB.
//! **Invariants.** Lanes NL1, NL2; arenas A1, A2; state NS1; roots N1; recovery NR1–NR3; morphing
//! NM1–NM3; guests NG1, NG2; transactions NT1, NT2; extents E1–E5, NF1–NF3; bookkeeping log
//! B1–B5.
//! **Threads.** A thread has a lane. Recovery redoes lines by stamp, in happens-before order.
//! **Failure.** [`Error`]; the heap is then as before. **Not here.** How a file is mapped.
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
