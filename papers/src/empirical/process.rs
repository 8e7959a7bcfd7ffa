//! Births and deaths of objects, as a sequence of events that is the same on any machine. The
//! player keeps the objects, by slot.
//!
//! **From.** TEMERAIRE §6.1: births of size `s` are a Poisson process of rate `λ_s`; deaths at rate
//! `λ_s / N_s` for each live object keep `N_s` of them live on average. At target `f` births come
//! at `f · λ_s`; docs/empirical.md says how live bytes follow it.
//!
//! **Precision.** Steps have the mean distance between events: the order is Poisson's, the times
//! are not.
//!
//! **State.** Live objects are in groups by death rate, a power of two each. A death draws a group
//! by its upper bound, and is accepted by the object's rate (thinning): integers only, so sums
//! never drift.

use super::alias::Alias;
use super::profile::{Profile, Row};
use super::schedule::Schedule;
use craton_lab::rng::Rng;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Alloc {
        /// The one emptied last, or the lowest never used.
        slot: u32,
        size: u64,
    },
    Free {
        slot: u32,
        size: u64,
        remote: bool,
    },
}

impl Event {
    pub fn slot(self) -> u32 {
        let (Self::Alloc { slot, .. } | Self::Free { slot, .. }) = self;
        slot
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    pub profile: &'a Profile,
    /// Live, at target 1.
    pub heap_bytes: u64,
    pub schedule: Schedule,
    /// On average, without those that follow the target.
    pub events: u64,
    pub remote_percent: u32,
    pub seed: u64,
    /// Among processes of one seed.
    pub number: u64,
}

/// Sum of all rates at target 1, and their unit.
const BIRTHS: u64 = 1 << 40;
/// Live bytes may differ by 1/`BAND` of the target.
pub const BAND: u64 = 16;
/// Larger sizes are omitted: a single birth must not miss the target.
pub const LARGEST_PART: u64 = 32;
const STEPS_PER_LOOK: u32 = 64;

struct Size {
    bytes: u64,
    death: u64,
    group: u32,
    live: u32,
}

struct Group {
    /// log2 of the highest death rate.
    bound: u32,
    live: Vec<Live>,
}

#[derive(Clone, Copy)]
struct Live {
    slot: u32,
    size: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Growing,
    Steady,
    Shrinking,
}

pub struct Process {
    sizes: Vec<Size>,
    groups: Vec<Group>,
    births: Alias,
    growth: Alias,
    empty_slots: Vec<u32>,
    slots: u32,
    rng: Rng,
    schedule: Schedule,
    heap_bytes: u64,
    remote_percent: u32,
    expected_objects: f64,
    pub left_out: LeftOut,
    pub duration_s: f64,
    pub now_s: f64,
    /// Births a second at target 1.
    rate: f64,
    birth: u64,
    pub target_bytes: u64,
    pub live_bytes: u64,
    pub live_objects: u64,
    death_bound: u64,
    course: Course,
    steps_to_look: u32,
}

/// Too large for the heap.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LeftOut {
    pub sizes: usize,
    pub bytes_part: f64,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.sizes {
            0 => Ok(()),
            n => write!(
                f,
                "; sizes left out: {n}, with {:.1}% of the profile's live bytes, each larger than a {LARGEST_PART}nd of the heap",
                self.bytes_part * 100.0
            ),
        }
    }
}

fn live_bytes_of(rows: &[Row]) -> f64 {
    rows.iter().map(|row| row.live * row.size as f64).sum()
}

impl Process {
    pub fn new(config: &Config) -> Result<Self, String> {
        let all = config.profile.rows();
        let fit = all.partition_point(|row| row.size <= config.heap_bytes / LARGEST_PART);
        let rows = &all[..fit];
        let (rate, bytes) = (rows.iter().map(|row| row.rate).sum::<f64>(), live_bytes_of(rows));
        if rate == 0.0 || bytes == 0.0 {
            return Err(format!(
                "a heap of {} bytes for each thread is too small for this profile: no size with births is at most a \
                 {LARGEST_PART}nd of it; give more with --heap",
                config.heap_bytes
            ));
        }
        let scale = config.heap_bytes as f64 / bytes;
        let expected_objects = scale * rows.iter().map(|row| row.live).sum::<f64>();
        if expected_objects * config.schedule.peak() > f64::from(u32::MAX / 2) {
            return Err(format!(
                "a heap of {} bytes would hold {expected_objects:.0} objects; give one for less than 2^31 with --heap",
                config.heap_bytes
            ));
        }
        let left_out = LeftOut { sizes: all.len() - fit, bytes_part: 1.0 - bytes / live_bytes_of(all) };
        let mut process = Self {
            sizes: Vec::with_capacity(fit),
            groups: Vec::new(),
            births: Alias::new(rows.iter().map(|row| row.rate)),
            growth: Alias::new(rows.iter().map(|row| row.live)),
            empty_slots: Vec::new(),
            slots: 0,
            rng: Rng::new(config.seed, config.number),
            schedule: config.schedule,
            heap_bytes: config.heap_bytes,
            remote_percent: config.remote_percent,
            expected_objects,
            left_out,
            duration_s: config.events as f64 / (2.0 * rate * config.schedule.mean()),
            now_s: 0.0,
            rate,
            birth: 0,
            target_bytes: 0,
            live_bytes: 0,
            live_objects: 0,
            death_bound: 0,
            course: Course::Growing,
            steps_to_look: 0,
        };
        process.group(rows, scale);
        process.look();
        Ok(process)
    }

