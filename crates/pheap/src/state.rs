//! The superblock, which never changes, and the state lines (NVAlloc §4.4).
//!
//! **Invariants.** *NS1* One of the two state lines is whole; the one with the higher sequence
//! counts.

use crate::config::{Config, Model};
use crate::error::Error;
use crate::layout::{LANES, MAGIC, Places, STATES, SUPER, UNIT, VERSION, check_of};
use crate::slab::read_line;
use craton_base::{LINE_BYTES, Line, Medium};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Super {
    pub model: Model,
    pub stripes: u32,
    pub uuid: u128,
    pub lanes: u32,
    pub half: u32,
    pub created: u64,
    pub most: u64,
}

impl Super {
    pub fn of(config: &Config) -> Self {
        let Config { model, lanes, half, stripes, uuid, created, most } = *config;
        Self { model, stripes, uuid, lanes, half, created, most }
    }

    pub fn places(&self) -> Places {
        self.config().places()
    }

    fn config(&self) -> Config {
        let Self { model, stripes, uuid, lanes, half, created, most } = *self;
        Config { model, lanes, half, stripes, uuid, created, most }
    }

    /// Of check words.
    pub fn seed(&self) -> u64 {
        self.uuid as u64 ^ (self.uuid >> 64) as u64
    }

    pub fn write<M: Medium>(&self, medium: &M) {
        let kind = u64::from(VERSION) | self.model.number() << 32 | u64::from(self.stripes) << 40;
        let size = u64::from(self.lanes) | u64::from(self.half) << 32;
        let uuid = (self.uuid as u64, (self.uuid >> 64) as u64);
        write(medium, SUPER, [MAGIC, kind, uuid.0, uuid.1, size, self.created, self.most, 0], 0);
    }

    pub fn read<M: Medium>(medium: &M) -> Result<Self, Error> {
        if medium.len() < LANES {
            return Err(Error::Truncated { len: medium.len(), needed: LANES });
        }
        let line = read_line(medium, SUPER);
        if line[0] != MAGIC {
            return Err(Error::NotAHeap { found: line[0] });
        }
        let version = line[1] as u32;
        if version != VERSION {
            return Err(Error::Version { found: version, known: VERSION });
        }
        let damaged = Err(Error::Damaged { what: "superblock", at: SUPER });
        let Some(model) = Model::of(line[1] >> 32 & 0xff) else { return damaged };
        let found = Self {
            model,
            stripes: (line[1] >> 40 & 0xff) as u32,
            uuid: u128::from(line[2]) | u128::from(line[3]) << 64,
            lanes: line[4] as u32,
            half: (line[4] >> 32) as u32,
            created: line[5],
            most: line[6],
        };
        if line[7] != check_of(&line, 0) || found.config().check(1 << 47).is_err() {
            return damaged;
        }
        let needed = found.places().data() + UNIT;
        match medium.len() {
            len if len < needed => Err(Error::Truncated { len, needed }),
            _ => Ok(found),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Running = 1,
    Closed = 2,
    Recovering = 3,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Homes of lines up to this epoch are durable.
    pub settled: u64,
    /// How often the heap was opened.
    pub generation: u64,
    pub phase: Phase,
    pub sequence: u64,
}

impl State {
    /// Durably replaces the older line.
    pub fn write<M: Medium>(&mut self, medium: &M, seed: u64) {
        self.sequence += 1;
        let at = STATES[(self.sequence & 1) as usize];
        let line = [self.settled, self.generation, self.phase as u64, self.sequence, 0, 0, 0, 0];
        write(medium, at, line, seed ^ at);
    }

    pub fn read<M: Medium>(medium: &M, seed: u64) -> Result<Self, Error> {
        let read = |at: u64| {
            let line = read_line(medium, at);
            let phase = [Phase::Running, Phase::Closed, Phase::Recovering].into_iter().find(|p| *p as u64 == line[2]);
            let found = Self { settled: line[0], generation: line[1], phase: phase?, sequence: line[3] };
            (line[7] == check_of(&line, seed ^ at)).then_some(found)
        };
        let states = STATES.map(read);
        states.into_iter().flatten().max_by_key(|s| s.sequence).ok_or(Error::Damaged { what: "state", at: STATES[0] })
    }
}

fn write<M: Medium>(medium: &M, at: u64, mut line: Line, seed: u64) {
    line[7] = check_of(&line, seed);
    medium.store_line(at, &line);
    medium.fence();
}

/// The next fence makes it durable.
pub fn clear<M: Medium>(medium: &M, from: u64, to: u64) {
    for at in (from..to).step_by(LINE_BYTES as usize) {
        if read_line(medium, at) != [0; 8] {
            medium.store_line(at, &[0; 8]);
        }
    }
}
