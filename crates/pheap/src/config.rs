//! How a heap is made, and how it is opened.

use crate::error::Error;
use crate::layout::{OFFSET_BITS, Places, UNIT};
use std::hash::{BuildHasher, Hasher, RandomState};

/// How small objects survive a crash (NVAlloc §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Each operation is a redo line: an object and its slot change together.
    Log,
    /// Small objects are not logged. After a crash, what the roots reach is allocated.
    Gc,
}

/// Settings that a new heap stores.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub model: Model,
    /// Threads beyond this number share a lane. 1 to 64.
    pub lanes: u32,
    /// Redo lines of half a lane's ring; all dirty lines are written back when one is full.
    /// 8 to 4,096.
    pub half: u32,
    /// Stripes of bitmaps, 1 to 8 (NVAlloc §5.1).
    pub stripes: u32,
    /// Tells this heap from others; not 0.
    pub uuid: u128,
    /// Nanoseconds since 1970, for people.
    pub created: u64,
    /// Bytes beyond which the heap does not grow; 0: the medium's limit alone.
    pub most: u64,
}

impl Default for Config {
    fn default() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        let uuid = (u128::from(random()) << 64) | u128::from(random()) | 1;
        Self { model: Model::Log, lanes: 64, half: 256, stripes: 6, uuid, created: 0, most: 0 }
    }
}

impl Config {
    pub(crate) fn check(&self, limit: u64) -> Result<(), Error> {
        let within = |what, value: u64, least: u64, most: u64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::Config { what, value }),
        };
        within("lanes", self.lanes.into(), 1, 64)?;
        within("lines of half a ring", self.half.into(), 8, 4096)?;
        within("stripes", self.stripes.into(), 1, 8)?;
        let places = Places { lanes: self.lanes, half: self.half };
        if self.most != 0 {
            within("most bytes", self.most, places.data() + UNIT, 1 << OFFSET_BITS)?;
        }
        within("bytes at most", limit, places.data() + UNIT, 1 << OFFSET_BITS)
    }
}

/// How a heap is used while it is open.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Arenas, each with its lock (NVAlloc §4.2: one a processor). 0: as many as processors.
    pub arenas: usize,
    /// Threads that mark after a crash. 0: as many as processors.
    pub markers: usize,
    /// A clock all processors agree on, for the order of redo lines. None: a shared counter.
    pub stamp: Option<fn() -> u64>,
    /// Slabs with at most this share of live objects, in percent, may change their class; 0: never.
    pub morph: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { arenas: 0, markers: 0, stamp: None, morph: 20 }
    }
}

impl Options {
    pub(crate) fn arenas(&self) -> usize {
        if self.arenas == 0 { processors() } else { self.arenas }.clamp(1, 64)
    }

    pub(crate) fn markers(&self) -> usize {
        if self.markers == 0 { processors() } else { self.markers }.clamp(1, 64)
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}
