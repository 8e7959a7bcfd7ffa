//! Allocators of page frames: `craton-frames`, and designs to compare it with.
//!
//! [`Design::with`] compiles a [`Job`] for each, so that only calls to [`authors`] are indirect.
//! Free frames are linked in an array of [`place::Place`]s: 128 GiB need no memory.

pub mod aging;
pub mod authors;
mod buddy;
pub mod crash;
mod crew;
mod durable;
mod file;
mod lists;
pub mod loops;
pub mod place;
pub mod refusals;
mod spin;
pub mod touched;

use authors::{Authors, Classes};
use buddy::Buddy;
use craton_frames::{
    Cached, Config, Geometry, Init, Kind, Media, Paper, PersistentZone, Request, Sizes, Standard, Thresholds, Zone,
};
use craton_lab::arrays::Arrays;
use craton_lab::scratch::Scratch;
use durable::WrittenBack;
use file::ZoneFile;
use lists::{Cas, List, Local, Locked};

pub const HUGE_ORDER: u32 = 9;
pub const HUGE: usize = 1 << HUGE_ORDER;
pub const MAX_ORDER: u32 = 10;
/// Frames.
pub const GIB: usize = 1 << 18;

pub trait Frames: Sync {
    /// Aligned to 2^order.
    fn get(&self, request: Request) -> Option<usize>;

    /// False if not allocated, where the design can tell.
    fn put(&self, frame: usize, request: Request) -> bool;

    fn drain(&self, processor: usize);

    /// No other thread may get or put.
    fn free_frames(&self) -> usize;
}

pub fn request(order: u32, processor: usize) -> Request {
    let kind = if order < HUGE_ORDER { Kind::Movable } else { Kind::Huge };
    Request { order, kind, processor }
}

#[derive(Clone, Copy, Debug)]
pub struct World {
    pub frames: usize,
    pub order: u32,
    pub processors: usize,
}

pub trait Job {
    type Out;
    fn run<F: Frames>(self, frames: &F) -> Self::Out;
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Design {
    Craton,
    /// Without claims, as persistent zones.
    Strict,
    /// Also with the paper's search of trees.
    Paper,
    /// In a file, with caches that persist.
    File,
    /// With every change written back at once.
    WrittenBack,
    Locked,
    Cas,
    /// A list for each processor, unprotected.
    Local,
    /// With per-CPU caches.
    Buddy,
    /// Huge frames a tree.
    Authors(u32, Classes),
}

impl Design {
    /// Of the authors' classes only the simple ones.
    pub const ALL: [Self; 11] = [
        Self::Craton,
        Self::Strict,
        Self::Paper,
        Self::File,
        Self::WrittenBack,
        Self::Locked,
        Self::Cas,
        Self::Local,
        Self::Buddy,
        Self::Authors(4, Classes::Simple),
        Self::Authors(32, Classes::Simple),
    ];

    /// Not every processor has `clwb`.
    pub fn here() -> Vec<Self> {
        let can = |of: &Self| match of {
            Self::WrittenBack => WrittenBack::detect().is_some(),
            Self::Authors(..) => false,
            _ => true,
        };
        Self::ALL.into_iter().filter(can).collect()
    }

    pub fn authors() -> Vec<Self> {
        authors::here().into_iter().map(|trees| Self::Authors(trees, Classes::Simple)).collect()
    }

    pub fn persists(self) -> bool {
        matches!(self, Self::File | Self::WrittenBack)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Craton => "craton",
            Self::Strict => "craton-strict",
            Self::Paper => "craton-paper",
            Self::File => "craton-file",
            Self::WrittenBack => "craton-written-back",
            Self::Locked => "list-locked",
            Self::Cas => "list-cas",
            Self::Local => "list-local",
            Self::Buddy => "buddy",
            Self::Authors(trees, classes) => authors::name(trees, classes),
        }
    }

    pub fn with<J: Job>(self, world: &World, job: J) -> Result<J::Out, String> {
        let World { frames, order, processors } = *world;
        match self {
            Self::Craton | Self::Strict => {
                let config = Config { claims: self == Self::Craton, ..Config::new(processors) };
                self.in_memory::<Standard, J>(world, config, job)
            }
            Self::Paper => {
                let config = Config { claims: false, thresholds: Thresholds::PAPER, ..Config::new(processors) };
                self.in_memory::<Paper<Standard>, J>(world, config, job)
            }
            Self::File => self.in_file(world, Cached, job),
            Self::WrittenBack => {
                let media = WrittenBack::detect().ok_or("this processor has neither clwb nor clflushopt")?;
                self.in_file(world, media, job)
            }
            Self::Locked => Ok(job.run(&List::new(frames, order, Locked::default()))),
            Self::Cas => Ok(job.run(&List::new(frames, order, Cas::default()))),
            Self::Local => Ok(job.run(&List::new(frames, order, Local::new(processors)))),
            Self::Buddy => Ok(job.run(&Buddy::new(frames, processors))),
            Self::Authors(trees, classes) => Ok(job.run(&Authors::new(trees, classes, frames, processors)?)),
        }
    }

    fn in_memory<G: Geometry, J: Job>(self, world: &World, config: Config, job: J) -> Result<J::Out, String> {
        let World { frames, processors, .. } = *world;
        let arrays = Arrays::new(&Sizes::of::<G>(frames, processors), 0);
        let zone: Zone<'_, G> =
            Zone::new(frames, arrays.metadata(), Init::Free, config).map_err(|e| format!("{}: {e}", self.name()))?;
        Ok(job.run(&zone))
    }

    fn in_file<J: Job>(self, world: &World, media: impl Media + Sync, job: J) -> Result<J::Out, String> {
        let World { frames, processors, .. } = *world;
        let scratch = Scratch::new("a zone of frames")?;
        let file = ZoneFile::create(&scratch.path().join("zone"), frames, processors)?;
        let (page, metadata) = (file.page(), file.metadata());
        let zone: PersistentZone<'_, Standard, _> =
            PersistentZone::create(frames, page, metadata, Init::Free, Config::new(processors), media)
                .map_err(|e| format!("{}: {e}", self.name()))?;
        Ok(job.run(&*zone))
    }
}

impl<G: Geometry, M: Media + Sync> Frames for Zone<'_, G, M> {
    #[inline]
    fn get(&self, request: Request) -> Option<usize> {
        Zone::get(self, request).ok()
    }

    #[inline]
    fn put(&self, frame: usize, request: Request) -> bool {
        Zone::put(self, frame, request).is_ok()
    }

    fn drain(&self, processor: usize) {
        let _ = Zone::drain(self, processor);
    }

    fn free_frames(&self) -> usize {
        Zone::free_frames(self)
    }
}

#[cfg(test)]
mod tests;
