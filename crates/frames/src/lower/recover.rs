//! Repair of the lower level after a crash (LLFree §3.2.3, which leaves orders 7 and 8 out).
//!
//! A quarter's flag decides, else the rows' bits: rows of a flagged quarter become zero; counters
//! are recounted; *pending* and the claim mark go; bits beyond the zone's end are set, and no
//! quarter there is a whole.
//! **Why a crash may come at any store.** Each request has one committing store, of a row's bits or
//! of flags; counters and *pending* do not count. Two requests have more: a free of several pieces
//! frees one by one; a split writes a quarter's bits under its flag, makes them durable, and clears
//! the flag: before that the whole quarter is allocated.
//! **Between threads.** A visible store that is not durable is a danger if others build on it. Bits
//! build on bits in the same word. A quarter taken over just cleared bits zeroes them anyway. Bits
//! set in a just freed quarter lose only that free's frames. Bits cleared in a just split quarter
//! would be lost: so *pending* stays up until the cleared flag is durable, and a free that sees it
//! makes the entry durable itself.
//! **Recovery itself** may crash too. Its changes to rows are durable before the zone is used: else
//! they could reappear when a flag falls. All entries become durable: a killed process may have
//! left some in a cache.

use super::{Lower, QUARTER_ROWS};
use crate::child::Child;
use crate::geometry::{Geometry, QUARTERS, ROWS};
use crate::media::Media;
use crate::word::Word;
use craton_base::Ones;

const LINE: usize = 64;
const MOST_CHILDREN: usize = 64;
/// In lanes of 16 bits.
const ONE_EACH: u64 = 0x0001_0001_0001_0001;
/// Spreads four bits into a lane each.
const SPREAD: u64 = 1 | 1 << 15 | 1 << 30 | 1 << 45;
const _: () = assert!(QUARTERS == 4);

#[inline(always)]
fn sum(lanes: u64) -> u64 {
    lanes.wrapping_mul(ONE_EACH) >> 48
}

impl<G: Geometry, M: Media> Lower<'_, G, M> {
    pub(crate) fn recover(&self) -> usize {
        let ones = Ones::new();
        let mut wrong = 0;
        for (tree, words) in self.children.chunks(G::CHILDREN / 2).enumerate() {
            let mut set = [[0; QUARTERS]; MOST_CHILDREN];
            let first = tree * G::CHILDREN;
            ones.count::<QUARTER_ROWS>(&self.rows[first * ROWS..], set[..G::CHILDREN].as_flattened_mut());
            let (pairs, _) = set.as_chunks::<2>();
            for ((at, word), [low_set, high_set]) in words.iter().enumerate().zip(pairs) {
                let (old, child) = (word.read(), first + 2 * at);
                let (low, high) = (Child(old as u16), Child((old >> 16) as u16));
                let (right_low, right_high) = (self.right(child, low, low_set), self.right(child + 1, high, high_set));
                let new = u32::from(right_high.0) << 16 | u32::from(right_low.0);
                if new != old {
                    word.begin(new);
                    self.media.changed(word);
                    wrong += usize::from(right_low != low) + usize::from(right_high != high);
                }
            }
        }
        self.persist_children();
        wrong
    }

    #[inline(always)]
    fn right(&self, child: usize, entry: Child, set: &[u16; QUARTERS]) -> Child {
        let is_whole = (child + 1) * G::HUGE <= self.frames;
        let flags = entry.quarters();
        // Branch-free: bits are random.
        let lanes = (u64::from(flags) * SPREAD) & ONE_EACH;
        let [a, b, c, d] = set.map(u64::from);
        let bits = a | b << 16 | c << 32 | d << 48;
        let used = sum(bits) + sum(lanes) * (G::HUGE / QUARTERS) as u64;
        let is_plain = (bits & (lanes * u64::from(u16::MAX)) == 0) & (used <= G::HUGE as u64);
        if is_whole & is_plain {
            return Child::with_free(G::FULL_CHILD - used as u16).with_quarters(flags);
        }
        self.recover_rows(child, entry)
    }

    #[inline(never)]
    fn recover_rows(&self, child: usize, entry: Child) -> Child {
        let there = self.frames.saturating_sub(child * G::HUGE).min(G::HUGE);
        let mut right = Child::with_free(0);
        if there == 0 {
            return right;
        }
        for quarter in 0..QUARTERS {
            let rows = quarter * QUARTER_ROWS..(quarter + 1) * QUARTER_ROWS;
            let is_inside = rows.end << G::ROW_ORDER <= there;
            let is_allocated = is_inside && entry.has_quarter(quarter);
            if is_allocated {
                right = right.with_quarters(1 << quarter);
            }
            for row in rows {
                let inside = there.saturating_sub(row << G::ROW_ORDER).min(1 << G::ROW_ORDER) as u32;
                let beyond = G::FULL_ROW & !(((1u128 << inside) - 1) as u64);
                let word = self.row(child, row);
                let old = word.read();
                let new = if is_allocated { 0 } else { old & G::FULL_ROW | beyond };
                if new != old {
                    word.begin(new);
                    self.media.changed(word);
                    self.media.flush(word);
                }
                if !is_allocated {
                    right = right.give((!new & G::FULL_ROW).count_ones() as usize);
                }
            }
        }
        right
    }

    pub(crate) fn persist_all(&self) {
        self.flush_all(self.rows);
        self.persist_children();
    }

    /// A zone in use makes only their flags durable.
    pub(crate) fn persist_children(&self) {
        self.flush_all(self.children);
        self.media.fence();
    }

    fn flush_all<W>(&self, words: &[W]) {
        words.iter().step_by(LINE / size_of::<W>()).chain(words.last()).for_each(|word| self.media.flush(word));
    }

    pub(crate) fn media(&self) -> &M {
        &self.media
    }
}
