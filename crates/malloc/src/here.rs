//! The process as a type: heap, object caches, kit, limits and background work are generic over it.
//! `statics.rs` names [`Here`]; the files that bind a part implement it (`hooks.rs`, `govern.rs`,
//! `caches/api.rs`, `debug.rs`, `clock.rs`).

/// This process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;

/// Its clock ([`crate::clock`]). Without data, so that the static heap stays all zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessClock;
