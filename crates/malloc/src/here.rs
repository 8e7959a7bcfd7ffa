//! The process as a type, without data: `statics.rs` makes the parts that are generic over it.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;
