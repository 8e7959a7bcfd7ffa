//! Heaps with names in the process ([`crate::objects::heaps`]).

pub mod api;

pub use crate::objects::heaps::{NAME_MAX, Options, OwnStats, Place, Refused};
