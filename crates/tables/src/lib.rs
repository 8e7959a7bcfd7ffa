//! Craton's options and counters, as data: the allocator and the help of `craton` use the rows, and
//! `cargo xtask tidy --fix` writes blocks in `craton.h`, `README.md` and `docs/`. A new option also
//! needs a handler in `crates/malloc/src/options/handlers.rs`. The allocator is apart, since its
//! hooks run in every program that links it.
#![no_std]

pub mod amount;
pub mod counters;
pub mod options;
pub mod plain;

#[cfg(test)]
mod tests;
