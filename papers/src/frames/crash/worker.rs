//! A thread that uses a persistent zone, and records what it holds.

use super::records::{Doing, Records, WORD_FRAMES};
use crate::frames::{HUGE, HUGE_ORDER, MAX_ORDER, request};
use craton_base::atomic::Ordering::Relaxed;
use craton_frames::{Error, Media, Standard, Zone};
use craton_lab::rng::Rng;

/// One block in this many is freed in parts.
const PART_OF: u32 = 4;
/// And first joined with its neighbour.
const JOINED_OF: u32 = 8;
const WORD_ORDER: u32 = WORD_FRAMES.trailing_zeros();

/// A thread, or *the keeper*.
pub struct Worker<'a, M> {
    zone: &'a Zone<'a, Standard, M>,
    records: &'a Records,
    holder: usize,
    processor: usize,
    rng: Rng,
    /// First frame and order.
    blocks: Vec<(usize, u32)>,
    held: usize,
    most: usize,
}

impl<'a, M: Media> Worker<'a, M> {
    pub fn new(
        zone: &'a Zone<'a, Standard, M>,
        records: &'a Records,
        holder: usize,
        processor: usize,
        most: usize,
        rng: Rng,
    ) -> Self {
        let blocks = blocks(records, holder);
        let held = blocks.iter().map(|(_, order)| 1 << order).sum();
        Self { zone, records, holder, processor, rng, blocks, held, most }
    }

    pub fn step(&mut self) -> Result<(), String> {
        let is_full = self.held >= self.most;
        if self.blocks.is_empty() || !is_full && self.rng.one_in(2) { self.get() } else { self.put() }?;
        if self.holder < self.records.threads() {
            self.records.count(self.holder);
        }
        Ok(())
    }

    /// Or until none are left.
    pub fn grow(&mut self, frames: usize) -> Result<(), String> {
        let mut refused = 0;
        while self.held < frames && refused < 100 {
            let before = self.held;
            self.get()?;
            refused += u32::from(self.held == before);
        }
        Ok(())
    }

    pub fn shrink(&mut self, frames: usize) -> Result<(), String> {
        while self.held > frames {
            self.put()?;
        }
        Ok(())
    }

    /// *The keeper* has no record of acts.
    fn doing(&self, doing: Doing) {
        if self.holder < self.records.threads() {
            self.records.set_doing(self.holder, doing);
        }
    }

    fn wrong(&self, what: &str, frame: usize, order: u32, why: &str) -> String {
        format!("holder {}: {what} of frame {frame}, order {order}: {why}", self.holder)
    }

    fn have(&mut self, frame: usize, order: u32) -> Result<(), String> {
        if self.records.holds_any(self.holder, frame, order) {
            return Err(self.wrong("get", frame, order, "it was given what it has already"));
        }
        self.records.set(self.holder, frame, order, true);
        self.held += 1 << order;
        Ok(())
    }

    fn get(&mut self) -> Result<(), String> {
        let order = order(&mut self.rng);
        self.doing(Doing::Getting(order));
        match self.zone.get(request(order, self.processor)) {
            Ok(frame) => {
                self.doing(Doing::Got(frame, order));
                self.have(frame, order)?;
                self.blocks.push((frame, order));
            }
            Err(Error::NoMemory) => {}
            Err(why) => return Err(self.wrong("get", 0, order, &why.to_string())),
        }
        self.doing(Doing::Nothing);
        Ok(())
    }

    fn put(&mut self) -> Result<(), String> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.blocks.len() as u32) as usize;
        let (frame, order) = self.blocks.swap_remove(at);
        if order > 0 && self.rng.one_in(PART_OF) {
            self.put_part(frame, order)
        } else if order < MAX_ORDER && self.rng.one_in(JOINED_OF) {
            self.join(frame, order)
        } else {
            self.put_at(frame, order)
        }
    }

    fn put_at(&mut self, frame: usize, order: u32) -> Result<(), String> {
        self.doing(Doing::Place(frame, order));
        self.records.set(self.holder, frame, order, false);
        self.held -= 1 << order;
        self.zone
            .put(frame, request(order, self.processor))
            .map_err(|why| self.wrong("put", frame, order, &why.to_string()))?;
        self.doing(Doing::Nothing);
        Ok(())
    }

    fn put_part(&mut self, mut frame: usize, mut order: u32) -> Result<(), String> {
        let part = self.rng.below(order);
        while order > part {
            order -= 1;
            let (keeps, other) = (frame + (1 << order), frame);
            let (keeps, goes) = if self.rng.one_in(2) { (keeps, other) } else { (other, keeps) };
            self.blocks.push((keeps, order));
            frame = goes;
        }
        self.put_at(frame, order)
    }

    /// Allocates the frames beside, if free.
    fn join(&mut self, frame: usize, order: u32) -> Result<(), String> {
        let beside = frame ^ 1 << order;
        self.doing(Doing::Place(beside, order));
        match self.zone.get_at(beside, order) {
            Ok(()) => {
                self.have(beside, order)?;
                self.blocks.push((frame & !(1 << order), order + 1));
            }
            // The zone may end there.
            Err(Error::InUse { .. } | Error::OutOfRange { .. }) => self.blocks.push((frame, order)),
            Err(why) => return Err(self.wrong("get", beside, order, &why.to_string())),
        }
        self.doing(Doing::Nothing);
        Ok(())
    }
}

/// Half are single frames; huge ones may be rare after a long search.
fn order(rng: &mut Rng) -> u32 {
    match rng.below(64) {
        0..32 => 0,
        32..63 => 1 + rng.below(HUGE_ORDER - 1),
        _ => HUGE_ORDER + rng.below(MAX_ORDER - HUGE_ORDER + 1),
    }
}

fn blocks(records: &Records, holder: usize) -> Vec<(usize, u32)> {
    let mut blocks = Vec::new();
    for (huge, words) in records.map(holder).chunks(HUGE / WORD_FRAMES).enumerate() {
        let bits = || words.iter().map(|word| word.load(Relaxed));
        if bits().all(|bits| bits == 0) {
            continue;
        }
        if words.len() == HUGE / WORD_FRAMES && bits().all(|bits| bits == u64::MAX) {
            blocks.push((huge * HUGE, HUGE_ORDER));
            continue;
        }
        for (at, bits) in bits().enumerate() {
            let first = huge * HUGE + at * WORD_FRAMES;
            if bits == u64::MAX {
                blocks.push((first, WORD_ORDER));
            } else {
                let frames = (0..WORD_FRAMES).filter(|bit| bits >> bit & 1 == 1);
                blocks.extend(frames.map(|bit| (first + bit, 0)));
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests;
