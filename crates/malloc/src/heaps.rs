//! The process's private heaps ([`craton_objects::heaps`]).

pub mod api;

pub use craton_objects::heaps::{NAME_MAX, Options, OwnStats, Place, Refused};
