//! The three benchmarks of frames (LLFree §5.1). A thread's part does not depend on the number of
//! threads.
//!
//! *Bulk*: each thread allocates its part and frees it in the same order. *Random*: it frees as
//! many blocks of any thread, shuffled; only frees count. *Repeat*: one block, while all parts are
//! allocated.

use super::crew::{Member, crew};
use super::{Frames, Job, request};
use craton_lab::rng::Rng;
use std::time::Duration;

const LEAST_OPERATIONS: usize = 1 << 15;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loop {
    Bulk,
    Random,
    Repeat,
}

impl Loop {
    pub const ALL: [Self; 3] = [Self::Bulk, Self::Random, Self::Repeat];

    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Random => "random",
            Self::Repeat => "repeat",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Times {
    pub of: Loop,
    pub ns_per_get: Option<f64>,
    pub ns_per_put: Option<f64>,
    pub ns_per_pair: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Loops<'a> {
    pub of: &'a [Loop],
    pub order: u32,
    pub threads: usize,
    pub blocks: usize,
    pub pairs: usize,
}

impl Job for Loops<'_> {
    type Out = Result<Vec<Times>, String>;

    fn run<F: Frames>(self, frames: &F) -> Self::Out {
        self.of.iter().map(|of| self.one(*of, frames)).collect()
    }
}

fn none(number: usize) -> String {
    format!("processor {number} got no block")
}

fn refused(frame: usize) -> String {
    format!("frame {frame} could not be freed")
}

impl Loops<'_> {
    fn one<F: Frames>(&self, of: Loop, frames: &F) -> Result<Times, String> {
        let mut times = Times { of, ns_per_get: None, ns_per_put: None, ns_per_pair: None };
        if of == Loop::Repeat {
            let parts = self.get_all(frames)?.1;
            times.ns_per_pair = Some(self.repeat(frames)?);
            self.put_all(frames, parts)?;
            return Ok(times);
        }
        let passes = LEAST_OPERATIONS.div_ceil(self.blocks.max(1));
        let (mut get, mut put) = (0.0, 0.0);
        for pass in 0..passes {
            let (got, mut parts) = self.get_all(frames)?;
            if of == Loop::Random {
                parts = self.shuffle(parts, pass);
            }
            get += got / passes as f64;
            put += self.put_all(frames, parts)? / passes as f64;
        }
        times.ns_per_get = (of == Loop::Bulk).then_some(get);
        times.ns_per_put = Some(put);
        Ok(times)
    }

    fn repeat<F: Frames>(&self, frames: &F) -> Result<f64, String> {
        let each = |member: Member<'_>, ()| {
            let request = request(self.order, member.number);
            let (took, done) = member.time(|| {
                for _ in 0..self.pairs {
                    let frame = frames.get(request).ok_or_else(|| none(member.number))?;
                    if !frames.put(frame, request) {
                        return Err(refused(frame));
                    }
                }
                Ok(())
            });
            done.map(|()| took)
        };
        self.mean(crew(vec![(); self.threads], each), self.pairs)
    }

    fn get_all<F: Frames>(&self, frames: &F) -> Result<(f64, Vec<Vec<usize>>), String> {
        // Zeros would be untouched pages.
        let parts: Vec<Vec<usize>> = (0..self.threads).map(|_| vec![usize::MAX; self.blocks]).collect();
        let each = |member: Member<'_>, mut part: Vec<usize>| {
            let request = request(self.order, member.number);
            let (took, done) = member.time(|| {
                part.iter_mut().try_for_each(|place| {
                    *place = frames.get(request)?;
                    Some(())
                })
            });
            done.map(|()| (took, part)).ok_or_else(|| none(member.number))
        };
        let done: Result<Vec<_>, String> = crew(parts, each).into_iter().collect();
        let (took, parts): (Vec<Duration>, _) = done?.into_iter().unzip();
        Ok((self.mean(took.into_iter().map(Ok), self.blocks)?, parts))
    }

    fn put_all<F: Frames>(&self, frames: &F, parts: Vec<Vec<usize>>) -> Result<f64, String> {
        let each = |member: Member<'_>, part: Vec<usize>| {
            let request = request(self.order, member.number);
            let (took, wrong) = member.time(|| part.iter().find(|frame| !frames.put(**frame, request)).copied());
            wrong.map_or(Ok(took), |frame| Err(refused(frame)))
        };
        self.mean(crew(parts, each), self.blocks)
    }

    fn shuffle(&self, parts: Vec<Vec<usize>>, pass: usize) -> Vec<Vec<usize>> {
        let mut all = parts.concat();
        let mut rng = Rng::new(crate::work::SEED, pass as u64);
        for at in (1..all.len()).rev() {
            all.swap(at, rng.below(at as u32 + 1) as usize);
        }
        all.chunks(self.blocks.max(1)).map(<[usize]>::to_vec).collect()
    }

    fn mean(&self, took: impl IntoIterator<Item = Result<Duration, String>>, operations: usize) -> Result<f64, String> {
        let sum = took.into_iter().sum::<Result<Duration, String>>()?;
        Ok(sum.as_nanos() as f64 / (self.threads * operations).max(1) as f64)
    }
}

#[cfg(test)]
mod tests;
