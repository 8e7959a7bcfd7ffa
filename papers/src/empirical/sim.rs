//! The process on the page heap alone, in simulated memory: no object has memory, so that hours
//! take minutes (TEMERAIRE §6.2). Metadata and the caches of threads and processors are left out.

use super::process::{self, Event, Process};
use super::profile::Profile;
use super::schedule::Schedule;
use super::slabs::Slabs;
use super::system::System;
use craton_base::{Clock, HugePages, PageId, Pages, Table};
use craton_frames::{Init, Pages as Frames, Seat, Sizes, Zone};
use craton_lab::arrays::Arrays;
use craton_lab::replay::HeapName;
use craton_pages::{FrameHeap, HugeBacking, PageHeapExt, Tracker};
use craton_sim::{SimFloor, VirtualClock};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::hint::black_box;

#[derive(Clone, Debug)]
pub struct Config {
    pub profile: Profile,
    pub heap_bytes: u64,
    pub schedule: Schedule,
    pub events: u64,
    pub seed: u64,
    /// Simulated, above 0; `None`: as the profile's rates make.
    pub seconds: Option<f64>,
    /// At least 1; the filled heap has one more.
    pub samples: u32,
    /// A second (TEMERAIRE §4.6); 0: by the heap's limits; [`craton_pages::AUTO_RATE`]: by the
    /// surplus.
    pub release_bytes_per_s: u64,
    pub system: System,
    pub heap: HeapName,
    /// How often the run may continue for as long again until it is flat.
    pub more_runs: u32,
}

impl Config {
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
            system: System::PLENTY,
            heap: HeapName::Temeraire,
            more_runs: 0,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Sample {
    pub time_s: f64,
    pub target_bytes: u64,
    pub live_bytes: u64,
    pub span_bytes: u64,
    pub backed_bytes: u64,
    pub huge_bytes: u64,
    pub free_backed_bytes: u64,
    pub released_bytes: u64,
    /// With memory, outside of spans.
    pub beyond_bytes: u64,
    /// On hugepages of slabs of many small objects.
    pub dense_free_bytes: u64,
    /// On hugepages of other short spans, and behind long ones.
    pub sparse_free_bytes: u64,
    pub cached_bytes: u64,
    pub region_free_bytes: u64,
    /// Of hugepages that the heap broke.
    pub broken_bytes: u64,
}

impl Sample {
    pub fn overhead(&self) -> f64 {
        self.beyond_bytes as f64 / self.span_bytes.max(1) as f64
    }

    pub fn coverage(&self) -> f64 {
        self.huge_bytes as f64 / self.backed_bytes.max(1) as f64
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    pub peak_live_bytes: u64,
    pub peak_backed_bytes: u64,
    pub peak_overhead: f64,
    pub steady_overhead: f64,
    pub steady_per_span: f64,
    pub worst_overhead: f64,
    pub worst_coverage: f64,
    pub steady_coverage: f64,
    pub released_bytes: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "peak {} MiB live, {} MiB backed, {:.3} of it; steady {:.3}, {:.1}% on hugepages; {} MiB released; \
             last quarter at worst {:.2}% beyond spans, {:.1}% on hugepages",
            self.peak_live_bytes >> 20,
            self.peak_backed_bytes >> 20,
            self.peak_overhead,
            self.steady_overhead,
            self.steady_coverage * 100.0,
            self.released_bytes >> 20,
            self.worst_overhead * 100.0,
            self.worst_coverage * 100.0
        )
    }
}

const REGION_FACTOR: u64 = 4;
const REGION_MORE_BYTES: u64 = 1 << 30;
/// That units of pages can count.
const REGION_MAX_HUGEPAGES: u64 = (1 << 24) - 1;
/// Far below the 250 ms in which the heap measures demand.
const CLOCK_STEP_S: f64 = 1e-3;
const BATCH: usize = 64;

/// Between the halves of a flat quarter, at most.
const FLAT: f64 = 0.005;

struct World {
    process: Process,
    heap: FrameHeap<SimFloor, VirtualClock, Seat<'static, 'static, Frames>>,
    system: System,
    floor: SimFloor,
    clock: VirtualClock,
    /// By the process's seconds.
    stretch: f64,
    clock_s: f64,
    next_tick_s: f64,
    slabs: Slabs,
    /// By slot: the object's first page.
    places: Vec<PageId>,
}

/// Leaks the tables: 128 bytes for each hugepage of the region.
pub fn simulate(config: &Config) -> Result<Vec<Sample>, String> {
    let mut world = World::new(config)?;
    let (run_s, samples) = (world.process.duration_s, config.samples.max(1));
    let distance_s = run_s * world.stretch / f64::from(samples);
    let mut taken = Vec::with_capacity(samples as usize + 1);
    world.heap.set_release_rate(config.release_bytes_per_s);
    for run in 0..=config.more_runs {
        world.run(&mut taken, distance_s, (run + 1) * samples)?;
        if is_flat(&taken) {
            break;
        }
        world.process.go_on(run_s);
    }
    Ok(taken)
}

