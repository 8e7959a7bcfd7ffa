//! The cost of a get when few or no frames are free: the mean ns of a call.

use super::{Frames, GIB, HUGE_ORDER, Job, World, request};
use std::time::Instant;

/// One thread acts for all.
pub const PROCESSORS: usize = 4;
/// The paper's.
const TREE: usize = 1 << 14;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// A single frame, while no frame is free.
    Single,
    /// A huge frame, while no frame is free.
    Huge,
    /// Two frames, while every second is free.
    Pair,
    /// Single frames by processors in turn, in a zone of one tree.
    Shared,
    /// The count of free frames, while half are.
    Count,
}

impl Case {
    pub const ALL: [Self; 5] = [Self::Single, Self::Huge, Self::Pair, Self::Shared, Self::Count];

    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "refused-0",
            Self::Huge => "refused-9",
            Self::Pair => "refused-1",
            Self::Shared => "shared-tree",
            Self::Count => "free-frames",
        }
    }

    /// `gib`: for refusals.
    pub fn world(self, gib: usize) -> World {
        let frames = match self {
            Self::Shared => TREE,
            Self::Count => 2 * gib * GIB,
            _ => gib * GIB,
        };
        World { frames, order: 0, processors: PROCESSORS }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Refusals {
    pub case: Case,
    pub frames: usize,
    pub calls: usize,
}

impl Job for Refusals {
    type Out = Result<f64, String>;

    fn run<F: Frames>(self, frames: &F) -> Self::Out {
        match self.case {
            Case::Shared => self.shared(frames),
            Case::Count => self.count(frames),
            Case::Single => self.refused(frames, 0, false),
            Case::Huge => self.refused(frames, HUGE_ORDER, false),
            Case::Pair => self.refused(frames, 1, true),
        }
    }
}

impl Refusals {
    fn refused<F: Frames>(&self, frames: &F, order: u32, odd: bool) -> Result<f64, String> {
        let part = self.frames / PROCESSORS;
        for at in 0..self.frames {
            let by = request(0, (at / part.max(1)).min(PROCESSORS - 1));
            frames.get(by).ok_or_else(|| format!("frame {at} of {} is missing", self.frames))?;
        }
        if odd && !(1..self.frames).step_by(2).all(|frame| frames.put(frame, request(0, 0))) {
            return Err("a frame could not be freed".to_owned());
        }
        // The first refusal may put in order what later ones rely on.
        let ask = || frames.get(request(order, 0)).map_or(Ok(()), |frame| Err(format!("frame {frame} was not free")));
        ask()?;
        self.time(|_| ask())
    }

    fn shared<F: Frames>(&self, frames: &F) -> Result<f64, String> {
        let mut all = Vec::with_capacity(self.frames);
        let passes = self.calls.div_ceil(self.frames).max(1);
        let mut took = 0.0;
        for _ in 0..passes {
            let start = Instant::now();
            for at in 0..self.frames {
                let frame = frames.get(request(0, at % PROCESSORS));
                all.push(frame.ok_or_else(|| format!("frame {at} of {} is missing", self.frames))?);
            }
            took += start.elapsed().as_nanos() as f64;
            if !all.drain(..).all(|frame| frames.put(frame, request(0, 0))) {
                return Err("a frame could not be freed".to_owned());
            }
        }
        Ok(took / (passes * self.frames) as f64)
    }

    fn count<F: Frames>(&self, frames: &F) -> Result<f64, String> {
        let half = self.frames / 2;
        (0..half).try_for_each(|_| frames.get(request(0, 0)).map(drop)).ok_or("half of the frames are missing")?;
        self.time(|_| match frames.free_frames() {
            free if free == self.frames - half => Ok(()),
            free => Err(format!("{free} frames are free, not {}", self.frames - half)),
        })
    }

    fn time(&self, mut call: impl FnMut(usize) -> Result<(), String>) -> Result<f64, String> {
        let start = Instant::now();
        (0..self.calls).try_for_each(&mut call)?;
        Ok(start.elapsed().as_nanos() as f64 / self.calls.max(1) as f64)
    }
}

#[cfg(test)]
mod tests;
