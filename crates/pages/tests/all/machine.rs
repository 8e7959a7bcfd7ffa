//! Hugepages of 2 MiB, regions of 512.

use craton_base::{Geometry, Huge2M};

pub type World = crate::common::World<Huge2M>;
pub const P: u32 = Huge2M::PAGES;
pub const REGION: u32 = Huge2M::REGION;

#[path = "advice.rs"]
mod advice;
#[path = "backing.rs"]
mod backing;
#[path = "edges.rs"]
mod edges;
#[path = "fit.rs"]
mod fit;
#[path = "frames.rs"]
mod frames;
#[path = "large.rs"]
mod large;
#[path = "model.rs"]
mod model;
#[path = "oom.rs"]
mod oom;
#[path = "region.rs"]
mod region;
#[path = "release.rs"]
mod release;
#[path = "scarce.rs"]
mod scarce;
#[path = "small.rs"]
mod small;
#[path = "soak.rs"]
mod soak;
#[path = "states.rs"]
mod states;
