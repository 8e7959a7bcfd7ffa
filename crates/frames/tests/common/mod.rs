//! Zones with metadata of their own.

use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};
use craton_frames::{Config, Error, Geometry, Init, Local, Metadata, Sizes, Zone};

/// Arrays for a zone.
pub struct Arrays {
    pub rows: Vec<AtomicU64>,
    pub children: Vec<AtomicU32>,
    pub trees: Vec<AtomicU16>,
    pub index: Vec<AtomicU64>,
    locals: Vec<Local>,
}

/// Elements that are all zero.
pub fn array<T: Default>(len: usize) -> Vec<T> {
    (0..len).map(|_| T::default()).collect()
}

impl Arrays {
    pub fn new(sizes: Sizes) -> Self {
        Self {
            rows: array(sizes.rows),
            children: array(sizes.children),
            trees: array(sizes.trees),
            index: array(sizes.index),
            locals: array(sizes.locals),
        }
    }

    pub fn metadata(&self) -> Metadata<'_> {
        let Self { rows, children, trees, index, locals } = self;
        Metadata { rows, children, trees, index, locals }
    }

    pub fn zone<G: Geometry>(&self, frames: usize, init: Init, config: Config) -> Result<Zone<'_, G>, Error> {
        Zone::new(frames, self.metadata(), init, config)
    }
}
