//! Craton's options and counters, as data.
//!
//! **What.** A row per option ([`options::OPTIONS`]) and per counter ([`mod@counters`]). From them
//! come the allocator's parser, getter and statistics, the help of the program `craton`, and, by
//! `cargo xtask tidy --fix`, blocks in `craton.h`, `README.md` and `docs/`. A new option also needs
//! a handler in `crates/malloc/src/options/handlers.rs`.
//!
//! **Not here.** The allocator's code, so that tools can read the rows without linking the
//! allocator, whose hooks run at the start and exit of every program that links it.
#![no_std]

pub mod amount;
pub mod counters;
pub mod options;
pub mod plain;

#[cfg(test)]
mod tests;