    fn group(&mut self, rows: &[Row], scale: f64) {
        let death = |row: &Row| match row.rate > 0.0 {
            true => (row.rate / self.rate / (row.live * scale) * BIRTHS as f64).round() as u64,
            false => 0,
        };
        // Shorter lives may last until the next birth.
        let deaths: Vec<u64> = rows.iter().map(|row| death(row).min(BIRTHS)).collect();
        let bound = |death: u64| death.max(1).next_power_of_two().ilog2();
        let mut expected = [(0.0, 0.0); 64];
        for (row, death) in rows.iter().zip(&deaths) {
            let of = &mut expected[bound(*death) as usize];
            *of = (of.0 + row.live * scale * *death as f64, of.1 + row.live * scale);
        }
        let mut order: Vec<usize> = (0..64).filter(|b| deaths.iter().any(|d| bound(*d) as usize == *b)).collect();
        order.sort_by(|a, b| expected[*b].0.total_cmp(&expected[*a].0));
        let room = |objects: f64| (objects * self.schedule.peak() * 1.1) as usize + 1024;
        self.empty_slots.reserve(room(self.expected_objects));
        self.groups =
            order.iter().map(|b| Group { bound: *b as u32, live: Vec::with_capacity(room(expected[*b].1)) }).collect();
        for (row, death) in rows.iter().zip(deaths) {
            let group = order.iter().position(|b| *b == bound(death) as usize).unwrap_or(0) as u32;
            self.sizes.push(Size { bytes: row.size, death, group, live: 0 });
        }
    }

    /// Returns how many; 0 after the end.
    pub fn fill(&mut self, events: &mut [Event]) -> usize {
        let mut made = 0;
        while made < events.len()
            && let Some(event) = self.next_event()
        {
            events[made] = event;
            made += 1;
        }
        made
    }

    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            match self.course {
                Course::Growing if self.live_bytes < self.target_bytes => {
                    let size = self.growth.draw(&mut self.rng);
                    return Some(self.be_born(size));
                }
                Course::Shrinking if self.live_bytes > self.target_bytes => {
                    let nth = (u128::from(self.rng.next()) * u128::from(self.live_objects)) >> 64;
                    let (group, place) = self.object(nth as u64);
                    return Some(self.die(group, place));
                }
                _ => {}
            }
            self.course = Course::Steady;
            if self.steps_to_look == 0 {
                if self.now_s >= self.duration_s {
                    return None;
                }
                self.look();
            }
            self.steps_to_look -= 1;
            let event = self.step();
            let band = self.target_bytes / BAND;
            if self.live_bytes + band < self.target_bytes {
                self.course = Course::Growing;
            } else if self.live_bytes > self.target_bytes + band {
                self.course = Course::Shrinking;
            }
            if event.is_some() {
                return event;
            }
        }
    }

    pub fn go_on(&mut self, run_s: f64) {
        self.duration_s += run_s;
    }

    /// `None` also where thinning rejects a death.
    fn step(&mut self) -> Option<Event> {
        let all = self.birth + self.death_bound;
        self.now_s += BIRTHS as f64 / (self.rate * all as f64);
        let mut point = ((u128::from(self.rng.next()) * u128::from(all)) >> 64) as u64;
        if point < self.birth {
            let size = self.births.draw(&mut self.rng);
            return Some(self.be_born(size));
        }
        point -= self.birth;
        for (number, group) in self.groups.iter().enumerate() {
            let weight = (group.live.len() as u64) << group.bound;
            if point < weight {
                let (place, within) = ((point >> group.bound) as usize, point & ((1 << group.bound) - 1));
                let taken = within < self.sizes[group.live[place].size as usize].death;
                return taken.then(|| self.die(number, place));
            }
            point -= weight;
        }
        unreachable!("the groups' weights add up to the bound of deaths")
    }

    fn object(&self, mut nth: u64) -> (usize, usize) {
        for (number, group) in self.groups.iter().enumerate() {
            match nth.checked_sub(group.live.len() as u64) {
                None => return (number, nth as usize),
                Some(rest) => nth = rest,
            }
        }
        unreachable!("the groups hold every live object")
    }

    fn look(&mut self) {
        let part = self.schedule.at(self.now_s / self.duration_s);
        self.birth = (BIRTHS as f64 * part) as u64;
        self.target_bytes = (self.heap_bytes as f64 * part) as u64;
        self.steps_to_look = STEPS_PER_LOOK;
    }

    fn be_born(&mut self, size: usize) -> Event {
        let slot = self.empty_slots.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        let of = &mut self.sizes[size];
        of.live += 1;
        let group = &mut self.groups[of.group as usize];
        group.live.push(Live { slot, size: size as u32 });
        self.death_bound += 1 << group.bound;
        self.live_bytes += of.bytes;
        self.live_objects += 1;
        Event::Alloc { slot, size: of.bytes }
    }

    fn die(&mut self, group: usize, place: usize) -> Event {
        let group = &mut self.groups[group];
        let Live { slot, size } = group.live.swap_remove(place);
        let of = &mut self.sizes[size as usize];
        of.live -= 1;
        self.death_bound -= 1 << group.bound;
        self.live_bytes -= of.bytes;
        self.live_objects -= 1;
        self.empty_slots.push(slot);
        let remote = self.remote_percent > 0 && self.rng.below(100) < self.remote_percent;
        Event::Free { slot, size: of.bytes, remote }
    }

    pub fn slots_expected(&self) -> usize {
        (self.expected_objects * self.schedule.peak() * 1.1) as usize + 1024
    }

    #[cfg(test)]
    pub fn live_by_size(&self) -> impl Iterator<Item = (u64, u32)> {
        self.sizes.iter().map(|size| (size.bytes, size.live))
    }

    pub fn live(&self) -> impl Iterator<Item = (u32, u64)> {
        let objects = self.groups.iter().flat_map(|group| &group.live);
        objects.map(|live| (live.slot, self.sizes[live.size as usize].bytes))
    }
}

#[cfg(test)]
mod tests;
