//! The lower level: which frames are allocated (LLFree §3.2.1 and §4.2.1).
//!
//! One atomic change decides: of a row's bits for orders within a row, of an entry's
//! [quarters](crate::child) for larger ones. Counters follow.
//! **Invariants.** *F1* An entry's count is at most the frames free in the rows of quarters not
//! allocated as wholes, and equal when nothing is under way. *F2* The rows of a quarter allocated
//! as a whole are zero, but for bits that their setter is about to clear. *F3* Bits of frames
//! beyond the zone's end are set.
//! **Threads.** An allocation lowers the counter first, so that a free bit exists. Taking a
//! quarter: set *pending*, see its rows zero, replace *pending* by the flag. After setting a bit,
//! an allocation reads the entry again and clears its bit if either flag is up: one of the two sees
//! the other.

mod claims;
mod quarters;
mod recover;
mod rows;
mod split;

use crate::child::Child;
use crate::claim::Claim;
use crate::config::Init;
use crate::field;
use crate::geometry::{Geometry, QUARTERS, ROWS};
use crate::media::{Media, Volatile};
use crate::proof::Proof;
use crate::slot::Slots;
use crate::word::Word;
use core::marker::PhantomData;
use craton_base::atomic::{self, AtomicU32, AtomicU64};

const COUNTS: u32 = 0x3ff;
const QUARTER_ROWS: usize = ROWS / QUARTERS;
/// Their frees are noted together; a power of two.
const NEIGHBOURS: usize = 16;

