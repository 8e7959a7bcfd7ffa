//! Whole free hugepages that keep their memory, and how many.
//!
//! **From.** TEMERAIRE §4.3: the limit follows the difference between the highest and the lowest demand of the last two
//! seconds. Where we differ: the paper raises the limit to that difference when memory comes back; we raise it when
//! demand that had dropped *returns* and finds the cache empty. Then a program that gives up most of its memory once gets it
//! released at once, and one that oscillates pays for it one swing long, as the paper says.
//!
//! Hugepages of regions without a used page count like those in the cache, and go first.
//!
//! **State.** Demand's extremes in [`EPOCHS`] slices of the window, a ring indexed by time.

use crate::fit::Fit;
use crate::heap::PageHeap;
use crate::tracker::Place;
use craton_base::{Clock, Floor, FrameSource, HugePageId, HugePages, NoMemory};

/// The sliding window, in nanoseconds.
pub const WINDOW_NS: u64 = 2_000_000_000;
/// Free hugepages that are always kept: 16 MiB, so that small heaps never thrash.
pub const CACHE_MIN_HUGEPAGES: HugePages = HugePages(8);
const EPOCHS: usize = 8;
const EPOCH_NS: u64 = WINDOW_NS / EPOCHS as u64;

/// Free ranges with memory that are looked at for one that others without memory make long enough.
const LOOKS: usize = 8;

/// Free hugepages of both kinds, side by side.
#[derive(Clone, Copy)]
struct Window {
    first: HugePageId,
    /// Those without memory.
    missing: HugePages,
}

#[derive(Clone, Copy)]
struct Extremes {
    /// Number of the slice plus 1; 0 when the slot has not been used.
    epoch: u64,
    low: u32,
    high: u32,
}

/// The limit, and the demand that it follows.
pub(crate) struct CacheLimit {
    /// The limit less [`CACHE_MIN_HUGEPAGES`].
    above_min: u32,
    ring: [Extremes; EPOCHS],
    shrunk_at_epoch: u64,
}

impl CacheLimit {
    pub(crate) const fn new() -> Self {
        let none = Extremes { epoch: 0, low: 0, high: 0 };
        Self { above_min: 0, ring: [none; EPOCHS], shrunk_at_epoch: 0 }
    }

    /// Free hugepages that may keep their memory.
    pub(crate) fn limit(&self) -> HugePages {
        HugePages(CACHE_MIN_HUGEPAGES.0 + self.above_min)
    }

    /// Notes the demand (hugepages in use) at a time; once an epoch, lowers the limit to what the window justifies.
    pub(crate) fn note(&mut self, demand: HugePages, now_ns: u64) {
        let epoch = now_ns / EPOCH_NS + 1;
        let slot = &mut self.ring[epoch as usize % EPOCHS];
        if slot.epoch != epoch {
            *slot = Extremes { epoch, low: demand.0, high: demand.0 };
        }
        slot.low = slot.low.min(demand.0);
        slot.high = slot.high.max(demand.0);
        if self.shrunk_at_epoch != epoch {
            self.shrunk_at_epoch = epoch;
            self.set_limit(self.limit().min(self.swing(epoch)));
        }
    }

    /// A request found `missing` hugepages too few in the cache, at a demand that is already noted. When the window has seen
    /// that much demand before, we released too early.
    pub(crate) fn missed(&mut self, missing: HugePages, demand: HugePages, now_ns: u64) {
        let epoch = now_ns / EPOCH_NS + 1;
        if demand.0 <= self.peak_before(epoch) {
            let limit = self.limit();
            self.set_limit(HugePages(limit.0 + missing.0).min(self.swing(epoch).max(limit)));
        }
    }

    fn set_limit(&mut self, limit: HugePages) {
        self.above_min = limit.0.saturating_sub(CACHE_MIN_HUGEPAGES.0);
    }

    fn in_window(&self, epoch: u64) -> impl Iterator<Item = &Extremes> {
        self.ring.iter().filter(move |e| e.epoch > 0 && e.epoch + EPOCHS as u64 > epoch)
    }

    fn swing(&self, epoch: u64) -> HugePages {
        let high = self.in_window(epoch).map(|e| e.high).max().unwrap_or(0);
        let low = self.in_window(epoch).map(|e| e.low).min().unwrap_or(0);
        HugePages(high - low)
    }

