//! The lower level: which frames are allocated (LLFree §3.2.1 and §4.2.1).
//!
//! **What.** Each huge frame has a bit field of eight rows, and an entry ([`Child`]). One atomic
//! change of one word decides: a row's bits for orders within a row, an entry's
//! [quarters](crate::child) for larger ones. Counters follow.
//! **Invariants.** *F1* An entry's count is at most the frames free in the rows of quarters not
//! allocated as wholes, and equal when nothing is under way. *F2* The rows of a quarter allocated
//! as a whole are zero, but for bits that their setter is about to clear. *F3* Bits of frames
//! beyond the zone's end are set.
//! **Threads.** An allocation decrements the entry's counter first, so that a free bit exists.
//! Taking a quarter has three steps: set *pending*, see its rows zero, replace *pending* by the
//! flag. After setting a bit, an allocation reads the entry again and clears its bit if either flag
//! is up. Sequential consistency makes one of the two see the other.
//! **Cost.** Two cache lines and locked operations for frames within a row, one for a huge frame.

mod claims;
mod recover;
mod split;

use crate::child::Child;
use crate::claim::Claim;
use crate::config::Init;
use crate::field;
use crate::geometry::{Geometry, QUARTERS, ROWS};
use crate::media::{Media, Volatile};
use crate::slot::Slots;
use crate::word::Word;
use core::marker::PhantomData;
use craton_base::atomic;
use craton_base::atomic::{AtomicU32, AtomicU64};

/// An entry's count of free frames.
const COUNTS: u32 = 0x3ff;
const QUARTER_ROWS: usize = ROWS / QUARTERS;

pub(crate) struct Lower<'a, G, M = Volatile> {
    pub(crate) rows: &'a [AtomicU64],
    /// Two entries a word, the first in the lower half.
    pub(crate) children: &'a [AtomicU32],
    pub(crate) slots: Slots<'a>,
    frames: usize,
    media: M,
    geometry: PhantomData<G>,
}

/// Why frames were not freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Some of them are free.
    Free,
    /// A claim in this half's slot is in the way.
    Blocked(usize),
    /// They are not allocated as one whole.
    Pieces,
    /// Another thread has just split their quarter: again.
    Again,
}

impl<'a, G: Geometry, M: Media> Lower<'a, G, M> {
    pub(crate) fn new(
        rows: &'a [AtomicU64],
        children: &'a [AtomicU32],
        frames: usize,
        media: M,
        slots: Slots<'a>,
    ) -> Self {
        Self { rows, children, slots, frames, media, geometry: PhantomData }
    }

    /// Makes a word durable as it is now.
    #[inline(always)]
    fn persist<W>(&self, word: &W) {
        self.media.flush(word);
        self.media.fence();
    }

    #[inline(always)]
    fn word(&self, child: usize) -> &AtomicU32 {
        &self.children[child / 2]
    }

    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    pub(crate) fn huge_frames(&self) -> usize {
        self.frames.div_ceil(G::HUGE)
    }

    pub(crate) fn begin(&self, init: Init) {
        let free = init == Init::Free;
        for child in 0..2 * self.children.len() {
            let there = self.frames.saturating_sub(child * G::HUGE).min(G::HUGE);
            let (rows, entry) = if free {
                (0, Child::with_free(there as u16))
            } else if there == G::HUGE {
                (0, Child::ALLOCATED)
            } else {
                (G::FULL_ROW, Child::with_free(0))
            };
            // Their contents do not matter until they come online.
            let are_idle = init == Init::Offline && there == G::HUGE && !M::PERSISTS;
            for row in 0..if are_idle { 0 } else { ROWS } {
                let at = child * ROWS + row;
                if at < self.rows.len() {
                    let frames = there.saturating_sub(row << G::ROW_ORDER).min(1 << G::ROW_ORDER);
                    let beyond = if frames == 1 << G::ROW_ORDER { 0 } else { G::FULL_ROW & (u64::MAX << frames) };
                    self.rows[at].begin(rows | beyond);
                    self.media.changed(&self.rows[at]);
                }
            }
            self.set_child(child, entry);
        }
    }

    /// Prepares the rows of a huge frame that comes online as allocated (*F2*).
    pub(crate) fn begin_rows(&self, child: usize) {
        for row in &self.rows[child * ROWS..(child + 1) * ROWS] {
            if row.read() != 0 {
                row.write(0);
                self.media.changed(row);
            }
        }
    }

    /// Sets an unshared entry.
    fn set_child(&self, child: usize, entry: Child) {
        let shift = 16 * (child & 1);
        let word = self.word(child);
        let others = word.read() & !(0xffff << shift);
        word.begin(others | u32::from(entry.0) << shift);
        self.media.changed(word);
    }

