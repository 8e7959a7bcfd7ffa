//! Checks of malloc from outside, before a program trusts it.
//!
//! **What.** [`client`] is a program that checks every object that it holds; [`faults`] runs a program
//! whose system calls fail where the allocator makes them. The experiment `trust` drives them.

pub mod client;
pub(crate) mod faults;
