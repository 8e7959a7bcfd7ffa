//! An FPTree on a crash-consistent heap, and a server on it that speaks the Redis protocol.
//!
//! **What.** [`Tree`] is an ordered map from byte strings to byte strings that survives. Its leaves
//! and pairs lie in a [`Store`]; its inner nodes lie in DRAM and are read again after a restart.
//! The program `craton-kv` serves it to `redis-cli` and other clients.
//!
//! **From.** NVAlloc §6.3 measures with FPTree, a concurrent B+ tree: inner nodes in DRAM, leaves
//! of 64 slots, one-byte fingerprints on the first line, a bitmap whose store commits. We differ:
//! - Directories of up to 128 leaves are persistent too and replace the chain of leaves, so that a
//!   restart reads one line for each directory, and a directory's leaves when first used.
//! - A leaf stores the smallest key it may hold, so that no pair is read to rebuild inner nodes.
//! - Key and value are one object, found by one slot: one allocation for each insertion.
//! - Readers compare versions, without transactional memory.
//!
//! **State.** `layout` has the byte tables; `node` and `sorted` the structures in DRAM.
//!
//! **Invariants.** *KV1* the ranges of the leaves divide all keys. *KV2* a key lies in at most one
//! leaf, at most once. *KV3* every published object is reached from the root. *KV4* each change is
//! one commit, so that a crash leaves the state before or after it. [`Tree::check`] walks KV1 to
//! KV3.
//!
//! **Threads.** Readers take no lock. A writer locks one leaf; splits lock its directory too.
//!
//! **Failure.** Refused memory, and a store that contradicts itself, are errors; nothing changed.

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
