//! The options of `craton-work empirical`.

use super::profile::Profile;
use super::schedule::Schedule;
use super::system::System;
use super::{EVENTS, HEAP_BYTES, REMOTE_PERCENT, real, sim};
use crate::work::arguments::Given;
use craton_lab::replay::{HEAPS, HeapName};
use craton_pages::AUTO_RATE;
use craton_sim::ThpMode;
use std::path::Path;

pub const USAGE: &str = "\
craton-work empirical: births and deaths after a distribution of sizes.

Usage: craton-work empirical [--profile FILE] [--heap MIB] [--events N] [--schedule NAME] [--seed N]
                             [--threads N] [--remote PERCENT] [--expect CHECKSUM]
       craton-work empirical --simulated [--profile FILE] [--heap MIB] [--events N] [--schedule NAME] [--seed N]
                             [--seconds N] [--samples N] [--release MIB] [--more-runs N] [--page-heap NAME]
                             [--thp MODE] [--hugepages PERCENT] [--failing PERCENT] [--fork-every SECONDS]

  --profile FILE     rows of size in bytes, allocation rate, live objects (default: one that is built in)
  --heap MIB         live bytes over all threads (default 64)
  --events N         births and deaths over all threads, on average; filling the heap comes on top (default 6000000)
  --schedule NAME    course of the heap's size: steady, diurnal, spikes, ramp or drop (default steady)
  --seed N           where the random numbers start (default 1)
  --threads N        threads, each with its share of the heap (default 2)
  --remote PERCENT   frees on the next thread, of a hundred (default 10)
  --expect C         fail unless the checksum is C

  --simulated        on the page heap alone, in simulated memory; prints its samples as lines of CSV
  --seconds N        simulated time of the run (default: what the rates and the events make)
  --samples N        samples over the run (default 100)
  --release MIB      memory given back to the system each simulated second, or auto (default 0)
  --more-runs N      how often the run goes on for as long again until it is steady (default 0)
  --page-heap NAME   what places short spans: temeraire or frames (default temeraire)
  --thp MODE         hugepages always, where advised (madvise) or never (default always)
  --hugepages P      hugepages of the system, in percent of the heap (default: without end)
  --failing P        requests for a hugepage that fail, of a hundred (default 0)
  --fork-every N     seconds from one fork to the next, whose child runs 10 s (default: no forks)

Example: craton-work empirical --simulated --heap 16384 --schedule diurnal > samples.csv
";

#[derive(Debug)]
pub enum Request {
    Help,
    Real(real::Config, Option<u64>),
    Simulated(sim::Config),
}

/// Unknown to other workloads.
const OWN: [&str; 6] = ["--profile", "--heap", "--events", "--schedule", "--remote", "--simulated"];
const REAL_ONLY: [&str; 3] = ["--threads", "--remote", "--expect"];
const SIMULATED_ONLY: [&str; 9] = [
    "--seconds",
    "--samples",
    "--release",
    "--more-runs",
    "--page-heap",
    "--thp",
    "--hugepages",
    "--failing",
    "--fork-every",
];
const THP: [(&str, ThpMode); 3] =
    [("always", ThpMode::Always), ("madvise", ThpMode::Madvise), ("never", ThpMode::Never)];
/// 16 TiB.
const MAX_HEAP_MIB: u64 = 16 << 20;

fn name_of(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

pub fn wanted(arguments: &[String]) -> bool {
    let own = |name| OWN.contains(&name) || SIMULATED_ONLY.contains(&name);
    arguments.iter().any(|argument| own(name_of(argument)) || argument == "--help" || argument == "-h")
}

pub fn parse(arguments: &[String]) -> Result<Request, String> {
    let known = [&OWN[..], &REAL_ONLY, &SIMULATED_ONLY, &["--seed"]].concat();
    if arguments.iter().any(|argument| name_of(argument) == "--percent") {
        return Err("--percent cannot be given with these options; give --events".to_owned());
    }
    let Some(given) = Given::read(arguments, &known, &["--simulated"])? else { return Ok(Request::Help) };
    let simulated = given.find("--simulated").is_some();
    let (others, only) = if simulated { (&REAL_ONLY[..], "without") } else { (&SIMULATED_ONLY[..], "with") };
    if let Some(name) = others.iter().find(|name| given.find(name).is_some()) {
        return Err(format!("{name} can be given only {only} --simulated"));
    }
    let options = Options(given);
    if simulated { options.simulated().map(Request::Simulated) } else { options.real() }
}

struct Options<'a>(Given<'a>);

