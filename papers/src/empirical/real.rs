//! The process on real memory: each thread plays a [`Process`] with its share, and the next thread
//! carries out remote deaths.
//!
//! The sum does not depend on which thread freed what when. A thread that finds the next one's
//! bounded channel full empties its own first, so a full ring progresses.

use super::object::Object;
use super::process::{self, Event, LeftOut, Process};
use super::profile::Profile;
use super::schedule::Schedule;
use crate::work::crew::{each, ring};
use craton_lab::rng::mix;
use crossbeam_channel::{Receiver, Sender};
use std::fmt;
use std::thread;

#[derive(Clone, Debug)]
pub struct Config {
    pub profile: Profile,
    /// Over all threads.
    pub heap_bytes: u64,
    pub events: u64,
    pub schedule: Schedule,
    /// At least 1.
    pub threads: usize,
    pub remote_percent: u32,
    pub seed: u64,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    pub checksum: u64,
    pub births: u64,
    pub deaths: u64,
    pub remote: u64,
    pub left_out: LeftOut,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { births, deaths, remote, left_out, .. } = self;
        write!(f, "{births} births, {deaths} deaths, {remote} of them on another thread{left_out}")
    }
}

/// 16 KiB.
const EVENTS: usize = 1024;
const CHANNEL: usize = 4096;

type Parcel = (Object, u64);

struct Worker {
    process: Process,
    /// Makes tags of slots.
    key: u64,
    objects: Vec<Option<Object>>,
    own: Receiver<Parcel>,
    next: Sender<Parcel>,
    outcome: Outcome,
}

pub fn run(config: &Config) -> Result<Outcome, String> {
    let threads = config.threads.max(1) as u64;
    let worker = |(number, own, next)| {
        let process = Process::new(&process::Config {
            profile: &config.profile,
            heap_bytes: config.heap_bytes / threads,
            schedule: config.schedule,
            events: config.events / threads,
            remote_percent: if threads > 1 { config.remote_percent } else { 0 },
            seed: config.seed,
            number,
        })?;
        Ok(Worker {
            key: mix(config.seed ^ mix(number)),
            objects: Vec::with_capacity(process.slots_expected()),
            own,
            next,
            outcome: Outcome { left_out: process.left_out, ..Outcome::default() },
            process,
        })
    };
    let workers: Vec<Worker> = ring(threads as usize, CHANNEL).map(worker).collect::<Result<_, String>>()?;
    let outcomes = each(workers, Worker::run);
    Ok(outcomes.into_iter().fold(Outcome::default(), |sum, one| Outcome {
        checksum: sum.checksum.wrapping_add(one.checksum),
        births: sum.births + one.births,
        deaths: sum.deaths + one.deaths,
        remote: sum.remote + one.remote,
        left_out: one.left_out,
    }))
}

impl Worker {
    fn run(mut self) -> Outcome {
        let mut events = vec![Event::Free { slot: 0, size: 0, remote: false }; EVENTS];
        loop {
            let made = self.process.fill(&mut events);
            if made == 0 {
                break;
            }
            events[..made].iter().for_each(|event| self.play(*event));
            self.receive();
        }
        let Self { process, mut objects, own, next, mut outcome, .. } = self;
        drop(next);
        let left = process.live().filter_map(|(slot, size)| Some((objects[slot as usize].take()?, size)));
        for (object, size) in own.iter().chain(left) {
            outcome.checksum = outcome.checksum.wrapping_add(object.end(size));
        }
        outcome
    }

    fn play(&mut self, event: Event) {
        match event {
            Event::Alloc { slot, size } => {
                let object = Object::new(size, mix(self.key.wrapping_add(u64::from(slot))));
                // Slots are first used in ascending order.
                if slot as usize == self.objects.len() {
                    self.objects.push(None);
                }
                self.objects[slot as usize] = Some(object);
                self.outcome.births += 1;
            }
            Event::Free { slot, size, remote } => {
                let Some(object) = self.objects[slot as usize].take() else { return };
                self.outcome.deaths += 1;
                if !remote {
                    self.outcome.checksum = self.outcome.checksum.wrapping_add(object.end(size));
                    return;
                }
                self.outcome.remote += 1;
                let mut parcel = (object, size);
                while let Err(full) = self.next.try_send(parcel) {
                    parcel = full.into_inner();
                    self.receive();
                    thread::yield_now();
                }
            }
        }
    }

    fn receive(&mut self) {
        for (object, size) in self.own.try_iter() {
            self.outcome.checksum = self.outcome.checksum.wrapping_add(object.end(size));
        }
    }
}

#[cfg(test)]
mod tests;
