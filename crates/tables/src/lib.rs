//! Craton's options and counters, as data.
//!
//! **What.** One row for each option ([`options::OPTIONS`]) and one for each counter ([`counters`]). The allocator takes
//! its parser, getter and statistics from these rows, the program `craton` its help, and `cargo xtask tidy --fix` the
//! blocks between marks in `craton.h`, `README.md` and `docs/`. To add an option, write its row here and its handler in
//! `crates/malloc/src/options/handlers.rs`; to add a counter, write its row.
//!
//! **Not here.** Code: the allocator parses and applies values. A crate apart, so that tools read the rows without
//! linking the allocator, whose hooks run at the start and at the exit of every program that links it.
#![no_std]

pub mod counters;
pub mod options;

#[cfg(test)]
mod tests;
