//! Page frames, lock- and log-free, after LLFree.
//!
//! A [`Zone`] records which frames of a range are allocated, in the caller's arrays. A
//! [`PersistentZone`] survives crashes.
//! **From.** "LLFree: Scalable and Optionally-Persistent Page-Frame Allocation", USENIX ATC 2023.
//! Where we differ:
//! - Orders 7 and 8 are flags in the huge frame's entry, as order 9: one change of a word (§4.2.1
//!   takes row after row). Two entries share a word: order 10. So every request is
//!   crash-consistent.
//! - A CPU claims the free frames of half a row and allocates from the claim's word: one locked
//!   operation each, without splitting the tree's counter (§3.2.2). Frames freed together become a
//!   claim. A claim whose slot bars the last free halves of a huge frame ends.
//! - A CPU without a tree is a guest in another CPU's. It first returns to the huge frame where it
//!   found frames, and to the others if the tree is of its kind.
//! - A CPU reserves the tree that it frees into (§3.2.2) only when its own is used up and that one
//!   nearly full: else every CPU would leave partial trees behind.
//! - A frame freed into a tree waits for that tree's kind. A kind without a tree fills the emptiest
//!   huge frame of another kind's tree.
//! - A refused request leaves a proof that refuses later ones until frames are freed.
//! - Sets of class and kind find trees; zones of [`Paper`] search as the paper. The fullest huge
//!   frame serves first, and nearly allocated trees before free ones.
//! ```
//! use craton_frames::{Config, Error, Init, Kind, Local, Metadata, Request, Sizes, Zone};
//!
//! // Metadata for a GiB in frames of 4 KiB and two processors: the caller's arrays.
//! let (frames, processors) = (1 << 18, 2);
//! let sizes = Sizes::of::<craton_frames::Standard>(frames, processors);
//! fn array<T: Default>(len: usize) -> Vec<T> {
//!     (0..len).map(|_| T::default()).collect()
//! }
//! let (rows, children, trees, index) = (array(sizes.rows), array(sizes.children), array(sizes.trees), array(sizes.index));
//! let locals: Vec<Local> = array(sizes.locals);
//! let metadata = Metadata { rows: &rows, children: &children, trees: &trees, index: &index, locals: &locals };
//! let zone: Zone = Zone::new(frames, metadata, Init::Free, Config::new(processors))?;
//!
//! // Four frames for the second processor. They may come back in parts.
//! let request = Request { order: 2, kind: Kind::Movable, processor: 1 };
//! let first = zone.get(request)?;
//! zone.put(first + 2, Request { order: 1, ..request })?;
//! zone.put(first, Request { order: 1, ..request })?;
//! assert_eq!(zone.put(first, request), Err(Error::NotAllocated { frame: first, order: 2 }));
//! assert_eq!(zone.free_frames(), frames);
//! # Ok::<(), Error>(())
//! ```
//! **Units.** Order *k* is 2^k aligned frames. By [`Standard`] a *row* is 64 frames, a *huge frame*
//! 512, a *tree* 32 huge frames; a *half* of a row is the unit of claims.
//! **State.** For 128 GiB:
//! ```text
//! rows       a bit for each frame                          4 MiB
//! children   16 bits for each huge frame                 128 KiB
//! trees      16 bits for each tree                         4 KiB
//! index      sets of trees, offline huge frames           12 KiB
//! locals     19 lines for each processor               1,216 B each
//! ```
//! **Invariants.** F1–F3: `lower.rs`. F4, F5: `tree.rs`. F6: `lower/claims.rs`. F8: `proof.rs`.
//! F9–F11: `page.rs`, `persistent.rs`. *F7* One CPU's root names each reserved tree as its own.
//! **Threads.** Any thread may call any method; a CPU number may be stale. A request waits only
//! while another splits the same quarter of a huge frame, or moves frames between the row and a
//! claim with the same slot: a few writes, at most behind such a split. A thread that loses its
//! processor between them makes the others spin until it runs again, so a kernel calls with
//! interrupts off.
#![no_std]
#![forbid(unsafe_code)]

mod batch;
mod check;
mod child;
mod claim;
mod config;
mod error;
mod field;
mod geometry;
mod index;
mod local;
mod lower;
mod media;
mod metadata;
mod nodes;
mod offline;
mod page;
mod paper;
mod persistent;
mod proof;
mod seat;
mod slot;
mod tree;
mod word;
mod zone;

pub use check::Broken;
pub use config::{Config, Init, Request};
pub use craton_base::{Density, FrameSource};
pub use error::Error;
pub use geometry::{Geometry, Pages, Search, Standard, Tiny};
pub use local::Local;
pub use media::{Cached, Media, Volatile};
pub use metadata::{Metadata, Sizes};
pub use nodes::{Node, Nodes};
pub use page::PAGE_WORDS;
pub use paper::Paper;
pub use persistent::{Opened, PersistentZone};
pub use seat::Seat;
pub use tree::{KINDS, Kind, Thresholds};
pub use zone::Zone;
