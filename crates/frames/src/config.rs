use crate::tree::{Kind, Thresholds};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Init {
    Free,
    Allocated,
    /// For growth by [`crate::Zone::online`]; a partial last huge frame is allocated. A volatile
    /// zone's rows stay untouched.
    Offline,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    pub processors: usize,
    pub thresholds: Thresholds,
    /// Without claims a crash loses only frames of requests under way.
    pub claims: bool,
}

impl Config {
    pub fn new(processors: usize) -> Self {
        Self { processors, thresholds: Thresholds::default(), claims: true }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    pub order: u32,
    pub kind: Kind,
    pub processor: usize,
}
