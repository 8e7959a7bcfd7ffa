//! Settings.

use crate::error::Error;
use crate::layout::{OFFSET_BITS, Places, UNIT};
use craton_base::LINE_BYTES;
use std::hash::{BuildHasher, Hasher, RandomState};

/// How small objects survive a crash (NVAlloc §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Each operation is a redo line.
    Log,
    /// Small objects are not logged. After a crash, those that roots reach are allocated.
    Gc,
    /// As `Log`, with extents in LLFree frames and without a bookkeeping log. Best where caches are
    /// persistent.
    Frames,
}

impl Model {
    const ALL: [Self; 3] = [Self::Log, Self::Gc, Self::Frames];

    /// In lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Gc => "gc",
            Self::Frames => "frames",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    pub(crate) fn number(self) -> u64 {
        self as u64 + 1
    }

    pub(crate) fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.number() == number)
    }

    #[inline]
    pub(crate) fn is_logged(self) -> bool {
        self != Self::Gc
    }
}

/// Default of [`Config::most`] for frames: 16 GiB. Their records are 1/512 of that.
pub const FRAMES_MOST: u64 = 1 << 34;

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub model: Model,
    /// 1 to 64; further threads share one.
    pub lanes: u32,
    /// Redo lines of half a lane's ring, 8 to 4,096; a full one has all dirty lines written back.
    pub half: u32,
    /// Of bitmaps, 1 to 8 (NVAlloc §5.1).
    pub stripes: u32,
    /// Not 0.
    pub uuid: u128,
    /// Nanoseconds since 1970, for people.
    pub created: u64,
    /// Bytes; 0: the medium's limit, for frames at most [`FRAMES_MOST`].
    pub most: u64,
}

/// NVAlloc §5.1.
const STRIPES: u32 = 6;
/// Random frees dirty about 150 lines of bitmaps, each written back once for as many operations.
const HALF: u32 = 512;

impl Default for Config {
    fn default() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        let uuid = (u128::from(random()) << 64) | u128::from(random()) | 1;
        Self { model: Model::Log, lanes: 64, half: HALF, stripes: STRIPES, uuid, created: 0, most: 0 }
    }
}

impl Config {
    /// Stripes pay only where the medium writes bitmaps back (NVAlloc §6.7), and a gc heap writes
    /// none.
    pub fn stripes_for(model: Model, writes_back: bool) -> u32 {
        if writes_back && model.is_logged() { STRIPES } else { 1 }
    }

    /// Rings take at most an eighth of a heap's bytes, if that leaves 8 lines for half a ring.
    pub fn half_for(lanes: u32, bytes: u64) -> u32 {
        let each = bytes / 8 / (u64::from(lanes.max(1)) * 2 * LINE_BYTES);
        (each.clamp(8, HALF.into()) as u32 + 1).next_power_of_two() / 2
    }

    pub(crate) fn places(&self) -> Places {
        let frames_end = if self.model == Model::Frames { self.most } else { 0 };
        Places { lanes: self.lanes, half: self.half, frames_end }
    }

    pub(crate) fn check(&self, limit: u64) -> Result<(), Error> {
        let within = |what, value: u64, least: u64, most: u64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::Config { what, value }),
        };
        within("the number of lanes", self.lanes.into(), 1, 64)?;
        within("the lines of half a ring", self.half.into(), 8, 4096)?;
        within("the number of stripes", self.stripes.into(), 1, 8)?;
        let places = self.places();
        if self.most != 0 {
            within("the most bytes", self.most, places.data() + UNIT, 1 << OFFSET_BITS)?;
        }
        within("the limit", limit, places.data() + UNIT, 1 << OFFSET_BITS)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Each with a lock; 0: as many as processors (NVAlloc §4.2).
    pub arenas: usize,
    /// Threads that mark after a crash; 0: as many as processors.
    pub markers: usize,
    /// A clock that all processors agree on. None: a shared counter.
    pub stamp: Option<fn() -> u64>,
    /// Writes slots and bitmaps back in each operation, by a second fence, as NVAlloc (§5.1).
    pub eager: bool,
    /// Percentage of live objects up to which slabs may change their class; 0: never.
    pub morph: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { arenas: 0, markers: 0, stamp: None, eager: false, morph: 20 }
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