impl Options<'_> {
    fn profile(&self) -> Result<Profile, String> {
        self.0.find("--profile").map_or_else(|| Ok(Profile::built_in()), |path| Profile::read(Path::new(path)))
    }

    fn schedule(&self) -> Result<Schedule, String> {
        self.name("--schedule", &Schedule::ALL, Schedule::Steady)
    }

    fn heap_bytes(&self) -> Result<u64, String> {
        Ok(self.0.number("--heap", HEAP_BYTES >> 20, 1, MAX_HEAP_MIB)? << 20)
    }

    fn events(&self) -> Result<u64, String> {
        self.0.number("--events", EVENTS, 1, 1 << 50)
    }

    fn real(&self) -> Result<Request, String> {
        let threads = self.0.number("--threads", 2, 1, 1024)?;
        let remote_percent = self.0.number("--remote", REMOTE_PERCENT.into(), 0, 100)?;
        if threads == 1 && remote_percent > 0 && self.0.find("--remote").is_some() {
            return Err(format!("--remote {remote_percent} needs another thread; give --threads 2 or more"));
        }
        let config = real::Config {
            profile: self.profile()?,
            heap_bytes: self.heap_bytes()?,
            events: self.events()?,
            schedule: self.schedule()?,
            threads: threads as usize,
            remote_percent: remote_percent as u32,
            seed: self.0.number("--seed", crate::work::SEED, 0, u64::MAX)?,
        };
        Ok(Request::Real(config, self.0.checksum()?))
    }

    fn simulated(&self) -> Result<sim::Config, String> {
        let seconds = self.0.number("--seconds", 0, 1, 10_000_000)?;
        Ok(sim::Config {
            profile: self.profile()?,
            heap_bytes: self.heap_bytes()?,
            schedule: self.schedule()?,
            events: self.events()?,
            seed: self.0.number("--seed", crate::work::SEED, 0, u64::MAX)?,
            seconds: (seconds > 0).then_some(seconds as f64),
            samples: self.0.number("--samples", 100, 1, 1_000_000)? as u32,
            release_bytes_per_s: self.release()?,
            system: self.system()?,
            heap: self.name("--page-heap", &HEAPS, HeapName::Temeraire)?,
            more_runs: self.0.number("--more-runs", 0, 0, 1000)? as u32,
        })
    }

    fn release(&self) -> Result<u64, String> {
        match self.0.find("--release") {
            Some("auto") => Ok(AUTO_RATE),
            _ => Ok(self.0.number("--release", 0, 0, MAX_HEAP_MIB)? << 20),
        }
    }

    fn system(&self) -> Result<System, String> {
        let percent = self.0.number("--hugepages", 0, 0, 10_000)? as u32;
        Ok(System {
            thp: self.name("--thp", &THP, ThpMode::Always)?,
            frames_percent: self.0.find("--hugepages").map(|_| percent),
            failing_percent: self.0.number("--failing", 0, 0, 100)? as u32,
            fork_every_s: self.0.number("--fork-every", 0, 0, 1_000_000)? as u32,
        })
    }

    fn name<T: Copy>(&self, option: &str, all: &[(&str, T)], usual: T) -> Result<T, String> {
        let Some(value) = self.0.find(option) else { return Ok(usual) };
        let found = all.iter().find(|(name, _)| *name == value);
        let names = all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found.map(|(_, of)| *of).ok_or_else(|| format!("{option} {value:?}: give one of {names}"))
    }
}

#[cfg(test)]
mod tests;
