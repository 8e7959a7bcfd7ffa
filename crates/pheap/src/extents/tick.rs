//! Periodic work: settled chunks are reused, and old free memory goes back.

use super::decay::STEP_MS;
use super::nodes::State;
use super::plan::{PAGE_BYTES, UNIT_PAGES};
use super::{Extents, Inner};
use craton_base::atomic::Ordering;
use craton_base::{Medium, Space, SpaceError};

const MOST_DISCARDS: usize = 64;
/// Pages: 1 MiB, or the curve would shorten the file at every step.
const LEAST_CUT: u64 = 16 * UNIT_PAGES;

impl Extents {
    /// Returns memory that has been free long enough, and reuses the log's settled chunks. Discards
    /// without the lock.
    pub fn tick<M: Medium + Space>(&self, medium: &M, now_ms: u64, settled_epoch: u64) {
        let now = [now_ms / STEP_MS, settled_epoch];
        // ORDERING: relaxed; two ticks at once do the work twice, under the lock.
        if (0..2).all(|i| self.ticked[i].load(Ordering::Relaxed) == now[i]) {
            return;
        }
        (0..2).for_each(|i| self.ticked[i].store(now[i], Ordering::Relaxed));

        let mut inner = self.lock();
        inner.settled = inner.settled.max(settled_epoch);
        inner.settle_log(medium);
        let old = inner.withdraw_old(now_ms);
        if !old.is_empty() {
            drop(inner);
            let discard =
                |&(node, page, pages): &(u32, u64, u64)| (node, medium.discard(page * PAGE_BYTES, pages * PAGE_BYTES));
            let done: Vec<(u32, Result<(), SpaceError>)> = old.iter().map(discard).collect();
            inner = self.lock();
            inner.end_discards(&done);
        }
        inner.shorten(medium, now_ms);
    }
}

impl Inner {
    fn settle_log<M: Medium>(&mut self, medium: &M) {
        self.log.collect(medium);
        self.log.settle(self.settled);
        while let Some(unit) = self.log.take_unit() {
            if let Some(node) = self.map.starting_at(unit / PAGE_BYTES) {
                // Its chunks are settled.
                self.map.free(node, State::Reclaimed, 0);
            }
        }
    }

    fn withdraw_old(&mut self, now_ms: u64) -> Vec<(u32, u64, u64)> {
        let mut excess = self.reclaimed.excess(now_ms, self.map.reclaimed.pages);
        let mut old = Vec::new();
        while self.can_discard && excess > 0 && old.len() < MOST_DISCARDS {
            let Some(node) = self.map.oldest(State::Reclaimed) else { break };
            let there = self.map.nodes[node];
            // E5.
            if there.epoch > self.settled {
                break;
            }
            self.map.withdraw(node, State::Discarding);
            self.reclaimed.went(there.pages);
            excess = excess.saturating_sub(there.pages);
            old.push((node, there.page, there.pages));
        }
        old
    }

    fn end_discards(&mut self, done: &[(u32, Result<(), SpaceError>)]) {
        for &(node, result) in done {
            let epoch = self.map.nodes[node].epoch;
            let state = if result.is_ok() { State::Retained } else { State::Reclaimed };
            self.can_discard &= result != Err(SpaceError::Fixed);
            self.map.free(node, state, epoch);
        }
    }

    pub(super) fn shorten<M: Medium + Space>(&mut self, medium: &M, now_ms: u64) {
        let last = self.map.last().map(|node| self.map.nodes[node]).filter(|last| last.state == State::Retained);
        let pages = last.map_or(0, |last| last.pages);
        let excess = self.retained.excess(now_ms, pages);
        let Some(last) = last else { return };
        // The file keeps a unit, or it cannot be opened.
        let least = (self.map.first() + UNIT_PAGES).max(last.page);
        let end = (last.end() - excess).next_multiple_of(UNIT_PAGES).max(least).min(last.end());
        let cut = last.end() - end;
        let is_due = cut >= LEAST_CUT || cut == pages && cut > 0;
        // E5.
        if !is_due || !self.can_shrink || self.keeps_length || last.epoch > self.settled {
            return;
        }
        match medium.resize(end * PAGE_BYTES) {
            Ok(()) => {
                self.map.truncate(cut);
                self.retained.went(cut);
            }
            Err(SpaceError::Fixed) => self.can_shrink = false,
            Err(_) => {}
        }
    }
}
