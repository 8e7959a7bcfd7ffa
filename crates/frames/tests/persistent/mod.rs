//! Persistent zones: what a crash leaves, and what else may lie where one is looked for.

mod crash;
mod meanwhile;
mod page;
mod world;
