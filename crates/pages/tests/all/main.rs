//! The page heap over simulated memory: with the machine's hugepages, and with ones of 8 pages,
//! where few operations reach all states. Sizes are parts of `P`, the pages of a hugepage.
#![allow(clippy::duplicate_mod)] // They run twice.

mod bytes;
mod common;
mod machine;
mod third;
mod tiny;