    #[inline]
    pub(crate) fn child(&self, child: usize) -> Child {
        Child((self.word(child).read() >> (16 * (child & 1))) as u16)
    }

    /// Changes an entry; returns the old one, or, if `change` refuses, the current one.
    #[inline]
    pub(crate) fn update(&self, child: usize, change: impl Fn(Child) -> Option<Child>) -> Result<Child, Child> {
        let (word, shift) = (self.word(child), 16 * (child & 1));
        let mut pair = word.read();
        loop {
            let entry = Child((pair >> shift) as u16);
            let Some(new) = change(entry) else { return Err(entry) };
            let changed = pair & !(0xffff << shift) | u32::from(new.0) << shift;
            match word.exchange(pair, changed) {
                Ok(_) => {
                    self.media.changed(word);
                    return Ok(entry);
                }
                Err(now) => pair = now,
            }
        }
    }

    #[inline]
    fn give(&self, child: usize, frames: usize) -> Child {
        let shift = 16 * (child & 1);
        let before = self.word(child).add((frames as u32) << shift);
        self.media.changed(self.word(child));
        Child((before >> shift) as u16)
    }

    fn row(&self, child: usize, row: usize) -> &AtomicU64 {
        &self.rows[child * ROWS + row]
    }

    /// Whether bits just set in a row hold: not if the row's quarter is taken as a whole. With
    /// claims, the half may be claimed with these bits meanwhile: so they are given up for a whole
    /// only, not for an attempt.
    fn holds(&self, child: usize, row: usize) -> bool {
        loop {
            let entry = self.child(child);
            let is_whole = entry.has_quarter(row / QUARTER_ROWS);
            if is_whole || !entry.is_pending() || !self.slots.is_on() {
                return !is_whole && !entry.is_pending();
            }
            atomic::spin();
        }
    }

    /// Sets bits that `choose` picks of a row's free ones; `None` if none or the quarter is taken.
    /// `is_alone`: no CPU can claim their halves meanwhile.
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

    /// Clears bits just set again, if they do not hold; returns whether they do.
    fn keep_bits(&self, child: usize, row: usize, mask: u64, is_alone: bool) -> bool {
        let word = self.row(child, row);
        loop {
            let holds = self.holds(child, row);
            if !holds && !is_alone {
                // A CPU may be about to claim the half, and gives up for the whole as well.
                if let Err(Refused::Blocked(_)) = self.clear_bits(child * ROWS + row, mask) {
                    atomic::spin();
                    continue;
                }
            } else if !holds {
                word.and(!mask);
                self.media.changed(word);
            }
            // Also bits that were cleared again: a cache may have made them durable.
            self.persist(word);
            return holds;
        }
    }

    fn open_rows(entry: Child) -> impl Iterator<Item = usize> {
        (0..ROWS).filter(move |row| !entry.has_quarter(row / QUARTER_ROWS))
    }

    /// Allocates frames of an order up to two huge frames in a child (the first of two).
    pub(crate) fn take(&self, child: usize, order: u32) -> Option<usize> {
        if order > G::HUGE_ORDER {
            self.take_two(child)
        } else if order == G::HUGE_ORDER {
            self.take_huge(child)
        } else if order > G::ROW_ORDER {
            self.take_quarters(child, order)
        } else {
            self.take_bits(child, order)
        }
    }

    /// Allocates frames within a row. Searches before it decrements the counter, lest others fail.
    fn take_bits(&self, child: usize, order: u32) -> Option<usize> {
        let choose = |free| field::first_group(free, order).map(|at| field::mask(at, order));
        let rows = &self.rows[child * ROWS..][..ROWS];
        loop {
            let entry = self.child(child);
            let row = Self::first_row(rows, entry.quarters(), order)?;
            self.update(child, |entry| entry.take(1 << order)).ok()?;
            if let Some(mask) = self.set_bits(child, row, !self.slots.is_on(), choose) {
                return Some(child * G::HUGE + (row << G::ROW_ORDER) + mask.trailing_zeros() as usize);
            }
            self.give(child, 1 << order);
            if self.child(child).is_pending() {
                return None;
            }
        }
    }

    /// The first of a huge frame's rows with an aligned group. Refusals read all of them.
    #[inline]
    fn first_row(rows: &[AtomicU64], quarters: u16, order: u32) -> Option<usize> {
        #[inline(always)]
        fn first<G: Geometry, const ORDER: u32>(rows: &[AtomicU64], quarters: u16) -> Option<usize> {
            let has_group = |row: &AtomicU64| field::groups(!row.read() & G::FULL_ROW, ORDER) != 0;
            rows.iter().enumerate().position(|(at, row)| has_group(row) && quarters >> (at / QUARTER_ROWS) & 1 == 0)
        }
        match order {
            0 => first::<G, 0>(rows, quarters),
            1 => first::<G, 1>(rows, quarters),
            2 => first::<G, 2>(rows, quarters),
            3 => first::<G, 3>(rows, quarters),
            4 => first::<G, 4>(rows, quarters),
            5 => first::<G, 5>(rows, quarters),
            _ => first::<G, 6>(rows, quarters),
        }
    }

