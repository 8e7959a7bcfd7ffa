//! The guest's decisions that touch no machine: tested on the host.
//!
//! **What.** [`memory`] cleans the machine's memory map, [`plan`] divides it between the zone, its
//! metadata and holes, [`paging`] builds page tables from frames,
//! and a [`board`] has what the guest offers to its host.
#![cfg_attr(not(test), no_std)]

pub mod board;
pub mod memory;
pub mod paging;
pub mod plan;
