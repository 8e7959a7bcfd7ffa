//! Checks of malloc from outside, before a program trusts it.
//!
//! [`client`] checks every object that it holds; [`faults`] makes a program's n-th system call fail
//! in the allocator. The experiment `trust` drives them.

pub mod client;
pub(crate) mod faults;