    fn peak_before(&self, epoch: u64) -> u32 {
        self.in_window(epoch).map(|e| e.high).max().unwrap_or(0)
    }
}

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// Takes whole free hugepages: with memory if there are any.
    pub(crate) fn take(&mut self, len: HugePages, align: HugePages) -> Result<HugePageId, NoMemory> {
        let id = match self.cached.take(&mut self.trackers, len, align, 0..u32::MAX) {
            Some(id) => {
                self.expect_backing(id, len, len);
                id
            }
            None => {
                let (id, missing) = match self.find_beside(len, align) {
                    Some(window) => (self.take_window(window, len), window.missing),
                    None => (self.take_unbacked(len, align)?, len),
                };
                let now = self.clock.now_ns();
                self.limit.missed(missing, self.in_demand(), now);
                id
            }
        };
        self.note_demand();
        Ok(id)
    }

    /// Where hugepages with memory lie beside ones without, so that fewer than `len` need new memory: the best of a few places.
    fn find_beside(&self, len: HugePages, align: HugePages) -> Option<Window> {
        if align.0 > 1 || len.0 < 2 {
            return None;
        }
        let windows = self.cached.longest(&self.trackers).take(LOOKS).filter_map(|(first, run)| {
            let end = HugePageId(first.0 + run.0);
            let behind = self.unbacked.run_at_start(&self.trackers, end);
            let next = self.cached.run_at_start(&self.trackers, HugePageId(end.0 + behind.0));
            let before = self.unbacked.run_before(&self.trackers, first);
            let in_front = len.0.saturating_sub(run.0 + behind.0 + next.0);
            (in_front <= before.0).then(|| {
                let of_next = next.0.min((len.0 - in_front).saturating_sub(run.0 + behind.0));
                Window { first: HugePageId(first.0 - in_front), missing: HugePages(len.0 - run.0 - of_next) }
            })
        });
        windows.min_by_key(|window| window.missing)
    }

    /// Takes what [`PageHeap::find_beside`] found.
    fn take_window(&mut self, window: Window, len: HugePages) -> HugePageId {
        let (mut at, end) = (window.first.0, window.first.0 + len.0);
        let cached = |heap: &Self, at: u32| heap.trackers[at as usize].place == Place::Cached;
        while at < end {
            let is_cached = cached(self, at);
            let piece = (at..end).take_while(|i| cached(self, *i) == is_cached).count() as u32;
            let (id, part) = (HugePageId(at), HugePages(piece));
            if is_cached {
                self.cached.take_at(&mut self.trackers, id, part);
            } else if at + piece < end {
                // Constant time, however long the range reaches in front.
                self.unbacked.take_end(&mut self.trackers, HugePageId(at + piece), part);
            } else {
                self.unbacked.take_at(&mut self.trackers, id, part);
            }
            self.expect_backing(id, part, len);
            at += piece;
        }
        window.first
    }

    /// Takes whole hugepages back; those above the limit lose their memory.
    pub(crate) fn put(&mut self, first: HugePageId, len: HugePages) {
        self.cached.insert(&mut self.trackers, first, len);
        self.note_demand();
        self.shrink_to_limit();
    }

    /// Tells the limit how many hugepages serve the program now.
    pub(crate) fn note_demand(&mut self) {
        let now = self.clock.now_ns();
        self.limit.note(self.in_demand(), now);
    }

    /// Free hugepages with memory.
    pub(crate) fn free_backed_hugepages(&self) -> HugePages {
        HugePages(self.cached.total().0 + self.regions.held().idle_backed)
    }

    /// Takes the memory of what lies above the limit away; returns how many pages lost theirs.
    pub(crate) fn shrink_to_limit(&mut self) -> u64 {
        let excess = self.free_backed_hugepages().0.saturating_sub(self.limit.limit().0);
        self.shrink(HugePages(excess))
    }

    /// Takes the memory of up to `want` free hugepages away; returns how many pages lost theirs.
    pub(crate) fn shrink(&mut self, want: HugePages) -> u64 {
        if want.0 == 0 {
            return 0;
        }
        let (done, mut pages) = self.shrink_regions(want.0);
        let (mut left, mut lost) = (want.0 - done, 0);
        while left > 0 {
            let Some((first, len)) = self.cached.any(&self.trackers) else { break };
            let part = HugePages(len.0.min(left));
            if self.floor.unback(first.run(part)).is_err() {
                break;
            }
            self.cached.take_at(&mut self.trackers, first, part);
            for i in first.0..first.0 + part.0 {
                let t = &mut self.trackers[i as usize];
                lost += u64::from(t.backed_pages());
                t.unbacked();
            }
            self.unbacked.insert(&mut self.trackers, first, part);
            left -= part.0;
        }
        self.released_total += lost;
        pages += lost;
        pages
    }
}
