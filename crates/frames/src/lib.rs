//! Page frames, lock- and log-free, after LLFree.
//!
//! **What.** A [`Zone`] says which frames of a range are allocated, and finds free ones for processors that do not get
//! into each other's way. It knows frames by number, and never touches them. Its metadata are arrays of the caller's. A
//! [`PersistentZone`] is one whose lower level outlasts crashes.
//!
//! **From.** "LLFree: Scalable and Optionally-Persistent Page-Frame Allocation", USENIX ATC 2023. Where we differ:
//! - Orders 7 and 8 are flags in the huge frame's entry, as order 9 is, so that one change of one word allocates and
//!   frees them (§4.2.1 takes rows one after the other, and gives crash consistency up there).
//! - Two entries are one word of 32 bits, which order 10 changes at once; no word is accessed by two sizes.
//! - A processor claims the free frames of half a row at once, and hands them out from a word of its own: one locked
//!   operation each, and no counter of its tree's frames (§3.2.2) to be kept and split. Frames that are freed together
//!   become a claim likewise.
//! - Requests of every order, and frees of parts, are crash-consistent, also where caches are not persistent
//!   ([`Media`]).
//! - A processor goes to the tree that it frees into (§3.2.2) only when its own is used up and that one nearly full: else
//!   every processor would leave trees behind that are used in part.
//! - Trees are found by sets, by class and kind, in place of a search through their entries.
//! - Within a tree the huge frame with fewest free frames serves first, and trees that are nearly allocated serve before
//!   free ones.
//!
//! ```
//! use craton_frames::{Config, Error, Init, Kind, Local, Metadata, Request, Sizes, Zone};
//!
//! // Metadata for a GiB in frames of 4 KiB that two processors use: arrays of the caller's, from wherever.
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
//!
//! **Units.** A *frame* is the machine's page slot, 4 KiB on x86-64, and order *k* is 2^k frames, aligned to that. A
//! *row* is 64 frames, a *huge frame* 512, a *tree* 32 huge frames, by [`Standard`]; [`Geometry`] says otherwise. The
//! frame *half* is half of a row, what a processor claims.
//!
//! **State.** For 128 GiB:
//! ```text
//! rows       a bit for each frame                          4 MiB
//! children   16 bits for each huge frame                 128 KiB
//! trees      16 bits for each tree                         4 KiB
//! index      sets of trees, offline huge frames           11 KiB
//! locals     a cache line for each processor and kind    192 B each processor
//! ```
//!
//! **Invariants.** *F1*–*F3* of the lower level (`lower.rs`), *F4* and *F5* of trees (`tree.rs`), *P1*–*P3* of what
//! persists (`page.rs`, `persistent.rs`), and
//! *F6* a frame that is claimed and not handed out is allocated by its bit, and no half with such frames is claimed
//! twice;
//! *F7* a tree is reserved if one processor's root names it, and by one at most. [`Zone::check`] looks.
//!
//! **Threads.** Every method may be called by anybody at any time; a processor's number is a hint that may be stale.
//! All accesses are in one order (`word.rs`). A request that finds somebody splitting the same quarter of a huge frame
//! waits for him (three writes); nothing else waits.
//!
//! **Failure.** Every request can be refused ([`Error`]), and nothing has changed then. Two frees of one frame at the same
//! moment by two processors may both succeed: claims see a double free when the first one is over.
//!
//! **Not here.** The frames' contents, addresses, and locks.
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
mod persistent;
mod seat;
mod tree;
mod word;
mod zone;

pub use check::Broken;
pub use config::{Config, Init, Request};
pub use craton_base::{Density, FrameSource};
pub use error::Error;
pub use geometry::{Geometry, Pages, Standard, Tiny};
pub use local::Local;
pub use media::{Cached, Media, Volatile};
pub use metadata::{Metadata, Sizes};
pub use nodes::{Node, Nodes};
pub use page::PAGE_WORDS;
pub use persistent::{Opened, PersistentZone};
pub use seat::Seat;
pub use tree::{KINDS, Kind, Thresholds};
pub use zone::Zone;
