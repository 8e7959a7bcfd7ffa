//! The process on the page heap alone, in simulated memory.
//!
//! **What.** One [`Process`] on slabs and spans of craton-pages' heap over a simulated floor and
//! clock. No object has memory, so a heap of many GiB takes a few bytes a page, and hours take
//! minutes (TEMERAIRE §6.2). Without metadata, and caches of threads and processors.

use super::process::{self, Event, Process};
use super::profile::Profile;
use super::schedule::Schedule;
use super::slabs::Slabs;
use craton_base::{HugePages, PageId, Table};
use craton_pages::{HugeBacking, PageHeapExt, Temeraire, Tracker};
use craton_sim::{SimFloor, ThpMode, VirtualClock};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sizes, rates and live objects.
    pub profile: Profile,
    /// Live bytes at target 1.
    pub heap_bytes: u64,
    /// The target's course.
    pub schedule: Schedule,
    /// Births and deaths on average; those that fill and resize the heap come on top.
    pub events: u64,
    /// Where the random numbers start.
    pub seed: u64,
    /// Simulated seconds that the whole run takes, above 0; `None` for as long as the profile's rates make it. A machine
    /// that is slower by some factor has longer lives by it, and the same events.
    pub seconds: Option<f64>,
    /// Samples over the run, at least 1, at equal distances of simulated time; one of the filled heap comes before them.
    pub samples: u32,
    /// Free memory that is given back to the system each second, breaking hugepages where it must (TEMERAIRE §4.6);
    /// 0 leaves releasing to the heap's own limits.
    pub release_bytes_per_s: u64,
    /// When the simulated system gives hugepages.
    pub thp: ThpMode,
}

impl Config {
    /// A steady course at the profile's own rates, on a system that gives hugepages where they are advised; the heap asks for them as
    /// it does by default, and is left to its own limits.
    pub fn new(profile: Profile, heap_bytes: u64, events: u64) -> Self {
        Self {
            profile,
            heap_bytes,
            schedule: Schedule::Steady,
            events,
            seed: 1,
            seconds: None,
            samples: 120,
            release_bytes_per_s: 0,
            thp: ThpMode::Madvise,
        }
    }
}

/// The heap at a moment.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Sample {
    /// Simulated time since the heap was filled.
    pub time_s: f64,
    /// Live bytes that the schedule asks for.
    pub target_bytes: u64,
    /// Bytes in live objects, as asked for.
    pub live_bytes: u64,
    /// Bytes in the spans that hold them.
    pub span_bytes: u64,
    /// Bytes with memory: the resident size.
    pub backed_bytes: u64,
    /// Those of them that lie on intact hugepages.
    pub huge_bytes: u64,
    /// Free bytes that still have memory, on partly used hugepages and on whole free ones.
    pub free_backed_bytes: u64,
    /// Bytes given back to the system since the start.
    pub released_bytes: u64,
}

/// What the samples say as a whole.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// The most live bytes of a sample.
    pub peak_live_bytes: u64,
    /// The most backed bytes of a sample.
    pub peak_backed_bytes: u64,
    /// Backed by live bytes at the peaks.
    pub peak_overhead: f64,
    /// Backed by live bytes, on average over the second half of the samples.
    pub steady_overhead: f64,
    /// Backed bytes by bytes in spans, on average over the second half.
    pub steady_per_span: f64,
    /// The part of backed bytes that lies on intact hugepages, on average over the second half.
    pub steady_coverage: f64,
    /// Bytes given back to the system.
    pub released_bytes: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "peak {} MiB live, {} MiB backed, {:.3} of it; steady {:.3}, {:.1}% on hugepages; {} MiB released",
            self.peak_live_bytes >> 20,
            self.peak_backed_bytes >> 20,
            self.peak_overhead,
            self.steady_overhead,
            self.steady_coverage * 100.0,
            self.released_bytes >> 20
        )
    }
}

/// Address space of the region, as a multiple of the largest target, and what is added for small heaps.
const REGION_FACTOR: u64 = 4;
const REGION_MORE_BYTES: u64 = 1 << 30;
/// Hugepages that the units of pages can count.
const REGION_MAX_HUGEPAGES: u64 = (1 << 24) - 1;
/// Simulated time that may pass before the clock is set: far below the 250 ms in which the heap measures demand.
const CLOCK_STEP_S: f64 = 1e-3;

struct World {
    process: Process,
    heap: Temeraire<SimFloor, VirtualClock>,
    floor: SimFloor,
    clock: VirtualClock,
    /// Simulated seconds for one of the process's.
    stretch: f64,
    /// The time that the clock shows.
    clock_s: f64,
    slabs: Slabs,
    /// The first page of what holds the object of each slot.
    places: Vec<PageId>,
}

/// Plays the process, and returns the heap's samples, the first of them when it has been filled.
///
/// The trackers of the simulated heap, 64 bytes for each hugepage of its region, are never given back.
pub fn simulate(config: &Config) -> Result<Vec<Sample>, String> {
    let mut world = World::new(config)?;
    let samples = config.samples.max(1);
    let distance_s = world.process.duration_s * world.stretch / f64::from(samples);
    let mut taken = Vec::with_capacity(config.samples as usize + 1);
    let (mut next_sample, mut next_tick_s) = (0u32, 1.0);
    world.heap.set_release_rate(config.release_bytes_per_s);
    while let Some(event) = world.process.next_event() {
        let now_s = world.now_s();
        // The last one is that of the end, after the last event.
        if now_s > 0.0 && now_s >= distance_s * f64::from(next_sample) && next_sample < samples {
            taken.push(world.sample());
            next_sample += 1;
        }
        world.tick(now_s);
        while now_s >= next_tick_s {
            world.heap.tick();
            next_tick_s += 1.0;
        }
        world.play(event)?;
    }
    taken.push(world.sample());
    Ok(taken)
}

