//! The persistent heap; orders of steps are in `loom.rs`.
#![cfg(not(loom))]

mod api;
mod common;
mod cost;
mod crash;
mod damage;
mod defrag;
mod epochs;
mod fixed;
mod guests;
mod many;
mod model;
mod morph;
mod mutation;
mod threads;
