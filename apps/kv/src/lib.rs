//! An FPTree on a crash-consistent heap, and a server on it that speaks the Redis protocol.
//!
//! **From.** NVAlloc §6.3 measures with FPTree, a concurrent B+ tree: inner nodes in DRAM, leaves
//! of 64 slots, one-byte fingerprints, a bitmap whose store commits. Where we differ:
//! - A leaf has 63 slots. Seven of them, their fingerprints and their valid bits share a line, so
//!   that an insertion changes one line and a deletion one word.
//! - A copy of a leaf's fingerprints and bits in DRAM serves searches: lines that were written back
//!   are in no cache.
//! - Directories of up to 128 leaves are persistent too: a restart reads one line for each.
//! - A leaf stores the smallest key it may hold, so that no pair is read to rebuild inner nodes.
//! - Key and value are one object, which never changes: one allocation for each insertion, and one
//!   fence for object, slot and word.
//! - Readers compare versions, without transactional memory.
//!
//! **Invariants.** *KV1* the ranges of the leaves divide all keys. *KV2* a key lies in at most one
//! leaf, at most once. *KV3* every published object is reached from the root. *KV4* each change is
//! one commit, so that a crash leaves the state before or after it.

mod check;
mod clear;
pub mod heap;
mod latch;
mod layout;
pub mod log;
pub mod memory;
mod node;
mod scan;
pub mod server;
mod sorted;
mod split;
pub mod store;
mod tree;

pub use check::Census;
pub use log::Log;
pub use scan::{Entry, Range};
pub use store::{Change, Reservation, Store, StoreError};
pub use tree::{Outcome, Tree, When};
