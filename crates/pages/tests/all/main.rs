//! The page heap over simulated memory. What any geometry can show runs twice: with the machine's
//! hugepages ([`machine`]) and with ones of 8 pages ([`tiny`]), where a few operations reach every
//! kind of state. Sizes are parts of `P`, the pages of a hugepage.
#![allow(clippy::duplicate_mod)] // That is how they run twice.

mod bytes;
mod common;
mod machine;
mod third;
mod tiny;
