//! Hugepages of 8 pages, regions of two.

use craton_base::{Geometry, Huge64K};

pub type World = crate::common::World<Huge64K>;
pub const P: u32 = Huge64K::PAGES;
pub const REGION: u32 = Huge64K::REGION;

#[path = "edges.rs"]
mod edges;
#[path = "model.rs"]
mod model;
#[path = "oom.rs"]
mod oom;
#[path = "small.rs"]
mod small;
#[path = "soak.rs"]
mod soak;
#[path = "states.rs"]
mod states;
