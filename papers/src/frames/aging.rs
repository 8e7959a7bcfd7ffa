//! Huge frames under random frees and allocations (LLFree §5.6).
//!
//! [`State`] counts by blocks, not by the allocator's counters. The cost is that of all frames in
//! as many of the emptiest huge frames as could be free.
//!
//! *Plain* is the paper's: single frames, nine tenths full, a tenth replaced in each turn. *Mixed*:
//! orders 0 to 4, half as many of each as of the one below; a turn replaces a hundredth of
//! long-lived blocks, and a quarter of the others.

use super::crew::{Member, crew};
use super::{Frames, HUGE, Job};
use craton_frames::{Kind, Request};
use craton_lab::rng::Rng;
use std::time::Duration;

const FULL_TENTHS: usize = 9;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Course {
    Plain,
    Mixed,
}

impl Course {
    pub const ALL: [Self; 2] = [Self::Plain, Self::Mixed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Mixed => "mixed",
        }
    }

    fn order(self, rng: &mut Rng) -> u32 {
        match self {
            Self::Plain => 0,
            Self::Mixed => (rng.next() | 1 << 4).trailing_zeros(),
        }
    }

    /// Of which a turn replaces one.
    fn one_of(self, stays: bool) -> usize {
        match (self, stays) {
            (Self::Plain, _) => 10,
            (Self::Mixed, false) => 4,
            (Self::Mixed, true) => 100,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    frame: u32,
    order: u8,
    stays: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct State {
    pub turn: usize,
    pub free_huge: usize,
    /// As many could be free.
    pub possible_huge: usize,
    /// To be moved until they are.
    pub cost_frames: usize,
    pub pinned_huge: usize,
    pub ns_per_put: f64,
    pub ns_per_get: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Aging {
    pub course: Course,
    pub frames: usize,
    pub threads: usize,
    pub turns: usize,
    /// The allocator learns which blocks stay.
    pub tells: bool,
}

impl Job for Aging {
    type Out = Result<Vec<State>, String>;

    fn run<F: Frames>(self, frames: &F) -> Self::Out {
        let mut rng = Rng::new(crate::work::SEED, 0);
        let mut blocks: [Vec<Block>; 2] = self.begin(frames, &mut rng)?;
        let mut states = vec![self.state(&blocks)];
        for turn in 1..=self.turns {
            let mut gone = Vec::new();
            for (stays, of) in [true, false].into_iter().zip(&mut blocks) {
                let some = of.len() / self.course.one_of(stays);
                gone.extend(remove_random(of, some, &mut rng));
            }
            shuffle(&mut gone, &mut rng);
            let ns_per_put = self.put(frames, &gone)?;
            let ns_per_get = self.get(frames, &mut gone)?;
            (0..self.threads).for_each(|processor| frames.drain(processor));
            gone.into_iter().for_each(|block| blocks[usize::from(!block.stays)].push(block));
            states.push(State { turn, ns_per_put, ns_per_get, ..self.state(&blocks) });
        }
        Ok(states)
    }
}

impl Aging {
    fn begin<F: Frames>(&self, frames: &F, rng: &mut Rng) -> Result<[Vec<Block>; 2], String> {
        let (mut all, mut used) = (Vec::new(), 0);
        while used < self.frames / 10 * FULL_TENTHS {
            let stays = self.course == Course::Mixed && rng.one_in(2);
            let order = self.course.order(rng);
            all.push(Block { frame: 0, order: order as u8, stays });
            used += 1 << order;
        }
        self.get(frames, &mut all)?;
        shuffle(&mut all, rng);
        let gone = all.split_off(all.len() / 2);
        self.put(frames, &gone)?;
        (0..self.threads).for_each(|processor| frames.drain(processor));
        let (stay, others) = all.into_iter().partition(|block| block.stays);
        Ok([stay, others])
    }

    fn request(&self, block: &Block, processor: usize) -> Request {
        let kind = if block.stays && self.tells { Kind::Unmovable } else { Kind::Movable };
        Request { order: block.order.into(), kind, processor }
    }

    fn part(&self, blocks: usize) -> usize {
        blocks.div_ceil(self.threads).max(1)
    }

    fn get<F: Frames>(&self, frames: &F, blocks: &mut [Block]) -> Result<f64, String> {
        let (part, count) = (self.part(blocks.len()), blocks.len());
        let each = |member: Member<'_>, part: &mut [Block]| {
            let (took, missing) = member.time(|| {
                part.iter_mut().find_map(|block| match frames.get(self.request(block, member.number)) {
                    Some(frame) => {
                        block.frame = frame as u32;
                        None
                    }
                    None => Some(block.order),
                })
            });
            match missing {
                Some(order) => Err(format!("no block of order {order} could be had")),
                None => Ok(took),
            }
        };
        mean(crew(blocks.chunks_mut(part), each), count)
    }

    fn put<F: Frames>(&self, frames: &F, blocks: &[Block]) -> Result<f64, String> {
        let each = |member: Member<'_>, part: &[Block]| {
            let wrong = |block: &&Block| !frames.put(block.frame as usize, self.request(block, member.number));
            match member.time(|| part.iter().find(wrong)) {
                (_, Some(block)) => Err(format!("frame {} of order {} could not be freed", block.frame, block.order)),
                (took, None) => Ok(took),
            }
        };
        mean(crew(blocks.chunks(self.part(blocks.len())), each), blocks.len())
    }

    fn state(&self, blocks: &[Vec<Block>; 2]) -> State {
        let mut used = vec![0u16; self.frames / HUGE];
        let mut pinned = vec![false; used.len()];
        let mut allocated = 0;
        for block in blocks.iter().flatten() {
            allocated += 1 << block.order;
            // Frames behind the last whole one have no huge frame.
            if let Some(used) = used.get_mut(block.frame as usize / HUGE) {
                *used += 1 << block.order;
                pinned[block.frame as usize / HUGE] |= block.stays;
            }
        }
        used.sort_unstable();
        let possible_huge = (self.frames - allocated) / HUGE;
        State {
            free_huge: used.iter().filter(|used| **used == 0).count(),
            possible_huge,
            cost_frames: used.iter().take(possible_huge).map(|used| usize::from(*used)).sum(),
            pinned_huge: pinned.iter().filter(|is| **is).count(),
            ..State::default()
        }
    }
}

/// Each thread has the same number of operations, or one less.
fn mean(took: Vec<Result<Duration, String>>, operations: usize) -> Result<f64, String> {
    let sum = took.into_iter().sum::<Result<Duration, String>>()?;
    Ok(sum.as_nanos() as f64 / operations.max(1) as f64)
}

fn remove_random(of: &mut Vec<Block>, some: usize, rng: &mut Rng) -> Vec<Block> {
    let left = of.len() - some;
    for at in (left..of.len()).rev() {
        of.swap(at, rng.below(at as u32 + 1) as usize);
    }
    of.split_off(left)
}

fn shuffle(of: &mut Vec<Block>, rng: &mut Rng) {
    let mut all = remove_random(of, of.len(), rng);
    of.append(&mut all);
}

#[cfg(test)]
mod tests;
