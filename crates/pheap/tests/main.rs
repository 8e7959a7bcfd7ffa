//! The tests of the persistent heap, as one program.

mod api;
mod common;
mod crash;
mod morph;
