//! The tests of the frames, as one program; those of orders of steps are in `loom.rs`.
#![cfg(not(loom))]

mod beyond;
mod common;
mod model;
mod persistent;
mod small;
mod twice;
