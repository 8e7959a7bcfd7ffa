//! What a user has to believe before a malloc serves a program: checked from outside.
//!
//! **What.** [`client`] is a program that checks every object that it holds; [`faults`] runs a program
//! whose system calls fail where the allocator makes them. The experiment `trust` drives them.

pub mod client;
pub(crate) mod faults;