    #[inline]
    pub(crate) fn take_huge(&self, child: usize) -> Option<usize> {
        let taken = self.update(child, |entry| entry.is_empty::<G>().then_some(Child::ALLOCATED));
        taken.ok().map(|_| {
            self.persist(self.word(child));
            child * G::HUGE
        })
    }

    fn take_two(&self, child: usize) -> Option<usize> {
        let free = Child::with_free(G::FULL_CHILD).0;
        let (old, new) = (u32::from(free) << 16 | u32::from(free), u32::from(Child::ALLOCATED.0));
        let word = self.word(child);
        let now = word.read();
        let is_free = [now as u16, (now >> 16) as u16].iter().all(|half| Child(*half).known().0 == old as u16);
        let taken = is_free && word.exchange(now, new << 16 | new).is_ok();
        taken.then(|| {
            self.media.changed(word);
            self.persist(word);
            (child & !1) * G::HUGE
        })
    }

    fn take_quarters(&self, child: usize, order: u32) -> Option<usize> {
        let count = QUARTERS >> (G::HUGE_ORDER - order);
        let frames = 1usize << order;
        let rows = &self.rows[child * ROWS..][..ROWS];
        let width = count * QUARTER_ROWS;
        rows.chunks_exact(width).enumerate().find_map(|(at, rows)| {
            // Most are refused by their first row.
            let flags = ((1 << count) - 1) << (at * count);
            if rows[0].read() == 0 { self.take_rows(child, flags, frames) } else { None }
        })
    }

    /// Allocates quarters as wholes. Tests their rows before the counter drops, lest others fail.
    fn take_rows(&self, child: usize, flags: u16, frames: usize) -> Option<usize> {
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
        // From here on setters of bits see *pending*; bits set before are seen below.
        let is_free = are_free();
        let end =
            |entry: Child| Some(if is_free { entry.end().with_quarters(flags) } else { entry.end().give(frames) });
        let _ = self.update(child, end);
        if is_free {
            self.persist(self.word(child));
        }
        is_free.then_some(child * G::HUGE + (first << G::ROW_ORDER))
    }

    #[inline]
    pub(crate) fn has_bit(&self, frame: usize) -> bool {
        self.rows[frame >> G::ROW_ORDER].read() >> (frame & ((1 << G::ROW_ORDER) - 1)) & 1 == 1
    }

    /// Whether a frame is allocated, by its bit or with its quarter. Claimed frames are.
    pub(crate) fn is_allocated(&self, frame: usize) -> bool {
        let quarter = frame % G::HUGE / (G::HUGE / QUARTERS);
        self.has_bit(frame) || self.is_claimed(frame) || self.child(frame / G::HUGE).has_quarter(quarter)
    }

    /// Frees frames, also parts of a whole; returns the first child's old entry.
    pub(crate) fn put(&self, frame: usize, order: u32) -> Result<Child, Refused> {
        let child = frame / G::HUGE;
        if order > G::HUGE_ORDER {
            return self.put_two(child).then_some(Child::ALLOCATED).ok_or(Refused::Pieces);
        }
        let row = (frame % G::HUGE) >> G::ROW_ORDER;
        if order > G::ROW_ORDER {
            let (count, frames) = ((1usize << order >> G::ROW_ORDER) / QUARTER_ROWS, 1usize << order);
            let flags = ((1u16 << count) - 1) << (row / QUARTER_ROWS);
            let freed = self.update(child, |entry| entry.without_quarters(flags).map(|e| e.give(frames)));
            freed.inspect(|_| self.persist(self.word(child))).map_err(|_| Refused::Pieces)
        } else if self.child(child).has_quarter(row / QUARTER_ROWS) {
            self.split(child, row / QUARTER_ROWS, frame, order)
        } else {
            self.put_bits(frame >> G::ROW_ORDER, Self::bits(frame, order))
        }
    }

    /// The bits of frames in their row.
    #[inline(always)]
    pub(crate) fn bits(frame: usize, order: u32) -> u64 {
        field::mask((frame & ((1 << G::ROW_ORDER) - 1)) as u32, order)
    }

    /// Frees a huge frame allocated as a whole; returns whether it was.
    #[inline]
    pub(crate) fn put_huge(&self, child: usize) -> bool {
        let empty = Child::with_free(G::FULL_CHILD);
        let is_freed = self.update(child, |entry| (entry == Child::ALLOCATED).then_some(empty)).is_ok();
        if is_freed {
            self.persist(self.word(child));
        }
        is_freed
    }

