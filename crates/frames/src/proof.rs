//! What refused requests have proved: that no block of an order is free.
//!
//! Until frames are freed, later requests of the order, or a larger one, are refused by one load.
//! **State.** Epoch 48 · watched 1 · a bit for each order without a free block, 15.
//! **Invariants.** *F8* An order's bit is set only while no block of this order is free, but for
//! frees under way.
//! **Threads.** A search watches, reads, then proves, which fails in another epoch. A request that
//! makes frames free, also by giving up or by a claim's end, calls [`Proof::end`] last: if the
//! search missed the frames, `end` sees the watch and begins another epoch.

use crate::word::Word;
use craton_base::atomic::AtomicU64;

const WATCHED: u64 = 1 << 15;
const EPOCH_AT: u32 = 16;

/// Alone on its line, which changes only around refusals.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Proof(AtomicU64);

#[derive(Clone, Copy)]
pub(crate) struct Watch(u64);

impl Proof {
    #[inline]
    pub(crate) fn refuses(&self, order: u32) -> bool {
        self.0.read() >> order & 1 == 1
    }

    pub(crate) fn watch(&self) -> Watch {
        loop {
            let now = self.0.read();
            if now & WATCHED != 0 || self.0.exchange(now, now | WATCHED).is_ok() {
                return Watch(now >> EPOCH_AT);
            }
        }
    }

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

    /// Or something is proved.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.0.read() & WATCHED != 0
    }

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
