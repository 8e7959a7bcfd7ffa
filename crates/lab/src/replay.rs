//! A page-heap trace, repeated on a page heap in simulated memory.
//!
//! **What.** Repeats a [`Trace`] on a [`FrameHeap`], with the trace's clock and a tick for each
//! second. The replay maps a recorded span's place to its own, since other settings pack otherwise.
//! A span that cannot grow in place here moves.
//!
//! **From.** TEMERAIRE §6.2, which chose policies this way.
//!
//! **Failure.** A free of a span that is not allocated, or no room: an error with the event's
//! number, from 1.

pub mod floor;

use crate::arrays::Arrays;
use craton_base::{Clock, Density, HugePages, PAGE_SHIFT, PageId, PageRange, Pages, SpanError, SpanSource, Table};
use craton_frames::{Config, Init, Pages as Frames, Seat, Sizes, Zone};
pub use craton_pages::HugeBacking;
pub use craton_pages::trace::{Event, Kind, Trace};
use craton_pages::{Fit, FrameHeap, FullestFirst, GlobalBestFit, LongestFreeFirst, PageHeapExt, Tracker};
use floor::{FloorCounts, LeanFloor};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::time::Instant;

pub const HEAPS: [(&str, HeapName); 2] = [("temeraire", HeapName::Temeraire), ("frames", HeapName::Frames)];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeapName {
    Temeraire,
    Frames,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FitName {
    LongestFreeFirst,
    FullestFirst,
    GlobalBestFit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    pub heap: HeapName,
    pub release_rate: u64,
    pub regions: bool,
    pub fit: FitName,
    pub backing: HugeBacking,
}

impl Default for Policy {
    fn default() -> Self {
        let fit = FitName::LongestFreeFirst;
        Self { heap: HeapName::Temeraire, release_rate: 64 << 20, regions: true, fit, backing: HugeBacking::AUTO }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub events: u64,
    pub duration_s: f64,
    pub spans_at_end: u64,
    pub moved: u64,
    pub peak_demand_bytes: u64,
    pub steady_demand_bytes: u64,
    pub peak_backed_bytes: u64,
    pub steady_backed_bytes: u64,
    pub backed_at_end_bytes: u64,
    /// Backed by used bytes, minus 1.
    pub overhead: Option<f64>,
    /// Of backed bytes, on intact hugepages.
    pub hugepage_coverage: Option<f64>,
    pub released_bytes: u64,
    /// Backed bytes at [`SAMPLES`] equal distances.
    #[serde(skip)]
    pub backed_over_time: Vec<u64>,
    #[serde(flatten)]
    pub calls: FloorCounts,
    pub wall_s: f64,
    pub events_per_s: f64,
}

/// Leaks the trackers of the replay's heap, 128 bytes for each possible hugepage.
pub fn replay(trace: &Trace<'_>, policy: &Policy) -> Result<Outcome, String> {
    match policy.fit {
        FitName::LongestFreeFirst => Player::<LongestFreeFirst>::play(trace, policy),
        FitName::FullestFirst => Player::<FullestFirst>::play(trace, policy),
        FitName::GlobalBestFit => Player::<GlobalBestFit>::play(trace, policy),
    }
}

#[derive(Clone, Copy)]
struct TraceClock<'a>(&'a Cell<u64>);

impl Clock for TraceClock<'_> {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

const ROOM_FACTOR: u64 = 4;
const ROOM_MORE: u64 = 1024;
const MOST_HUGEPAGES: u64 = (1 << 24) - 1;
/// The index has a word for each recorded page: 2 GiB of address space for 2 TiB.
const MOST_PAGES: Pages = Pages(1 << 28);
pub const SAMPLES: u64 = 256;
const SECOND_US: u64 = 1_000_000;

/// From the top: density, length, page plus 1; 0: none.
#[derive(Clone, Copy)]
struct Place(u64);

const DENSE: u64 = 1 << 63;

impl Place {
    fn new(span: PageRange, density: Density) -> Self {
        let dense = if density == Density::Dense { DENSE } else { 0 };
        Self(u64::from(span.first.0 + 1) | u64::from(span.len.0) << 32 | dense)
    }

    fn span(self) -> Option<(PageRange, Density)> {
        let first = (self.0 as u32).checked_sub(1)?;
        let density = if self.0 & DENSE != 0 { Density::Dense } else { Density::Sparse };
        Some((PageRange::new(PageId(first), Pages((self.0 >> 32) as u32 & u32::MAX >> 1)), density))
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    samples: u64,
    used: u64,
    backed: u64,
    intact: u64,
}

struct Player<'a, P: Fit> {
    heap: FrameHeap<LeanFloor, TraceClock<'a>, Seat<'a, 'a, Frames>, P>,
    now_ns: &'a Cell<u64>,
    places: Vec<u64>,
    outcome: Outcome,
    peak: Pages,
    peak_backed: Pages,
    /// Of the second half.
    steady: Sums,
    duration_us: u64,
    next_tick_us: u64,
    sampled: u64,
}

impl<P: Fit> Player<'_, P> {
    fn play(trace: &Trace<'_>, policy: &Policy) -> Result<Outcome, String> {
        if trace.pages() > MOST_PAGES {
            return Err(format!(
                "the recorded heap reached {} pages; traces of up to {} can be played",
                trace.pages().0,
                MOST_PAGES.0
            ));
        }
        let capacity = u64::from(trace.pages().hugepages_up().0) * ROOM_FACTOR + ROOM_MORE;
        let capacity = HugePages(capacity.min(MOST_HUGEPAGES) as u32);
        let trackers: Vec<Tracker> = (0..capacity.0).map(|_| Tracker::default()).collect();
        let now_ns = Cell::new(0);
        let table = Table::from_slice(trackers.leak());
        let mut heap: FrameHeap<_, _, _, P> =
            FrameHeap::new(LeanFloor::default(), TraceClock(&now_ns), table, capacity, policy.backing);
        let frames = capacity.pages().0 as usize;
        let arrays = Arrays::new(&Sizes::of::<Frames>(frames, 1), 0);
        let config = Config { claims: false, ..Config::new(1) };
        let zone = Zone::new(frames, arrays.metadata(), Init::Offline, config).map_err(|e| e.to_string())?;
        if policy.heap == HeapName::Frames {
            heap.set_frames(Seat::new(&zone, 0).map_err(|e| e.to_string())?);
        }
        heap.set_regions(policy.regions);
        heap.set_release_rate(policy.release_rate);
        let mut player = Player {
            heap,
            now_ns: &now_ns,
            places: vec![0; trace.pages().0 as usize],
            outcome: Outcome { duration_s: trace.duration_us() as f64 / 1e6, ..Outcome::default() },
            peak: Pages(0),
            peak_backed: Pages(0),
            steady: Sums::default(),
            duration_us: trace.duration_us(),
            next_tick_us: SECOND_US,
            sampled: 0,
        };
        let start = Instant::now();
        player.events(trace)?;
        let wall_s = start.elapsed().as_secs_f64();
        Ok(player.finish(wall_s))
    }

    fn events(&mut self, trace: &Trace<'_>) -> Result<(), String> {
        let mut next_us = self.next_stop_us();
        trace.events().try_for_each(|event| {
            while event.time_us >= next_us {
                self.stop_at(next_us);
                next_us = self.next_stop_us();
            }
            self.now_ns.set(event.time_us * 1000);
            self.outcome.events += 1;
            self.step(&event).map_err(|why| format!("event {}: {why}", self.outcome.events))
        })
    }

    fn next_stop_us(&self) -> u64 {
        self.next_tick_us.min(self.next_sample_us())
    }

    fn next_sample_us(&self) -> u64 {
        match self.sampled + 1 < SAMPLES {
            true => (u128::from(self.duration_us) * u128::from(self.sampled + 1) / u128::from(SAMPLES)) as u64,
            false => u64::MAX,
        }
    }

    #[cold]
    fn stop_at(&mut self, time_us: u64) {
        self.now_ns.set(time_us * 1000);
        if time_us >= self.next_tick_us {
            self.heap.tick();
            self.next_tick_us += SECOND_US;
        }
        if time_us >= self.next_sample_us() {
            self.sample();
        }
    }

    fn sample(&mut self) {
        self.sampled += 1;
        let stats = self.heap.stats();
        let backed = stats.backed.bytes().0 as u64;
        self.outcome.backed_at_end_bytes = backed;
        self.outcome.backed_over_time.push(backed);
        self.peak_backed = self.peak_backed.max(stats.backed);
        if self.sampled > SAMPLES / 2 {
            self.steady.samples += 1;
            self.steady.used += stats.in_use.bytes().0 as u64;
            self.steady.backed += backed;
            self.steady.intact += stats.intact.bytes().0 as u64;
        }
    }

    #[inline]
    fn step(&mut self, event: &Event) -> Result<(), String> {
        let at = event.span.first.0 as usize;
        match event.kind {
            Kind::Alloc => {
                if self.places[at] != 0 {
                    return Err(format!("takes a span at page {at}, where one is out already"));
                }
                let span = self.heap.alloc(event.span.len, event.align, event.density).map_err(refused)?;
                self.places[at] = Place::new(span.range, event.density).0;
                self.record_peaks(span.zeroed);
            }
            Kind::Free => {
                let (span, density) = self.place(at)?;
                if span.len != event.span.len {
                    return Err(format!("frees {} pages at page {at}, where {} are out", event.span.len.0, span.len.0));
                }
                self.heap.free(span, density).map_err(refused)?;
                self.places[at] = 0;
            }
            Kind::Resize => self.resize(at, event.span.len)?,
        }
        Ok(())
    }

    fn place(&self, at: usize) -> Result<(PageRange, Density), String> {
        Place(self.places[at]).span().ok_or_else(|| format!("is about a span at page {at}, where none is out"))
    }

    fn resize(&mut self, at: usize, pages: Pages) -> Result<(), String> {
        let (span, density) = self.place(at)?;
        let first = match self.heap.resize(span, pages) {
            Ok(_) => span.first,
            Err(SpanError::NoMemory) => {
                let moved = self.heap.alloc(pages, Pages(1), density).map_err(refused)?;
                self.heap.free(span, density).map_err(refused)?;
                self.outcome.moved += 1;
                moved.range.first
            }
            Err(other) => return Err(refused(other)),
        };
        self.places[at] = Place::new(PageRange::new(first, pages), density).0;
        self.record_peaks(true);
        Ok(())
    }

    /// A request on pages used before adds a few pages at most, which the next sample counts.
    fn record_peaks(&mut self, fresh: bool) {
        self.peak = self.peak.max(self.heap.in_use());
        if fresh {
            self.peak_backed = self.peak_backed.max(self.heap.backed_pages());
        }
    }

    fn finish(mut self, wall_s: f64) -> Outcome {
        self.sample();
        let Sums { samples, used, backed, intact } = self.steady;
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let samples = samples.max(1);
        Outcome {
            spans_at_end: self.places.iter().filter(|place| **place != 0).count() as u64,
            peak_demand_bytes: self.peak.bytes().0 as u64,
            peak_backed_bytes: self.peak_backed.bytes().0 as u64,
            steady_demand_bytes: used / samples,
            steady_backed_bytes: backed / samples,
            overhead: ratio(backed, used).map(|ratio| ratio - 1.0),
            hugepage_coverage: ratio(intact, backed),
            released_bytes: self.heap.stats().released_total << PAGE_SHIFT,
            calls: self.heap.floor().counts,
            wall_s,
            events_per_s: if wall_s > 0.0 { self.outcome.events as f64 / wall_s } else { 0.0 },
            ..self.outcome
        }
    }
}

fn refused(error: SpanError) -> String {
    match error {
        SpanError::NoMemory | SpanError::TooLong(_) => {
            format!("finds no room in a region of {ROOM_FACTOR} times what the recorded heap reached")
        }
        other => format!("was refused: {other}"),
    }
}

#[cfg(test)]
mod tests;