    /// Frees two huge frames allocated as wholes, `child` and the next; returns whether they were.
    #[inline]
    pub(crate) fn put_two(&self, child: usize) -> bool {
        let word = self.word(child);
        let (all, none) = (u32::from(Child::ALLOCATED.0), u32::from(G::FULL_CHILD));
        let is_freed = word.exchange(all << 16 | all, none << 16 | none).is_ok();
        if is_freed {
            self.media.changed(word);
            self.persist(word);
        }
        is_freed
    }

    #[inline]
    pub(crate) fn are_four_empty(&self, child: usize) -> bool {
        let full = u32::from(G::FULL_CHILD) << 16 | u32::from(G::FULL_CHILD);
        self.children[child / 4 * 2..].iter().take(2).all(|pair| pair.read() & (COUNTS << 16 | COUNTS) == full)
    }

    /// Whether all frames of rows of a huge frame are allocated. Claimed frames are.
    pub(crate) fn are_allocated(&self, child: usize, mut rows: core::ops::Range<usize>) -> bool {
        let entry = self.child(child);
        rows.all(|row| {
            entry.has_quarter(row / QUARTER_ROWS) || self.row(child, row).read() & G::FULL_ROW == G::FULL_ROW
        })
    }

    /// Frees a frame by its bit; returns the former entry.
    #[inline]
    pub(crate) fn put_bit(&self, frame: usize) -> Result<Child, Refused> {
        let (word, bit) = (&self.rows[frame >> G::ROW_ORDER], Self::bits(frame, 0));
        if self.slots.is_on() {
            let (bits, half) = (word.read(), frame >> G::CLAIM_ORDER);
            let is_marked = bits & Claim::bits_of::<G>(half) == Claim::mark_of::<G>(half);
            if bits & bit == 0 || is_marked || word.exchange(bits, bits & !bit).is_err() {
                return self.put_bits(frame >> G::ROW_ORDER, bit);
            }
            self.cleared(word, frame);
            return Ok(self.give(frame / G::HUGE, 1));
        }
        if word.and(!bit) & bit == 0 {
            return Err(Refused::Free);
        }
        self.cleared(word, frame);
        Ok(self.give(frame / G::HUGE, 1))
    }

    /// Frees frames of a row by their bits; returns the old entry.
    #[inline]
    pub(crate) fn put_bits(&self, row: usize, mask: u64) -> Result<Child, Refused> {
        self.clear_bits(row, mask)?;
        Ok(self.give(row / ROWS, mask.count_ones() as usize))
    }

    /// Clears bits of a row, if all are set.
    #[inline]
    pub(super) fn clear_bits(&self, row: usize, mask: u64) -> Result<(), Refused> {
        let word = &self.rows[row];
        let mut bits = word.read();
        loop {
            if self.slots.is_on() && Claim::is_marked::<G>(bits, mask) {
                return self.clear_marked(row, mask);
            }
            if bits & mask != mask {
                return Err(Refused::Free);
            }
            match word.exchange(bits, bits & !mask) {
                Ok(_) => {
                    self.cleared(word, row << G::ROW_ORDER);
                    return Ok(());
                }
                Err(now) => bits = now,
            }
        }
    }

    #[inline(always)]
    fn cleared(&self, word: &AtomicU64, frame: usize) {
        self.media.changed(word);
        self.media.flush(word);
        // A split may not have made durable yet that bits decide.
        if M::PERSISTS && self.child(frame / G::HUGE).is_pending() {
            self.media.flush(self.word(frame / G::HUGE));
        }
        self.media.fence();
    }

    /// Allocates the frames at a place, if all are free.
    pub(crate) fn take_at(&self, frame: usize, order: u32) -> Option<()> {
        let child = frame / G::HUGE;
        if order > G::HUGE_ORDER {
            return self.take_two(child).map(|_| ());
        }
        if order == G::HUGE_ORDER {
            return self.take_huge(child).map(|_| ());
        }
        let row = (frame % G::HUGE) >> G::ROW_ORDER;
        let frames = 1usize << order;
        if order > G::ROW_ORDER {
            let count = (frames >> G::ROW_ORDER) / QUARTER_ROWS;
            let flags = ((1u16 << count) - 1) << (row / QUARTER_ROWS);
            return self.take_rows(child, flags, frames).map(|_| ());
        }
        if order == 0 && self.slots.is_on() {
            return self.take_bit(frame);
        }
        self.take_mask(frame, order, !self.slots.is_on())
    }

    fn take_mask(&self, frame: usize, order: u32, is_alone: bool) -> Option<()> {
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
            self.give(child, frames);
        }
        taken.map(|_| ())
    }
}
