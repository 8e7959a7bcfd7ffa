//! Many frames at once: one locked operation allocates frames of half a row, or frees two
//! neighbours.

use crate::config::Request;
use crate::error::Error;
use crate::geometry::Geometry;
use crate::local::Local;
use crate::media::Media;
use crate::word::Word;
use crate::zone::Zone;

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    /// Returns how many. Ignores the request's order.
    pub fn get_batch(&self, frames: &mut [usize], request: Request) -> Result<usize, Error> {
        let request = Request { order: 0, ..request };
        let local = self.local(request.processor, request.kind)?;
        let mut n = 0;
        while n < frames.len() {
            if self.config.claims {
                n += self.take_claimed(local, &mut frames[n..]);
            }
            if n == frames.len() {
                break;
            }
            match self.get(request) {
                Ok(frame) => frames[n] = frame,
                Err(Error::NoMemory) => break,
                Err(error) => return Err(error),
            }
            n += 1;
        }
        Ok(n)
    }

    fn take_claimed(&self, local: &Local, frames: &mut [usize]) -> usize {
        let Some(half) = (local.gets.read() as usize).checked_sub(1) else { return 0 };
        let slot = self.lower.slots.of(half);
        let claim = slot.read();
        let (mut rest, mut n) = (claim, 0);
        while claim.is_of(half) && n < frames.len() && rest.mask() != 0 {
            (frames[n], rest) = rest.pop::<G>();
            n += 1;
        }
        if n > 0 && slot.exchange(claim, rest) { n } else { 0 }
    }

    /// Error: how many were freed before the first failure.
    pub fn put_batch(&self, frames: &[usize], request: Request) -> Result<(), (usize, Error)> {
        let request = Request { order: 0, ..request };
        self.local(request.processor, request.kind).map_err(|error| (0, error))?;
        let mut done = 0;
        while done < frames.len() {
            let n = self.put_run(&frames[done..]);
            if n == 0 {
                self.put(frames[done], request).map_err(|error| (done, error))?;
            }
            done += n.max(1);
        }
        Ok(())
    }

    /// Returns how many of the first share a row.
    fn put_run(&self, frames: &[usize]) -> usize {
        let first = frames[0];
        if first >= self.frames() || !self.lower.child(first / G::HUGE).is_plain() {
            return 0;
        }
        let (mut mask, mut n) = (0u64, 0);
        for frame in frames.iter().take_while(|frame| **frame >> G::ROW_ORDER == first >> G::ROW_ORDER) {
            let bit = 1 << (frame & ((1 << G::ROW_ORDER) - 1));
            if mask & bit != 0 {
                break;
            }
            mask |= bit;
            n += 1;
        }
        match self.lower.put_bits(first >> G::ROW_ORDER, mask) {
            Ok(before) => {
                self.note(first / G::HUGE, before, n);
                self.lower.proof.end();
                n
            }
            Err(_) => 0,
        }
    }

    /// Allocates frames in use before the zone. [`Error::InUse`] names a part; then nothing has
    /// changed.
    pub fn reserve(&self, frame: usize, frames: usize) -> Result<(), Error> {
        let end = self.end_of(frame, frames)?;
        let mut at = frame;
        while at < end {
            let order = Self::largest_order(at, end);
            if let Err(error) = self.get_at(at, order) {
                self.unreserve(frame, at - frame)?;
                return Err(error);
            }
            at += 1 << order;
        }
        Ok(())
    }

    pub fn unreserve(&self, frame: usize, frames: usize) -> Result<(), Error> {
        let end = self.end_of(frame, frames)?;
        if let Some(free) = (frame..end).find(|frame| !self.lower.is_allocated(*frame)) {
            return Err(Error::NotAllocated { frame: free, order: 0 });
        }
        let mut at = frame;
        while at < end {
            let order = Self::largest_order(at, end);
            self.put_group(at, order)?;
            at += 1 << order;
        }
        Ok(())
    }

    fn end_of(&self, frame: usize, frames: usize) -> Result<usize, Error> {
        let all = self.frames();
        frame.checked_add(frames).filter(|end| *end <= all).ok_or(Error::OutOfRange { frame, frames: all })
    }

    fn largest_order(at: usize, end: usize) -> u32 {
        let by_place = if at == 0 { G::MAX_ORDER } else { at.trailing_zeros().min(G::MAX_ORDER) };
        by_place.min((end - at).ilog2())
    }
}
