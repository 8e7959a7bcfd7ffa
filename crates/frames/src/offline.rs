//! Offline huge frames: neither free nor allocated by a caller.
//!
//! A zone is made for all frames that it may ever have. The lower level holds an offline huge frame
//! as allocated; a bit here forbids its free. The first word counts them.

use crate::error::Error;
use crate::geometry::Geometry;
use crate::media::Media;
use crate::word::Word;
use crate::zone::Zone;
use craton_base::atomic::AtomicU64;

#[derive(Clone, Copy)]
pub(crate) struct Offline<'a> {
    count: &'a AtomicU64,
    bits: &'a [AtomicU64],
}

impl<'a> Offline<'a> {
    pub(crate) const fn words(huge_frames: usize) -> usize {
        1 + huge_frames.div_ceil(64)
    }

    pub(crate) fn new(words: &'a [AtomicU64]) -> Option<Self> {
        let (count, bits) = words.split_first()?;
        Some(Self { count, bits })
    }

    pub(crate) fn clear(&self) {
        core::iter::once(self.count).chain(self.bits).for_each(|word| word.begin(0));
    }

    #[inline(always)]
    pub(crate) fn has_any(&self) -> bool {
        self.count.read() != 0
    }

    #[inline]
    pub(crate) fn has(&self, child: usize) -> bool {
        self.has_any() && self.bits[child / 64].read() >> (child % 64) & 1 == 1
    }

    pub(crate) fn begin_with(&self, huge_frames: usize) {
        self.count.begin(huge_frames as u64);
        for (at, word) in self.bits.iter().enumerate() {
            let there = huge_frames.saturating_sub(64 * at).min(64) as u32;
            word.begin(u64::MAX.checked_shr(64 - there).unwrap_or(0));
        }
    }

    fn insert(&self, child: usize) {
        self.count.add(1);
        self.bits[child / 64].or(1 << (child % 64));
    }

    fn remove(&self, child: usize) -> bool {
        let bit = 1 << (child % 64);
        let was_there = self.bits[child / 64].and(!bit) & bit != 0;
        if was_there {
            self.count.sub(1);
        }
        was_there
    }
}

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    fn children_of(&self, frame: usize, huge_frames: usize) -> Result<core::ops::Range<usize>, Error> {
        if huge_frames == 0 {
            self.check_place(frame, 0)?;
            return Ok(frame / G::HUGE..frame / G::HUGE);
        }
        let last = huge_frames.checked_sub(1).and_then(|more| frame.checked_add(more.checked_mul(G::HUGE)?));
        let out = Error::OutOfRange { frame, frames: self.frames() };
        self.check_place(frame, G::HUGE_ORDER)?;
        self.check_place(last.ok_or(out)?, G::HUGE_ORDER).map_err(|_| out)?;
        Ok(frame / G::HUGE..frame / G::HUGE + huge_frames)
    }

    /// All or none: [`Error::InUse`] names the first that is not wholly free.
    pub fn offline(&self, frame: usize, huge_frames: usize) -> Result<(), Error> {
        let children = self.children_of(frame, huge_frames)?;
        for child in children.clone() {
            if let Err(error) = self.get_at(child * G::HUGE, G::HUGE_ORDER) {
                for child in children.start..child {
                    self.online(child * G::HUGE, 1)?;
                }
                return Err(error);
            }
            self.offline.insert(child);
        }
        Ok(())
    }

    /// Makes huge frames free. [`Error::NotOffline`] names the first that was not offline.
    pub fn online(&self, frame: usize, huge_frames: usize) -> Result<(), Error> {
        let children = self.children_of(frame, huge_frames)?;
        if let Some(child) = children.clone().find(|child| !self.offline.has(*child)) {
            return Err(Error::NotOffline { frame: child * G::HUGE });
        }
        for child in children {
            // Of two racing threads, one frees it.
            if self.offline.remove(child) {
                self.lower.begin_rows(child);
                self.put_group(child * G::HUGE, G::HUGE_ORDER)?;
            }
        }
        Ok(())
    }

    /// Takes a wholly free huge frame offline, from the tree of `frame` on. Claimed frames are not
    /// free: see [`Zone::drain`].
    pub fn reclaim(&self, frame: usize) -> Option<usize> {
        let trees = self.trees.len();
        let mut at = (frame / G::TREE).min(trees - 1);
        for _ in 0..trees {
            let tree = self.trees.huge().next(at)?;
            if let Some((found, _)) = self.take_huge_in(tree, G::HUGE_ORDER) {
                self.offline.insert(found / G::HUGE);
                return Some(found);
            }
            self.look_again(tree);
            at = tree + 1;
        }
        None
    }

    pub(crate) fn is_offline(&self, frame: usize, order: u32) -> bool {
        Self::children_under(frame, order).any(|child| self.offline.has(child))
    }

    pub fn offline_huge_frames(&self) -> usize {
        self.offline.count.read() as usize
    }
}
