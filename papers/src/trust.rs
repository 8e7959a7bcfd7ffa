//! Checks of malloc from outside, before a program trusts it.

pub mod client;
pub(crate) mod faults;
