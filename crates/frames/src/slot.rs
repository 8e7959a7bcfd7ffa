//! The places of claims. A half's number names its slot, so that no half has two claims.
//!
//! **State.** The claim, or the number of claims that ended there: an empty slot's word never
//! recurs.
//! **Threads.** Any CPU changes an open claim by compare-and-swap. Only the holder changes a held
//! one: it moves frames between row and claim.

use crate::claim::Claim;
use crate::local::Local;
use crate::word::Word;
use craton_base::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Slot {
    word: AtomicU64,
    ended: AtomicU64,
}

impl Slot {
    #[inline(always)]
    pub(crate) fn read(&self) -> Claim {
        Claim(self.word.read())
    }

    #[inline(always)]
    pub(crate) fn exchange(&self, old: Claim, new: Claim) -> bool {
        self.word.exchange(old.0, new.0).is_ok()
    }

    #[inline]
    pub(crate) fn release(&self) {
        let ended = self.ended.load(Ordering::Relaxed).wrapping_add(1);
        self.ended.store(ended, Ordering::Relaxed);
        self.publish(Claim::none(ended));
    }

    #[inline]
    pub(crate) fn publish(&self, claim: Claim) {
        // ORDERING: pairs with `read`: who sees the hold's end sees what the holder changed.
        self.word.store(claim.0, Ordering::Release);
    }

    pub(crate) fn clear(&self) {
        self.word.begin(0);
        self.ended.begin(0);
    }
}

/// A power of two, at least two; none without claims.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    lines: &'a [Local],
    tree: u32,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(lines: &'a [Local], halves_of_tree: usize) -> Self {
        Self { lines, tree: halves_of_tree.ilog2() }
    }

    pub(crate) fn is_on(&self) -> bool {
        !self.lines.is_empty()
    }

    /// One of eight for its tree: CPUs on different trees rarely share slots.
    #[inline(always)]
    pub(crate) fn of(&self, half: usize) -> &'a Slot {
        let at = (half >> self.tree) << 3 ^ (half & 7);
        &self.lines[at & (self.lines.len() - 1)].slot
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a Slot> + use<'a> {
        self.lines.iter().map(|line| &line.slot)
    }
}