/// By the overhead, in the last quarter.
pub fn is_flat(samples: &[Sample]) -> bool {
    let mean = |part: &[Sample]| part.iter().map(Sample::overhead).sum::<f64>() / part.len().max(1) as f64;
    let (from, middle) = (samples.len() * 6 / 8, samples.len() * 7 / 8);
    (mean(&samples[from..middle]) - mean(&samples[middle..])).abs() <= FLAT
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
        let (floor, clock) = (SimFloor::new(capacity, config.system.thp), VirtualClock::new(0));
        config.system.prepare(&floor, &clock, largest, config.seed);
        let trackers: Vec<Tracker> = (0..hugepages).map(|_| Tracker::default()).collect();
        let table = Table::from_slice(trackers.leak());
        let mut heap = FrameHeap::new(floor.clone(), clock.clone(), table, capacity, HugeBacking::AUTO);
        if config.heap == HeapName::Frames {
            heap.set_frames(seat(capacity.pages())?);
        }
        let places = Vec::with_capacity(process.slots_expected());
        let stretch = config.seconds.map_or(1.0, |seconds| seconds / process.duration_s);
        let (slabs, system) = (Slabs::new(floor.clone()), config.system);
        Ok(Self { slabs, process, heap, system, floor, clock, stretch, clock_s: 0.0, next_tick_s: 1.0, places })
    }

    fn run(&mut self, taken: &mut Vec<Sample>, distance_s: f64, last: u32) -> Result<(), String> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let now_s = self.now_s();
            if now_s > 0.0 && now_s >= distance_s * taken.len() as f64 && taken.len() < last as usize {
                taken.push(self.sample());
            }
            self.tick(now_s);
            while batch.len() < BATCH
                && self.now_s() <= now_s + CLOCK_STEP_S
                && let Some(event) = self.process.next_event()
            {
                batch.push(event);
            }
            if batch.is_empty() {
                taken.push(self.sample());
                return Ok(());
            }
            self.fetch(&batch);
            batch.drain(..).try_for_each(|event| self.play(event))?;
        }
    }

    /// Cache misses overlap.
    fn fetch(&self, batch: &[Event]) {
        let slots = batch.iter().map(|event| event.slot() as usize);
        let places = slots.filter_map(|slot| self.places.get(slot));
        black_box(places.fold(0, |sum, place| sum ^ self.slabs.used(*place)));
    }

    fn now_s(&self) -> f64 {
        self.process.now_s * self.stretch
    }

    /// Collapses may have advanced the clock.
    fn tick(&mut self, now_s: f64) {
        if now_s - self.clock_s < CLOCK_STEP_S {
            return;
        }
        self.clock_s = now_s;
        self.clock.advance(((now_s * 1e9) as u64).saturating_sub(self.clock.now_ns()));
        while now_s >= self.next_tick_s {
            self.slabs.forked = self.system.fork(&self.floor, self.next_tick_s);
            self.heap.tick();
            self.next_tick_s += 1.0;
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
                // Slots are first used in ascending order.
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
        let (parts, stats) = (self.heap.components(), self.heap.stats());
        let bytes = |pages: Pages| pages.bytes().0 as u64;
        Sample {
            // The last event lies a little behind the end.
            time_s: self.now_s().min(self.process.duration_s * self.stretch),
            target_bytes: self.process.target_bytes,
            live_bytes: self.process.live_bytes,
            span_bytes: bytes(stats.in_use),
            backed_bytes: self.floor.backed_bytes().0 as u64,
            huge_bytes: self.floor.huge_bytes().0 as u64,
            free_backed_bytes: bytes(stats.cached) + bytes(stats.free_backed),
            released_bytes: stats.released_total << craton_base::PAGE_SHIFT,
            beyond_bytes: bytes(self.slabs.backed_beyond()),
            dense_free_bytes: bytes(parts.dense.free),
            sparse_free_bytes: bytes(parts.sparse.free),
            cached_bytes: bytes(parts.cached),
            region_free_bytes: bytes(parts.region_free),
            broken_bytes: bytes(stats.broken.pages()),
        }
    }
}

/// Never given back.
fn seat(pages: Pages) -> Result<Seat<'static, 'static, Frames>, String> {
    let arrays = Box::leak(Box::new(Arrays::new(&Sizes::of::<Frames>(pages.0 as usize, 1), 0)));
    let config = craton_frames::Config { claims: false, ..craton_frames::Config::new(1) };
    let zone = Zone::new(pages.0 as usize, arrays.metadata(), Init::Offline, config).map_err(|e| e.to_string())?;
    Seat::new(Box::leak(Box::new(zone)), 0).map_err(|e| e.to_string())
}

pub fn summary(samples: &[Sample]) -> Summary {
    let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let second_half = &samples[samples.len() / 2..];
    let mean = |of: &dyn Fn(&Sample) -> f64| second_half.iter().map(of).sum::<f64>() / second_half.len().max(1) as f64;
    let peak = |of: &dyn Fn(&Sample) -> u64| samples.iter().map(of).max().unwrap_or(0);
    let last = &samples[samples.len() * 3 / 4..];
    let (peak_live_bytes, peak_backed_bytes) = (peak(&|s| s.live_bytes), peak(&|s| s.backed_bytes));
    Summary {
        peak_live_bytes,
        peak_backed_bytes,
        peak_overhead: ratio(peak_backed_bytes, peak_live_bytes),
        steady_overhead: mean(&|s| ratio(s.backed_bytes, s.live_bytes)),
        steady_per_span: mean(&|s| ratio(s.backed_bytes, s.span_bytes)),
        worst_overhead: last.iter().map(Sample::overhead).fold(0.0, f64::max),
        worst_coverage: last.iter().map(Sample::coverage).reduce(f64::min).unwrap_or(0.0),
        steady_coverage: mean(&|s| ratio(s.huge_bytes, s.backed_bytes)),
        released_bytes: peak(&|s| s.released_bytes),
    }
}

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
