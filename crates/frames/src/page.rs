//! The zone page, which identifies a persistent zone (LLFree §3.2.3). Its first six words:
//! ```text
//! 0 magic      written last when the zone is created
//! 1 version    of this layout and of the arrays
//! 2 geometry   log2 of a row's frames 8 · words of a bit field 8 · quarters 8 · huge frames in a tree 32
//! 3 frames     of the zone
//! 4 free       frames that were free when the zone was closed
//! 5 seal       a checksum of 0 to 3, and of the mark *in use*, or of the mark *closed* and 4
//! ```
//! **Invariants.** *F9* With the magic in place, all else that is durable is a zone. *F10* Sealed
//! as closed, the children's entries are right and durable, and unchanged since.

use crate::error::Error;
use crate::geometry::{Geometry, QUARTERS, ROWS};
use crate::media::Media;
use crate::word::Word;
use core::marker::PhantomData;
use craton_base::atomic::AtomicU64;

pub const PAGE_WORDS: usize = 512;

const MAGIC: u64 = u64::from_le_bytes(*b"CrFrames");
/// Of page, rows and entries.
const VERSION: u64 = 1;

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 1;
const GEOMETRY_AT: usize = 2;
const FRAMES_AT: usize = 3;
const FREE_AT: usize = 4;
const SEAL_AT: usize = 5;

const IN_USE: u64 = 1;
const CLOSED: u64 = 2;

/// `InUse`: perhaps at a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    Closed { free: u64 },
    InUse,
}

pub(crate) struct Page<'a, G> {
    words: &'a [AtomicU64],
    geometry: PhantomData<G>,
}

impl<'a, G: Geometry> Page<'a, G> {
    const GEOMETRY: u64 =
        G::ROW_ORDER as u64 | (ROWS as u64) << 8 | (QUARTERS as u64) << 16 | (G::CHILDREN as u64) << 32;

    pub(crate) fn new(page: &'a [AtomicU64]) -> Result<Self, Error> {
        let short = Error::TooSmall { array: "page", needed: PAGE_WORDS, given: page.len() };
        Ok(Self { words: page.get(..PAGE_WORDS).ok_or(short)?, geometry: PhantomData })
    }

    fn set(&self, at: usize, value: u64, media: &impl Media) {
        self.words[at].write(value);
        media.changed(&self.words[at]);
        media.flush(&self.words[at]);
    }

    fn seal(&self, mark: u64, free: u64) -> u64 {
        let fixed = [VERSION_AT, GEOMETRY_AT, FRAMES_AT].map(|at| self.words[at].read());
        let all = [MAGIC, fixed[0], fixed[1], fixed[2], mark, free];
        // Each word passes a bijection: a change of one word shows.
        all.into_iter().fold(0, |sum: u64, word| {
            let mixed = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 29
        })
    }

    pub(crate) fn clear(&self, media: &impl Media) {
        self.set(MAGIC_AT, 0, media);
        media.fence();
    }

    /// The arrays are durable, and the page cleared.
    pub(crate) fn create(&self, frames: usize, media: &impl Media) {
        self.set(VERSION_AT, VERSION, media);
        self.set(GEOMETRY_AT, Self::GEOMETRY, media);
        self.set(FRAMES_AT, frames as u64, media);
        self.set(FREE_AT, 0, media);
        self.set(SEAL_AT, self.seal(IN_USE, 0), media);
        media.fence();
        self.set(MAGIC_AT, MAGIC, media);
        media.fence();
    }

    pub(crate) fn read(&self) -> Result<(usize, Left), Error> {
        let [magic, version, geometry, frames, free, seal] = core::array::from_fn(|at| self.words[at].read());
        if magic != MAGIC {
            return Err(Error::NotAZone { found: magic });
        }
        let left = if seal == self.seal(IN_USE, 0) {
            Left::InUse
        } else if seal == self.seal(CLOSED, free) {
            Left::Closed { free }
        } else {
            return Err(Error::Damaged { what: "zone page's seal", found: seal });
        };
        if version != VERSION {
            return Err(Error::Version { found: version, known: VERSION });
        }
        if geometry != Self::GEOMETRY {
            return Err(Error::Geometry { found: geometry, expected: Self::GEOMETRY });
        }
        Ok((frames as usize, left))
    }

    pub(crate) fn open(&self, media: &impl Media) {
        self.set(SEAL_AT, self.seal(IN_USE, 0), media);
        media.fence();
    }

    pub(crate) fn close(&self, free: usize, media: &impl Media) {
        self.set(FREE_AT, free as u64, media);
        media.fence();
        self.set(SEAL_AT, self.seal(CLOSED, free as u64), media);
        media.fence();
    }
}
