//! Craton's options and counters, as data.
//!
//! **What.** A row for each option ([`options::OPTIONS`]) and counter ([`mod@counters`]). The
//! allocator's parser and statistics and the help of `craton` use them, and `cargo xtask tidy
//! --fix` writes blocks in `craton.h`, `README.md` and `docs/`. A new option also needs a handler
//! in `crates/malloc/src/options/handlers.rs`.
//!
//! **Not here.** The allocator: tools read the rows without linking it, since its hooks run in
//! every program that links it.
#![no_std]

pub mod amount;
pub mod counters;
pub mod options;
pub mod plain;

#[cfg(test)]
mod tests;
