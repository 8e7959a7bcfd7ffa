//! Persistent zones: what a crash leaves, and what else may lie where one is looked for.

#[path = "../common/mod.rs"]
mod common;
mod crash;
mod meanwhile;
mod page;
mod world;
