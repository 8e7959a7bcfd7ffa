//! The guest's decisions that touch no machine: tested on the host.
//!
//! **What.** [`memory`] cleans the machine's memory map, [`plan`] divides it between the zone, its
//! metadata and holes, and [`paging`] builds page tables from frames.
#![cfg_attr(not(test), no_std)]

pub mod memory;
pub mod paging;
pub mod plan;