pub(crate) struct Lower<'a, G, M = Volatile> {
    pub(crate) rows: &'a [AtomicU64],
    pub(crate) children: &'a [AtomicU32],
    pub(crate) slots: Slots<'a>,
    pub(crate) proof: Proof,
    frames: usize,
    media: M,
    geometry: PhantomData<G>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Free,
    /// A claim is in this half's slot.
    Blocked(usize),
    /// Not allocated as one whole.
    Pieces,
    /// Another thread has just split it.
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
        Self { rows, children, slots, proof: Proof::default(), frames, media, geometry: PhantomData }
    }

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

    /// As allocated (F2).
    pub(crate) fn begin_rows(&self, child: usize) {
        for row in &self.rows[child * ROWS..(child + 1) * ROWS] {
            if row.read() != 0 {
                row.write(0);
                self.media.changed(row);
            }
        }
    }

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

    /// Returns count << 8 and number of the fullest with `frames` free; or `u32::MAX`.
    pub(crate) fn fullest(&self, tree: usize, other: usize, frames: usize) -> u32 {
        let words = &self.children[tree * G::CHILDREN / 2..][..G::CHILDREN / 2];
        let (frames, other) = (frames as u32, other as u32);
        let whole = u32::from(G::FULL_CHILD) << 16 | u32::from(G::FULL_CHILD);
        let (mut best, mut at) = (u32::MAX, 0);
        for word in words {
            let free = word.read() & (COUNTS << 16 | COUNTS);
            if free != 0 && (free != whole || best == u32::MAX) {
                for (free, child) in [(free & COUNTS, at), (free >> 16, at + 1)] {
                    let key = free << 8 | child;
                    best = if free >= frames && child != other { best.min(key) } else { best };
                }
            }
            at += 2;
        }
        best
    }

    pub(crate) fn has_free(&self, tree: usize, child: usize, frames: usize) -> bool {
        child < G::CHILDREN && self.child(tree * G::CHILDREN + child).free() >= frames
    }

    /// For requests of another kind than the tree's: they break few huge frames if they fill them.
    #[inline(never)]
    pub(crate) fn emptiest(&self, tree: usize) -> Option<usize> {
        let first = tree * G::CHILDREN;
        (0..G::CHILDREN).max_by_key(|child| self.child(first + child).free())
    }

    /// Error: `change` refuses this entry.
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

    fn undo(&self, child: usize, frames: usize) {
        self.give(child, frames);
        self.proof.end();
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

    #[inline(always)]
    pub(crate) fn take_huge(&self, child: usize) -> Option<usize> {
        self.turn(child, Child::with_free(G::FULL_CHILD), Child::ALLOCATED).map(|_| child * G::HUGE)
    }

    #[inline(always)]
    fn turn(&self, child: usize, from: Child, to: Child) -> Option<u32> {
        let (word, shift) = (self.word(child), 16 * (child & 1));
        loop {
            let pair = word.read();
            if Child((pair >> shift) as u16).known() != from {
                return None;
            }
            let new = pair & !(u32::from(Child::MARK) << shift) ^ u32::from(from.0 ^ to.0) << shift;
            if word.exchange(pair, new).is_ok() {
                self.media.changed(word);
                self.persist(word);
                return Some(new);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn take_two(&self, child: usize) -> Option<usize> {
        let (free, allocated) = (u32::from(G::FULL_CHILD), u32::from(Child::ALLOCATED.0));
        let word = self.word(child);
        let pair = word.read();
        let known = u32::from(Child(pair as u16).known().0) | u32::from(Child((pair >> 16) as u16).known().0) << 16;
        if known != free << 16 | free || word.exchange(pair, allocated << 16 | allocated).is_err() {
            return None;
        }
        self.media.changed(word);
        self.persist(word);
        Some((child & !1) * G::HUGE)
    }

    #[inline]
    pub(crate) fn has_bit(&self, frame: usize) -> bool {
        self.rows[frame >> G::ROW_ORDER].read() >> (frame & ((1 << G::ROW_ORDER) - 1)) & 1 == 1
    }

    pub(crate) fn is_allocated(&self, frame: usize) -> bool {
        let quarter = frame % G::HUGE / (G::HUGE / QUARTERS);
        self.has_bit(frame) || self.is_claimed(frame) || self.child(frame / G::HUGE).has_quarter(quarter)
    }

    pub(crate) fn put(&self, frame: usize, order: u32) -> Result<Child, Refused> {
        let child = frame / G::HUGE;
        if order > G::HUGE_ORDER {
            return self.put_two(child).then_some(Child::ALLOCATED).ok_or(Refused::Pieces);
        }
        let row = (frame % G::HUGE) >> G::ROW_ORDER;
        if order > G::ROW_ORDER {
            self.put_quarters(frame, order).ok_or(Refused::Pieces)
        } else if self.child(child).has_quarter(row / QUARTER_ROWS) {
            self.split(child, row / QUARTER_ROWS, frame, order)
        } else {
            self.put_bits(frame >> G::ROW_ORDER, Self::bits(frame, order))
        }
    }

    #[inline(always)]
    pub(crate) fn put_quarters(&self, frame: usize, order: u32) -> Option<Child> {
        let (child, quarter) = (frame / G::HUGE, frame % G::HUGE / (G::HUGE / QUARTERS));
        let flags = (0xf >> (QUARTERS - (QUARTERS >> (G::HUGE_ORDER - order)))) << quarter;
        atomic::about_to_change(self.word(child));
        let freed = self.update(child, |entry| entry.without_quarters(flags).map(|e| e.give(1 << order))).ok()?;
        self.persist(self.word(child));
        Some(freed)
    }

    #[inline(always)]
    pub(crate) fn bits(frame: usize, order: u32) -> u64 {
        field::mask((frame & ((1 << G::ROW_ORDER) - 1)) as u32, order)
    }

    /// Returns whether the pair is now wholly free.
    #[inline(always)]
    pub(crate) fn put_huge(&self, child: usize) -> Option<bool> {
        atomic::about_to_change(self.word(child));
        let pair = self.turn(child, Child::ALLOCATED, Child::with_free(G::FULL_CHILD))?;
        Some(pair == Self::FULL_PAIR)
    }

    #[inline(always)]
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

    /// Half a tree or the whole is wholly free, so its class may have changed. The last free of a
    /// tree's frames sees it.
    #[inline]
    pub(crate) fn are_neighbours_empty(&self, child: usize) -> bool {
        let group = G::CHILDREN.min(NEIGHBOURS);
        let words = &self.children[child / group * group / 2..][..group / 2];
        words.iter().all(|pair| Self::is_empty_pair(pair.read()))
    }

    const FULL_PAIR: u32 = (G::FULL_CHILD as u32) << 16 | G::FULL_CHILD as u32;

    #[inline(always)]
    fn is_empty_pair(pair: u32) -> bool {
        pair & (COUNTS << 16 | COUNTS) == Self::FULL_PAIR
    }

    /// Checks the pair before, where frees in order were, and two far away.
    #[inline(always)]
    pub(crate) fn is_one_free_before(&self, child: usize) -> bool {
        let pairs = G::CHILDREN / 2;
        let (at, words) = (child / 2 % pairs, &self.children[child / G::CHILDREN * pairs..][..pairs]);
        let any = words[at.saturating_sub(1)].read() | words[at / 2].read() | words[0].read();
        (at > 0) & (any & Self::FULL_PAIR != 0)
    }

    pub(crate) fn is_tree_empty(&self, tree: usize) -> bool {
        let words = &self.children[tree * G::CHILDREN / 2..][..G::CHILDREN / 2];
        words.iter().all(|pair| Self::is_empty_pair(pair.read()))
    }

    /// Claimed frames are allocated.
    pub(crate) fn are_allocated(&self, child: usize, mut rows: core::ops::Range<usize>) -> bool {
        let entry = self.child(child);
        rows.all(|row| {
            entry.has_quarter(row / QUARTER_ROWS) || self.row(child, row).read() & G::FULL_ROW == G::FULL_ROW
        })
    }

    /// The row, which changes next, and whether it shows the half as claimed.
    #[inline(always)]
    pub(crate) fn row_of(&self, frame: usize) -> (u64, bool) {
        atomic::about_to_change(&self.rows[frame >> G::ROW_ORDER]);
        let (bits, half) = (self.rows[frame >> G::ROW_ORDER].read(), frame >> G::CLAIM_ORDER);
        (bits, bits & Claim::bits_of::<G>(half) == Claim::mark_of::<G>(half))
    }

    #[inline]
    pub(crate) fn put_bit(&self, frame: usize) -> Option<Child> {
        if !self.slots.is_on() {
            return self.put_by(frame, |word, bit| word.and(!bit) & bit != 0);
        }
        let (bits, is_marked) = self.row_of(frame);
        if is_marked { None } else { self.put_unmarked(frame, bits) }
    }

    #[inline(always)]
    pub(crate) fn put_unmarked(&self, frame: usize, bits: u64) -> Option<Child> {
        self.put_by(frame, |word, bit| bits & bit != 0 && word.exchange(bits, bits & !bit).is_ok())
    }

    #[inline(always)]
    fn put_by(&self, frame: usize, clear: impl Fn(&AtomicU64, u64) -> bool) -> Option<Child> {
        let child = frame / G::HUGE;
        let (word, bit) = (&self.rows[frame >> G::ROW_ORDER], Self::bits(frame, 0));
        let (entries, shift) = (self.word(child), 16 * (child & 1));
        atomic::about_to_change(entries);
        if !Child((entries.read() >> shift) as u16).is_plain() || !clear(word, bit) {
            return None;
        }
        self.cleared(word, frame);
        let before = entries.add(1 << shift);
        self.media.changed(entries);
        Some(Child((before >> shift) as u16))
    }

    /// More than one frame: a mark has only one bit of each pair, so set bits are no mark.
    #[inline(always)]
    pub(crate) fn put_group_of_bits(&self, frame: usize, order: u32) -> Option<Child> {
        let (child, word) = (frame / G::HUGE, &self.rows[frame >> G::ROW_ORDER]);
        atomic::about_to_change(self.word(child));
        atomic::about_to_change(word);
        if !self.child(child).is_plain() {
            return None;
        }
        let (bits, mask) = (word.read(), Self::bits(frame, order));
        if bits & mask != mask || word.exchange(bits, bits & !mask).is_err() {
            return None;
        }
        self.cleared(word, frame);
        Some(self.give(child, 1 << order))
    }

    #[inline]
    pub(crate) fn put_bits(&self, row: usize, mask: u64) -> Result<Child, Refused> {
        self.clear_bits(row, mask)?;
        Ok(self.give(row / ROWS, mask.count_ones() as usize))
    }

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
}
