//! The debugging kit's parts that decide nothing about memory: patterns, the log, the search for leaks.
//!
//! **What.** A buffer under the kit is filled with a pattern while nobody uses it ([`pattern`]), stands between bytes that nobody may write, and
//! what is done with it is noted in a log ([`audit`]). Buffers to which nothing leads are found by [`leak`].
//!
//! **From.** Bonwick94 §6. Where we differ: redzones stand at both ends and begin with the very byte behind the size that was asked for; the search
//! for leaks follows pointers from the roots instead of looking at ages.

pub mod audit;
pub mod leak;
pub mod pattern;
