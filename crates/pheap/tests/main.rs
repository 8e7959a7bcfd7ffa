//! The tests of the persistent heap, as one program.

mod api;
mod common;
mod cost;
mod crash;
mod morph;
mod mutation;
mod threads;
