//! Frames within a row (LLFree §3.2.1): the row's bits decide.
//!
//! An allocation chooses free bits, lowers the count, and sets the bits. Then it reads the entry: a
//! thread that takes the quarter as a whole has seen these bits, or raised a flag before.

use super::{Lower, QUARTER_ROWS, Refused};
use crate::child::Child;
use crate::field;
use crate::geometry::{Geometry, ROWS};
use crate::media::Media;
use crate::word::Word;
use craton_base::atomic::{self, AtomicU64};

impl<G: Geometry, M: Media> Lower<'_, G, M> {
    #[inline]
    pub(crate) fn take_bits(&self, child: usize, order: u32) -> Option<usize> {
        match order {
            0 => self.take_group::<0>(child),
            1 => self.take_group::<1>(child),
            2 => self.take_group::<2>(child),
            3 => self.take_group::<3>(child),
            4 => self.take_group::<4>(child),
            5 => self.take_group::<5>(child),
            _ => self.take_group::<6>(child),
        }
    }

    #[inline(never)]
    fn take_group<const ORDER: u32>(&self, child: usize) -> Option<usize> {
        let rows = &self.rows.as_chunks::<ROWS>().0[child];
        let (word, shift) = (self.word(child), 16 * (child & 1));
        let pair = word.read();
        let entry = Child((pair >> shift) as u16);
        if entry.free() < 1 << ORDER {
            return None;
        }
        if !entry.is_plain() {
            return self.take_slowly(child, ORDER);
        }
        let has_group = |(row, word): (usize, &AtomicU64)| {
            let bits = word.read();
            let groups = if bits == G::FULL_ROW { 0 } else { field::groups(!bits & G::FULL_ROW, ORDER) };
            if groups == 0 { None } else { Some((row, bits, groups.trailing_zeros())) }
        };
        let (row, bits, at) = rows.iter().enumerate().find_map(has_group)?;
        if word.exchange(pair, pair - (1 << ORDER << shift)).is_err() {
            return self.take_slowly(child, ORDER);
        }
        self.media.changed(word);
        let (word, mask) = (&rows[row], field::mask(at, ORDER));
        if word.exchange(bits, bits | mask).is_err() {
            return self.take_another(child, row, ORDER);
        }
        self.media.changed(word);
        if !self.child(child).is_plain() && !self.keep_bits(child, row, mask, !self.slots.is_on()) {
            return self.take_again(child, ORDER);
        }
        self.persist(word);
        Some(child * G::HUGE + (row << G::ROW_ORDER) + at as usize)
    }

    #[inline(never)]
    fn take_slowly(&self, child: usize, order: u32) -> Option<usize> {
        let entry = self.child(child);
        let has_group = |row: &usize| {
            let free = !self.row(child, *row).read() & G::FULL_ROW;
            free != 0 && field::groups(free, order) != 0
        };
        let row = Self::open_rows(entry).find(has_group)?;
        self.update(child, |entry| entry.take(1 << order)).ok()?;
        self.take_another(child, row, order)
    }

    #[inline(never)]
    fn take_another(&self, child: usize, row: usize, order: u32) -> Option<usize> {
        let choose = |free| field::first_group(free, order).map(|at| field::mask(at, order));
        match self.set_bits(child, row, !self.slots.is_on(), choose) {
            Some(mask) => Some(child * G::HUGE + (row << G::ROW_ORDER) + mask.trailing_zeros() as usize),
            None => self.take_again(child, order),
        }
    }

    #[inline(never)]
    fn take_again(&self, child: usize, order: u32) -> Option<usize> {
        self.undo(child, 1 << order);
        if self.child(child).is_pending() { None } else { self.take_slowly(child, order) }
    }

    /// Not if the row's quarter is taken as a whole. With claims, another may have claimed these
    /// bits: they yield to a whole, not to an attempt.
    pub(super) fn holds(&self, child: usize, row: usize) -> bool {
        loop {
            let entry = self.child(child);
            let is_whole = entry.has_quarter(row / QUARTER_ROWS);
            if is_whole || !entry.is_pending() || !self.slots.is_on() {
                return !is_whole && !entry.is_pending();
            }
            atomic::spin();
        }
    }

    /// `is_alone`: no CPU can claim their halves.
    fn set_bits(&self, child: usize, row: usize, is_alone: bool, choose: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let word = self.row(child, row);
        let mut bits = word.read();
        loop {
            let mask = choose(!bits & G::FULL_ROW)?;
            match word.exchange(bits, bits | mask) {
                Ok(_) => {
                    self.media.changed(word);
                    return self.keep_bits(child, row, mask, is_alone).then_some(mask);
                }
                Err(now) => bits = now,
            }
        }
    }

    fn keep_bits(&self, child: usize, row: usize, mask: u64, is_alone: bool) -> bool {
        let word = self.row(child, row);
        loop {
            let holds = self.holds(child, row);
            if !holds && !is_alone {
                // A CPU about to claim the half gives up for the whole too.
                if let Err(Refused::Blocked(_)) = self.clear_bits(child * ROWS + row, mask) {
                    atomic::spin();
                    continue;
                }
            } else if !holds {
                word.and(!mask);
                self.media.changed(word);
            }
            // Also cleared bits: a cache may have made them durable.
            self.persist(word);
            return holds;
        }
    }

    pub(super) fn open_rows(entry: Child) -> impl Iterator<Item = usize> {
        (0..ROWS).filter(move |row| !entry.has_quarter(row / QUARTER_ROWS))
    }

    pub(super) fn take_mask(&self, frame: usize, order: u32, is_alone: bool) -> Option<()> {
        let (child, row) = (frame / G::HUGE, (frame % G::HUGE) >> G::ROW_ORDER);
        let (mask, frames) = (Self::bits(frame, order), 1 << order);
        if self.row(child, row).read() & mask != 0 {
            return None;
        }
        let entry = self.update(child, |entry| entry.take(frames)).ok()?;
        let is_open = !entry.has_quarter(row / QUARTER_ROWS);
        let choose = |free| (free & mask == mask).then_some(mask);
        let taken = if is_open { self.set_bits(child, row, is_alone, choose) } else { None };
        if taken.is_none() {
            self.undo(child, frames);
        }
        taken.map(|_| ())
    }
}
