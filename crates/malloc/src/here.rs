//! The process as a type.
//!
//! **What.** The heap, object caches, the debugging kit, limits and background work are generic over the process around them.
//! For the static ones that is [`Here`], which has no data: `statics.rs` names it, and each file that binds a part to the
//! process says what it does there (`hooks.rs`, `govern.rs`, `caches/api.rs`, `debug.rs`).

#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;
