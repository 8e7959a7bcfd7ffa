//! The process as a type.
//!
//! **What.** Heap, object caches, debugging kit, limits and background work are generic over the
//! process. The statics use [`Here`], which has no data: `statics.rs` names it, and `hooks.rs`,
//! `govern.rs`, `caches/api.rs` and `debug.rs` implement the parts' traits for it.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;
