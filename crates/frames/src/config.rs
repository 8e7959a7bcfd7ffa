//! Settings of a zone.

use crate::tree::{Kind, Thresholds};

/// How a zone begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Init {
    Free,
    Allocated,
    /// All huge frames are offline, a partial last one allocated: for a zone that grows by
    /// [`crate::Zone::online`]. Rows of a volatile zone stay untouched until then.
    Offline,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Processors that use it, at least 1.
    pub processors: usize,
    pub thresholds: Thresholds,
    /// CPUs claim free frames of half a row at once. Without claims every order-0 request changes
    /// the lower level, so that a crash loses only frames of requests under way.
    pub claims: bool,
}

impl Config {
    /// The default for `processors` CPUs: with claims.
    pub fn new(processors: usize) -> Self {
        Self { processors, thresholds: Thresholds::default(), claims: true }
    }
}

/// A request: how many frames, and what for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// log2 of the number of frames, up to [`crate::Geometry::MAX_ORDER`].
    pub order: u32,
    pub kind: Kind,
    /// The requesting CPU.
    pub processor: usize,
}
