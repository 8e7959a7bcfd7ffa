//! The page heap over simulated memory.
//!
//! **What.** One binary. What any geometry can show runs twice: with the machine's hugepages of 256
//! pages ([`machine`]) and with hugepages of 8 pages ([`tiny`]), where a few operations reach every
//! kind of state. Sizes in those files are parts of `P`, the pages of a hugepage.
#![allow(clippy::duplicate_mod)] // That is how they run twice.

mod bytes;
mod common;
mod machine;
mod third;
mod tiny;
