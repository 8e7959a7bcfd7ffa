//! Settings of a zone.

use crate::tree::{Kind, Thresholds};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Init {
    Free,
    Allocated,
    /// A partial last huge frame is allocated: for growth by [`crate::Zone::online`]. A volatile
    /// zone's rows stay untouched until then.
    Offline,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The number of processors, at least 1.
    pub processors: usize,
    pub thresholds: Thresholds,
    /// CPUs claim free frames of half a row at once. Without claims a crash loses only frames of
    /// requests under way.
    pub claims: bool,
}

impl Config {
    /// Returns a configuration with claims.
    pub fn new(processors: usize) -> Self {
        Self { processors, thresholds: Thresholds::default(), claims: true }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The order, up to [`crate::Geometry::MAX_ORDER`].
    pub order: u32,
    pub kind: Kind,
    /// The requesting CPU.
    pub processor: usize,
}