impl World {
    fn new(config: &Config) -> Result<Self, String> {
        let process = Process::new(&process::Config {
            profile: &config.profile,
            heap_bytes: config.heap_bytes,
            schedule: config.schedule,
            events: config.events,
            remote_percent: 0,
            seed: config.seed,
            number: 0,
        })?;
        let largest = (config.heap_bytes as f64 * config.schedule.peak()) as u64;
        let region = largest.saturating_mul(REGION_FACTOR).saturating_add(REGION_MORE_BYTES);
        let hugepages = region.div_ceil(HugePages(1).bytes().0 as u64).min(REGION_MAX_HUGEPAGES);
        let capacity = HugePages(hugepages as u32);
        let (floor, clock) = (SimFloor::new(capacity, config.thp), VirtualClock::new(0));
        let trackers: Vec<Tracker> = (0..hugepages).map(|_| Tracker::default()).collect();
        let table = Table::from_slice(trackers.leak());
        let heap = Temeraire::new(floor.clone(), clock.clone(), table, capacity, HugeBacking::AUTO);
        let places = Vec::with_capacity(process.slots_expected());
        let stretch = config.seconds.map_or(1.0, |seconds| seconds / process.duration_s);
        Ok(Self { slabs: Slabs::new(floor.clone()), process, heap, floor, clock, stretch, clock_s: 0.0, places })
    }

    fn now_s(&self) -> f64 {
        self.process.now_s * self.stretch
    }

    fn tick(&mut self, now_s: f64) {
        if now_s - self.clock_s >= CLOCK_STEP_S {
            self.clock.advance(((now_s - self.clock_s) * 1e9) as u64);
            self.clock_s = now_s;
        }
    }

    fn play(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Alloc { slot, size } => {
                let place = self.slabs.alloc(size, &mut self.heap).map_err(|_| {
                    format!(
                        "the simulated region of {} MiB has no room for {size} bytes at {} MiB live; give a smaller heap",
                        self.heap.granted().bytes().0 >> 20,
                        self.process.live_bytes >> 20
                    )
                })?;
                // Slots are used for the first time in ascending order.
                if slot as usize == self.places.len() {
                    self.places.push(place);
                }
                self.places[slot as usize] = place;
            }
            Event::Free { slot, size, .. } => self.slabs.free(self.places[slot as usize], size, &mut self.heap),
        }
        Ok(())
    }

    fn sample(&self) -> Sample {
        let stats = self.heap.stats();
        let bytes = |pages: u64| pages << craton_base::PAGE_SHIFT;
        Sample {
            // The last event lies a little behind the end.
            time_s: self.now_s().min(self.process.duration_s * self.stretch),
            target_bytes: self.process.target_bytes,
            live_bytes: self.process.live_bytes,
            span_bytes: stats.in_use.bytes().0 as u64,
            backed_bytes: self.floor.backed_bytes().0 as u64,
            huge_bytes: self.floor.huge_bytes().0 as u64,
            free_backed_bytes: bytes(u64::from(stats.cached.0) + u64::from(stats.free_backed.0)),
            released_bytes: bytes(stats.released_total),
        }
    }
}

/// Peaks and means of samples; all zeros of none.
pub fn summary(samples: &[Sample]) -> Summary {
    let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let second_half = &samples[samples.len() / 2..];
    let mean = |of: &dyn Fn(&Sample) -> f64| second_half.iter().map(of).sum::<f64>() / second_half.len().max(1) as f64;
    let peak = |of: &dyn Fn(&Sample) -> u64| samples.iter().map(of).max().unwrap_or(0);
    let (peak_live_bytes, peak_backed_bytes) = (peak(&|s| s.live_bytes), peak(&|s| s.backed_bytes));
    Summary {
        peak_live_bytes,
        peak_backed_bytes,
        peak_overhead: ratio(peak_backed_bytes, peak_live_bytes),
        steady_overhead: mean(&|s| ratio(s.backed_bytes, s.live_bytes)),
        steady_per_span: mean(&|s| ratio(s.backed_bytes, s.span_bytes)),
        steady_coverage: mean(&|s| ratio(s.huge_bytes, s.backed_bytes)),
        released_bytes: peak(&|s| s.released_bytes),
    }
}

/// The samples as text, a line each under one of names, separated by commas.
pub fn csv(samples: &[Sample]) -> String {
    let fields = |sample: &Sample| match serde_json::to_value(sample) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let cell = |value: &Value| {
        value.as_u64().map_or_else(|| format!("{:.6}", value.as_f64().unwrap_or(0.0)), |n| n.to_string())
    };
    let names = fields(&Sample::default()).keys().map(String::as_str).collect::<Vec<_>>().join(",");
    let line = |sample| fields(sample).values().map(cell).collect::<Vec<_>>().join(",");
    samples.iter().fold(names, |text, sample| text + "\n" + line(sample).as_str()) + "\n"
}

#[cfg(test)]
mod tests;
