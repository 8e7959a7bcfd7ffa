//! Quarters and halves of a huge frame, allocated as wholes (LLFree §4.2.1).
//!
//! If all other frames are free, one change of the entry allocates: setters of bits lower the count
//! first (F1). Elsewhere the rows decide between two changes, under *pending*.

use super::{Lower, QUARTER_ROWS};
use crate::child::Child;
use crate::geometry::{Geometry, QUARTERS, ROWS};
use crate::media::Media;
use crate::word::Word;

impl<G: Geometry, M: Media> Lower<'_, G, M> {
    #[inline]
    pub(crate) fn take_quarters(&self, child: usize, order: u32) -> Option<usize> {
        let (word, shift) = (self.word(child), 16 * (child & 1));
        let count = QUARTERS >> (G::HUGE_ORDER - order);
        loop {
            let pair = word.read();
            let entry = Child((pair >> shift) as u16).known();
            let quarters = entry.quarters();
            if entry != Child::whole_but::<G>(quarters) {
                return self.take_partly(child, count);
            }
            let flags = Child::free_quarters(quarters, count)?;
            let new = Child::whole_but::<G>(quarters | flags);
            if word.exchange(pair, pair & !(0xffff << shift) | u32::from(new.0) << shift).is_ok() {
                self.media.changed(word);
                self.persist(word);
                return Some(child * G::HUGE + ((flags.trailing_zeros() as usize * QUARTER_ROWS) << G::ROW_ORDER));
            }
        }
    }

    #[inline(never)]
    fn take_partly(&self, child: usize, count: usize) -> Option<usize> {
        let frames = count * G::HUGE / QUARTERS;
        if self.child(child).free() < frames {
            return None;
        }
        let rows = &self.rows[child * ROWS..][..ROWS];
        rows.chunks_exact(count * QUARTER_ROWS).enumerate().find_map(|(at, rows)| {
            let flags = ((1 << count) - 1) << (at * count);
            if rows[0].read() == 0 { self.take_rows(child, flags, frames) } else { None }
        })
    }

    /// Tests rows first, lest others fail by the count.
    pub(super) fn take_rows(&self, child: usize, flags: u16, frames: usize) -> Option<usize> {
        let first = flags.trailing_zeros() as usize * QUARTER_ROWS;
        let rows = first..first + flags.count_ones() as usize * QUARTER_ROWS;
        if self.child(child).quarters() & flags != 0 {
            return None;
        }
        let are_free = || rows.clone().all(|row| self.row(child, row).read() == 0);
        if !are_free() {
            return None;
        }
        let begin = |entry: Child| (entry.quarters() & flags == 0).then_some(entry)?.begin()?.take(frames);
        self.update(child, begin).ok()?;
        // From here on setters of bits see *pending*; earlier bits are seen below.
        let is_free = are_free();
        let end =
            |entry: Child| Some(if is_free { entry.end().with_quarters(flags) } else { entry.end().give(frames) });
        let _ = self.update(child, end);
        if is_free {
            self.persist(self.word(child));
        } else {
            self.proof.end();
        }
        is_free.then_some(child * G::HUGE + (first << G::ROW_ORDER))
    }
}
