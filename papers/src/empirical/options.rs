//! The command line of `craton-work empirical`, where it goes beyond that of any workload.
//!
//! **Failure.** A message that names the option, the value and what may be given.

use super::profile::Profile;
use super::schedule::Schedule;
use super::{EVENTS, HEAP_BYTES, REMOTE_PERCENT, real, sim};
use craton_pages::HugeBacking;
use craton_sim::ThpMode;
use std::path::Path;

/// What the options say, for the program's help.
pub const USAGE: &str = "\
craton-work empirical: births and deaths after a distribution of sizes.

Usage: craton-work empirical [--profile FILE] [--heap MIB] [--events N] [--schedule NAME] [--seed N]
                             [--threads N] [--remote PERCENT] [--expect CHECKSUM]
       craton-work empirical --simulated [--profile FILE] [--heap MIB] [--events N] [--schedule NAME] [--seed N]
                             [--seconds N] [--samples N] [--release MIB]

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
  --release MIB      memory given back to the system each simulated second (default 0)

Example: craton-work empirical --simulated --heap 16384 --schedule diurnal > samples.csv
";

/// What is asked for.
#[derive(Debug)]
pub enum Request {
    /// The help.
    Help,
    /// On real memory, and the checksum that has to come out.
    Real(real::Config, Option<String>),
    /// In simulated memory.
    Simulated(sim::Config),
}

/// Options that `craton-work` does not know of other workloads.
const OWN: [&str; 9] =
    ["--profile", "--heap", "--events", "--schedule", "--remote", "--simulated", "--seconds", "--samples", "--release"];
/// Options that only one of the two kinds of run has.
const REAL_ONLY: [&str; 3] = ["--threads", "--remote", "--expect"];
const SIMULATED_ONLY: [&str; 3] = ["--seconds", "--samples", "--release"];
/// The largest heap: 16 TiB.
const MAX_HEAP_MIB: u64 = 16 << 20;

fn name_of(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

/// Whether these arguments, those after the workload's name, are for [`parse`].
pub fn wanted(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| OWN.contains(&name_of(argument)) || argument == "--help" || argument == "-h")
}

/// Reads the arguments that follow the workload's name.
pub fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut given: Vec<(&str, &str)> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        match name {
            "--help" | "-h" => return Ok(Request::Help),
            "--percent" => return Err("--percent cannot be given with these options; give --events".to_owned()),
            "--simulated" if inline.is_some() => return Err(format!("{argument:?}: --simulated takes no value")),
            "--simulated" => given.push((name, "")),
            _ if OWN.contains(&name) || REAL_ONLY.contains(&name) || name == "--seed" => {
                let value = inline.or_else(|| rest.next().map(String::as_str));
                given.push((name, value.ok_or_else(|| format!("{name} needs a value"))?));
            }
            _ => return Err(format!("{argument:?} is no option; --help lists them")),
        }
    }
    let given = Given(given);
    let simulated = given.find("--simulated").is_some();
    for (names, why) in [(&SIMULATED_ONLY[..], !simulated), (&REAL_ONLY[..], simulated)] {
        if let Some(name) = names.iter().find(|name| why && given.find(name).is_some()) {
            let only = if simulated { "without" } else { "with" };
            return Err(format!("{name} can be given only {only} --simulated"));
        }
    }
    if simulated { given.simulated() } else { given.real() }
}

/// Options and their values; the last of a name counts.
struct Given<'a>(Vec<(&'a str, &'a str)>);

impl Given<'_> {
    fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str, otherwise: u64, least: u64, most: u64) -> Result<u64, String> {
        let Some(value) = self.find(name) else { return Ok(otherwise) };
        let parsed = value.parse().ok().filter(|n| (least..=most).contains(n));
        parsed.ok_or_else(|| format!("{name} {value:?}: give a whole number from {least} to {most}"))
    }

    fn profile(&self) -> Result<Profile, String> {
        self.find("--profile").map_or_else(|| Ok(Profile::built_in()), |path| Profile::read(Path::new(path)))
    }

    fn schedule(&self) -> Result<Schedule, String> {
        let Some(value) = self.find("--schedule") else { return Ok(Schedule::Steady) };
        let names = Schedule::ALL.map(|(name, _)| name).join(", ");
        Schedule::find(value).ok_or_else(|| format!("--schedule {value:?}: give one of {names}"))
    }

    fn heap_bytes(&self) -> Result<u64, String> {
        Ok(self.number("--heap", HEAP_BYTES >> 20, 1, MAX_HEAP_MIB)? << 20)
    }

    fn events(&self) -> Result<u64, String> {
        self.number("--events", EVENTS, 1, 1 << 50)
    }

    fn real(&self) -> Result<Request, String> {
        let threads = self.number("--threads", 2, 1, 1024)?;
        let remote_percent = self.number("--remote", REMOTE_PERCENT.into(), 0, 100)?;
        if threads == 1 && remote_percent > 0 && self.find("--remote").is_some() {
            return Err(format!("--remote {remote_percent} needs another thread; give --threads 2 or more"));
        }
        let config = real::Config {
            profile: self.profile()?,
            heap_bytes: self.heap_bytes()?,
            events: self.events()?,
            schedule: self.schedule()?,
            threads: threads as usize,
            remote_percent: remote_percent as u32,
            seed: self.number("--seed", crate::work::SEED, 0, u64::MAX)?,
        };
        Ok(Request::Real(config, self.find("--expect").map(str::to_owned)))
    }

    fn simulated(&self) -> Result<Request, String> {
        Ok(Request::Simulated(sim::Config {
            profile: self.profile()?,
            heap_bytes: self.heap_bytes()?,
            schedule: self.schedule()?,
            events: self.events()?,
            seed: self.number("--seed", crate::work::SEED, 0, u64::MAX)?,
            seconds: self
                .find("--seconds")
                .map(|_| self.number("--seconds", 0, 1, 10_000_000))
                .transpose()?
                .map(|s| s as f64),
            samples: self.number("--samples", 100, 1, 1_000_000)? as u32,
            release_bytes_per_s: self.number("--release", 0, 0, MAX_HEAP_MIB)? << 20,
            thp: ThpMode::Always,
            backing: HugeBacking::AUTO,
        }))
    }
}

#[cfg(test)]
mod tests;
