//! The file's length, and which pages have memory: a page gets it when first allocated.

use super::zone::Zone;
use super::{BLOCK, FrameExtents};
use crate::extents::{ExtentError, PAGE_BYTES, UNIT_PAGES};
use craton_base::atomic::{AtomicU64, Ordering};
use craton_base::{Medium, Space};
use std::ops::Range;
use std::sync::PoisonError;

/// 4 MiB, or 1/8 of the data.
const GROWTH: u64 = 1024;
const GROWTH_PART: u64 = 8;
/// For one tick: 64 MiB.
const IDLE_MOST: usize = 1 << 14;

pub(super) struct Backed {
    bits: Box<[AtomicU64]>,
    /// The last that freed one of 64 pages.
    epochs: Box<[AtomicU64]>,
    pages: AtomicU64,
}

impl Backed {
    /// The first `backed` pages may have memory.
    pub fn new(pages: u64, backed: u64) -> Self {
        let words = pages.div_ceil(64);
        let word = |number: u64| match backed.saturating_sub(64 * number) {
            within @ 0..64 => (1 << within) - 1,
            _ => u64::MAX,
        };
        Self {
            bits: (0..words).map(|number| AtomicU64::new(word(number))).collect(),
            epochs: (0..words).map(|_| AtomicU64::new(0)).collect(),
            pages: AtomicU64::new(backed),
        }
    }

    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    fn words(frames: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let words = if frames.is_empty() { 0..0 } else { frames.start / 64..frames.end.div_ceil(64) };
        words.map(move |word| {
            let (from, to) = (frames.start.max(64 * word), frames.end.min(64 * word + 64));
            (word, (u64::MAX >> (64 - (to - from))) << (from % 64))
        })
    }

    pub fn count(&self, frames: Range<usize>) -> u64 {
        let count = |(word, mask): (usize, u64)| self.bits[word].load(Ordering::Relaxed) & mask;
        Self::words(frames).map(|at| u64::from(count(at).count_ones())).sum()
    }

    /// On frames of this thread. Returns how many bits changed.
    fn set(&self, frames: Range<usize>, backed: bool) -> u64 {
        let change = |(word, mask): (usize, u64)| {
            // ORDERING: relaxed; the frames' owner changes their bits, and the zone orders owners.
            let old = match backed {
                true => !self.bits[word].fetch_or(mask, Ordering::Relaxed),
                false => self.bits[word].fetch_and(!mask, Ordering::Relaxed),
            };
            u64::from((old & mask).count_ones())
        };
        let changed = Self::words(frames).map(change).sum();
        match backed {
            true => self.pages.fetch_add(changed, Ordering::Relaxed),
            false => self.pages.fetch_sub(changed, Ordering::Relaxed),
        };
        changed
    }

    pub fn discarded(&self, frames: Range<usize>) -> u64 {
        self.set(frames, false)
    }

    /// Call before the frames are freed.
    pub fn freed(&self, frames: Range<usize>, epoch: u64) {
        for (word, _) in Self::words(frames) {
            // ORDERING: relaxed; the zone's free orders it.
            self.epochs[word].fetch_max(epoch, Ordering::Relaxed);
        }
    }

    pub fn is_settled(&self, frames: Range<usize>, settled: u64) -> bool {
        Self::words(frames).all(|(word, _)| self.epochs[word].load(Ordering::Relaxed) <= settled)
    }
}

impl FrameExtents {
    pub(super) fn back<M: Medium + Space>(&self, medium: &M, frames: Range<usize>) -> bool {
        if self.backed.count(frames.clone()) == frames.len() as u64 {
            return true;
        }
        let done = medium.allocate(self.page(frames.start) * PAGE_BYTES, frames.len() as u64 * PAGE_BYTES);
        if done.is_ok() {
            self.backed.set(frames, true);
        }
        done.is_ok()
    }

    pub(super) fn back_table<M: Space>(&self, medium: &M, frames: Range<u64>) -> Result<(), ExtentError> {
        let first = (self.table + 8 * frames.start) / PAGE_BYTES * PAGE_BYTES;
        let end = (self.table + 8 * frames.end).next_multiple_of(PAGE_BYTES);
        medium.allocate(first, end - first).map_err(|_| ExtentError::NoMemory)
    }

    /// Unless another thread grew it from `end`. `false`: it cannot grow.
    #[cold]
    pub(super) fn grow<M: Medium + Space>(&self, zone: &Zone<'_, M>, pages: u64, end: u64) -> bool {
        let _alone = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        if self.end() != end {
            return true;
        }
        let (medium, data) = (zone.medium, self.config.data);
        let most = self.config.pages.min(medium.limit().saturating_sub(data) / PAGE_BYTES);
        let block = pages.next_power_of_two().min(BLOCK);
        let needed = end.next_multiple_of(block) + pages.next_multiple_of(block);
        let wanted = needed.max(end + GROWTH.max(end / GROWTH_PART)).next_multiple_of(UNIT_PAGES).min(most);
        if wanted <= end {
            return false;
        }
        // The table first: a longer file never becomes shorter again here.
        let grow = |pages: u64| {
            self.back_table(medium, end..pages).is_ok() && medium.resize(data + pages * PAGE_BYTES).is_ok()
        };
        if !grow(wanted) && !grow(needed.min(wanted)) {
            return false;
        }
        let now = self.pages_of(medium);
        zone.put(end as usize..now as usize);
        // ORDERING: pairs with the acquire in `end`.
        self.end.store(now, Ordering::Release);
        now > end
    }

    pub(super) fn pages_of<M: Medium>(&self, medium: &M) -> u64 {
        self.config.pages.min(medium.len().saturating_sub(self.config.data) / PAGE_BYTES)
    }

    pub(super) fn idle_end<M: Medium>(&self, zone: &Zone<'_, M>) -> u64 {
        let end = self.end() as usize;
        let is_idle = |frame: usize| self.backed.count(frame..frame + 1) == 0 && zone.is_free(frame);
        (0..end).rev().take(IDLE_MOST).take_while(|frame| is_idle(*frame)).count() as u64
    }

    /// 0: the pages are no longer free. Error: the file cannot shrink.
    pub(super) fn cut<M: Medium + Space>(&self, zone: &Zone<'_, M>, pages: u64) -> Result<u64, ()> {
        let _alone = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.end() as usize;
        let first = end - pages as usize;
        let mut taken = first..first;
        for (frame, order) in super::zone::blocks(first..end) {
            if !zone.get_at(frame, order) {
                break;
            }
            taken.end = frame + (1 << order);
        }
        // Another thread may have used and freed them.
        let is_whole = taken.end == end && self.backed.count(taken.clone()) == 0;
        let done = is_whole && zone.medium.resize(self.config.data + first as u64 * PAGE_BYTES).is_ok();
        if !done {
            zone.put(taken);
            return if is_whole { Err(()) } else { Ok(0) };
        }
        // ORDERING: pairs with the acquire in `end`.
        self.end.store(first as u64, Ordering::Release);
        Ok(pages)
    }
}
