//! A persistent zone, and processes that are killed while they use it (LLFree §5.7, with blocks of
//! all orders).
//!
//! [`work`] is the process: each thread gets and puts ([`worker`]) in a [`World`], a zone and the
//! [`records`] of its threads. [`World::inspect`] compares both ([`mod@audit`]).

pub(crate) mod audit;
mod records;
mod worker;

use super::crew::{Member, crew};
use super::file::ZoneFile;
use audit::{Audit, audit, free_lost};
use clap::builder::{PossibleValuesParser, RangedU64ValueParser as Range, TypedValueParser};
use clap::{ArgAction, Parser};
use craton_base::atomic::Ordering::Relaxed;
use craton_frames::{Cached, Config, Init, Opened, PersistentZone, Standard};
use craton_lab::rng::Rng;
use records::Records;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use worker::Worker;

type FileZone<'a> = PersistentZone<'a, Standard, Cached>;

/// *The keeper*'s part of all frames; at first it has more.
const KEPT: f64 = 0.5;
const FIRST: f64 = 0.7;
/// Threads together hold at most 1/`SHARE` of the frames.
const SHARE: usize = 4;
const STEPS: usize = 1 << 10;

const ZONE: &str = "zone";
const RECORDS: &str = "records";

pub struct World {
    directory: PathBuf,
    zone: ZoneFile,
    records: Records,
}

#[derive(Clone, Debug)]
pub struct Found {
    pub opened: Opened,
    pub took: Duration,
    pub operations: u64,
    pub audit: Audit,
}

fn config(threads: usize) -> Config {
    Config::new(threads)
}

fn open(zone: &ZoneFile, frames: usize, threads: usize) -> Result<(FileZone<'_>, Opened), String> {
    FileZone::open(frames, zone.page(), zone.metadata(), config(threads), Cached).map_err(|why| why.to_string())
}

impl World {
    pub fn new(directory: &Path, frames: usize, threads: usize, seed: u64) -> Result<Self, String> {
        let zone = ZoneFile::create(&directory.join(ZONE), frames, threads)?;
        let records = Records::create(&directory.join(RECORDS), frames, threads)?;
        let new = FileZone::create(frames, zone.page(), zone.metadata(), Init::Free, config(threads), Cached)
            .map_err(|why| format!("a zone of {frames} frames: {why}"))?;
        let mut keeper = Worker::new(&new, &records, threads, 0, frames, Rng::new(seed, u64::MAX));
        keeper.grow((frames as f64 * FIRST) as usize)?;
        keeper.shrink((frames as f64 * KEPT) as usize)?;
        new.close();
        Ok(Self { directory: directory.to_owned(), zone, records })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn begun(&self) -> usize {
        self.records.begun().load(Relaxed) as usize
    }

    /// Of an ended process; frees lost frames. Error: zone and records disagree.
    pub fn inspect(&self, close: bool) -> Result<Found, String> {
        let records = &self.records;
        let start = Instant::now();
        let (zone, opened) = open(&self.zone, records.frames(), records.threads())?;
        let took = start.elapsed();
        let operations = records.operations();
        let audit = audit(&zone, records)?;
        free_lost(&zone, &audit.lost)?;
        records.reset();
        if close {
            zone.close();
        }
        Ok(Found { opened, took, operations, audit })
    }

    pub fn reopen(&self, close: bool) -> Result<(Opened, Duration), String> {
        let start = Instant::now();
        let (zone, opened) = open(&self.zone, self.records.frames(), self.records.threads())?;
        let took = start.elapsed();
        if close {
            zone.close();
        }
        Ok((opened, took))
    }
}

/// Gets and puts page frames of a zone in a file, until it is killed; `craton lab run llfree-crash`
/// starts it.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(
    after_help = "Exit status: 1 when the zone is wrong, 2 for wrong usage, 0 when the process that started it has ended."
)]
pub struct Task {
    /// Where the zone and the record of what threads hold are
    pub directory: PathBuf,
    /// Frames of the zone
    #[arg(value_parser = Range::<usize>::new().range(1..))]
    pub frames: usize,
    /// Threads that work, which are the zone's processors
    #[arg(value_parser = Range::<usize>::new().range(1..))]
    pub threads: usize,
    /// Where the random numbers start
    pub seed: u64,
    /// How the zone must have been left; otherwise this ends with an error
    #[arg(value_name = "LEFT", action = ArgAction::Set, value_parser = PossibleValuesParser::new(["closed", "crashed"]).map(|left| left == "closed"))]
    pub closed: bool,
}

/// While `goes_on`. Error: a wrong zone.
pub fn work(task: &Task, goes_on: impl Fn() -> bool + Sync) -> Result<(), String> {
    let Task { frames, threads, seed, .. } = *task;
    let file = ZoneFile::open(&task.directory.join(ZONE), frames, threads)?;
    let records = Records::open(&task.directory.join(RECORDS), frames, threads)?;
    let (zone, opened) = open(&file, frames, threads)?;
    if (opened == Opened::Clean) != task.closed {
        return Err(format!("the zone was found as {opened:?}, and closed is {}", task.closed));
    }
    let most = frames / SHARE / threads;
    let each = |member: Member<'_>, thread: usize| {
        let processor = (thread + seed as usize) % threads;
        let mut worker = Worker::new(&zone, &records, thread, processor, most, Rng::new(seed, thread as u64));
        member.wait();
        records.begun().fetch_add(1, Relaxed);
        while goes_on() {
            (0..STEPS).try_for_each(|_| worker.step())?;
        }
        Ok(())
    };
    crew(0..threads, each).into_iter().collect()
}

#[cfg(test)]
mod tests;
