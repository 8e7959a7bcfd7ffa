//! The guest's decisions that touch no machine: tested on the host.
#![cfg_attr(not(test), no_std)]

pub mod board;
pub mod memory;
pub mod paging;
pub mod plan;
