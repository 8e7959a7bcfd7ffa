//! What refused requests have proved: that no block of an order is free.
//!
//! **What.** A request that is refused has searched all trees. It records that, and until frames
//! are freed later requests of this order, or a larger one, are refused by reading one word.
//! **From.** Ours; the paper searches all trees again (LLFree §3.2.2).
//! **State.** Epoch 48 · watched 1 · a bit for each order without a free block, 15.
//! **Invariants.** *F8* An order's bit is set only while no block of this order is free, but for
//! frees under way.
//! **Threads.** A search watches first, then reads, then proves, which fails if the epoch is
//! another one. A request that makes frames free, also by an allocation that gives up or by a
//! claim's end, calls [`Proof::end`] last: if the search has missed the frames, `end` sees the
//! watch. It begins another epoch, without bits.
//! **Cost.** A free reads one word, which changes only around refusals.

use crate::word::Word;
use craton_base::atomic::AtomicU64;

const WATCHED: u64 = 1 << 15;
const EPOCH_AT: u32 = 16;

/// Alone on its line: around refusals it changes, and its neighbours do not.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Proof(AtomicU64);

/// The epoch in which a search began.
#[derive(Clone, Copy)]
pub(crate) struct Watch(u64);

impl Proof {
    /// Whether no block of an order is free.
    #[inline]
    pub(crate) fn refuses(&self, order: u32) -> bool {
        self.0.read() >> order & 1 == 1
    }

    /// Begins a search.
    pub(crate) fn watch(&self) -> Watch {
        loop {
            let now = self.0.read();
            if now & WATCHED != 0 || self.0.exchange(now, now | WATCHED).is_ok() {
                return Watch(now >> EPOCH_AT);
            }
        }
    }

    /// Records that a search has found no block of an order; returns whether that holds.
    pub(crate) fn prove(&self, Watch(epoch): Watch, order: u32) -> bool {
        loop {
            let now = self.0.read();
            if now >> EPOCH_AT != epoch {
                return false;
            }
            let orders = (WATCHED - 1) & !((1 << order) - 1);
            if now | orders == now || self.0.exchange(now, now | orders).is_ok() {
                return true;
            }
        }
    }

    /// Whether a search watches, or has proved something.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.0.read() & WATCHED != 0
    }

    /// Ends all proofs and searches under way, after frames have become free.
    #[inline(always)]
    pub(crate) fn end(&self) {
        if self.is_watched() {
            self.end_watched();
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn end_watched(&self) {
        loop {
            let now = self.0.read();
            if now & WATCHED == 0 || self.0.exchange(now, ((now >> EPOCH_AT) + 1) << EPOCH_AT).is_ok() {
                return;
            }
        }
    }
}
