//! The process as a type, without data. Heap, object caches, kit, limits and background work are
//! generic over it. `statics.rs` names it; `hooks.rs`, `govern.rs`, `caches/api.rs` and `debug.rs`
//! implement the parts' traits.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;
