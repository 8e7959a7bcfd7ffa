//! Allocators of page frames, side by side: `craton-frames`, and other designs to compare it with.
//!
//! **What.** [`Frames`] is what all of them can do. A [`Design`] is one of them by its name, and [`Design::with`] makes it and
//! hands it to a [`Job`], which is compiled for each, so that no call goes through a pointer. Others keep free frames in
//! lists, in memory of the frames themselves or in an array with a record for each; here always in an array of
//! [`place::Place`]s, so that nobody needs 128 GiB to be measured with 128 GiB.
//!
//! **From.** LLFree, USENIX ATC 2023: §5.4 for the lists, §2 for the buddy allocator. All are written here, from the
//! descriptions.
//!
//! **Units.** Frames of 4 KiB by number; order *k* is 2^*k* of them.
//!
//! **Failure.** A request that cannot be served yields nothing. What is freed wrongly is refused by those that can tell.

pub mod aging;
pub mod arrays;
pub mod buddy;
pub mod cas;
pub mod crash;
pub mod crew;
pub mod file;
pub mod local;
pub mod locked;
pub mod loops;
pub mod place;
pub mod spin;
pub mod touched;
use arrays::Arrays;
use buddy::Buddy;
use cas::ListCas;
use craton_frames::{Config, Init, Kind, Request, Sizes, Standard, Zone};
use local::ListLocal;
use locked::ListLocked;

/// log2 of the frames in a huge frame.
pub const HUGE_ORDER: u32 = 9;
/// Frames in a huge frame.
pub const HUGE: usize = 1 << HUGE_ORDER;
/// The largest order.
pub const MAX_ORDER: u32 = 10;
/// Frames in a GiB.
pub const GIB: usize = 1 << 18;

/// Hands out frames.
pub trait Frames: Sync {
    /// Allocates 2^order frames, aligned to that: the first. Nothing if there are none.
    fn get(&self, request: Request) -> Option<usize>;

    /// Frees them. False if they are not allocated, as far as the design can tell.
    fn put(&self, frame: usize, request: Request) -> bool;

    /// Gives back what is kept for a processor.
    fn drain(&self, processor: usize);

    /// Free frames, wherever they are kept. Only while nobody else gets or puts.
    fn free_frames(&self) -> usize;
}

/// A request for so many frames by a processor: huge ones apart from others.
pub fn request(order: u32, processor: usize) -> Request {
    let kind = if order < HUGE_ORDER { Kind::Movable } else { Kind::Huge };
    Request { order, kind, processor }
}

/// How much there is to hand out, and to whom.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// Frames.
    pub frames: usize,
    /// The one order of lists.
    pub order: u32,
    /// Processors, from 0.
    pub processors: usize,
}

/// What is done with an allocator.
pub trait Job {
    /// What comes of it.
    type Out;
    /// Does it.
    fn run<F: Frames>(self, frames: &F) -> Self::Out;
}

/// A way to allocate frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Design {
    /// `craton-frames`, as it is.
    Craton,
    /// The same without claims, as a zone that survives crashes needs it.
    Strict,
    /// One list and its lock.
    Locked,
    /// One list, changed by compare-and-swap.
    Cas,
    /// A list for each processor, without any protection.
    Local,
    /// Buddies, with caches for processors.
    Buddy,
}

impl Design {
    /// Every one.
    pub const ALL: [Self; 6] = [Self::Craton, Self::Strict, Self::Locked, Self::Cas, Self::Local, Self::Buddy];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Craton => "craton",
            Self::Strict => "craton-strict",
            Self::Locked => "list-locked",
            Self::Cas => "list-cas",
            Self::Local => "list-local",
            Self::Buddy => "buddy",
        }
    }

    /// Makes one, with all frames free, and does a job with it.
    ///
    /// # Errors
    /// A world that the design refuses.
    pub fn with<J: Job>(self, world: &World, job: J) -> Result<J::Out, String> {
        let World { frames, order, processors } = *world;
        match self {
            Self::Craton | Self::Strict => {
                let arrays = Arrays::new(&Sizes::of::<Standard>(frames, processors), 0);
                let config = Config { claims: self == Self::Craton, ..Config::new(processors) };
                let zone: Zone<'_> = Zone::new(frames, arrays.metadata(), Init::Free, config)
                    .map_err(|e| format!("{}: {e}", self.name()))?;
                Ok(job.run(&zone))
            }
            Self::Locked => Ok(job.run(&ListLocked::new(frames, order))),
            Self::Cas => Ok(job.run(&ListCas::new(frames, order))),
            Self::Local => Ok(job.run(&ListLocal::new(frames, order, processors))),
            Self::Buddy => Ok(job.run(&Buddy::new(frames, processors))),
        }
    }
}

impl Frames for Zone<'_> {
    #[inline]
    fn get(&self, request: Request) -> Option<usize> {
        Zone::get(self, request).ok()
    }

    #[inline]
    fn put(&self, frame: usize, request: Request) -> bool {
        Zone::put(self, frame, request).is_ok()
    }

    fn drain(&self, processor: usize) {
        // The processor is one of the world's.
        let _ = Zone::drain(self, processor);
    }

    fn free_frames(&self) -> usize {
        Zone::free_frames(self)
    }
}

#[cfg(test)]
mod tests;
