//! Freed ranges lose their memory by the curve of [`Decay`].

use super::{FrameExtents, blocks};
use crate::extents::PAGE_BYTES;
use craton_base::{Medium, Space};
use std::sync::PoisonError;

const MOST_DISCARDS: usize = 64;

impl<M: Medium + Space> FrameExtents<'_, M> {
    /// Gives back memory that has been free long enough, and whose free is settled.
    pub fn tick(&self, now_ms: u64, settled_epoch: u64) {
        let mut old = Vec::new();
        let mut freed = self.freed.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = freed.pages;
        let mut excess = freed.decay.excess(now_ms, pages);
        while excess > 0 && old.len() < MOST_DISCARDS {
            let Some(&(page, pages, epoch)) = freed.ranges.front() else { break };
            if epoch > settled_epoch {
                break;
            }
            freed.ranges.pop_front();
            freed.pages -= pages;
            freed.decay.went(pages);
            excess = excess.saturating_sub(pages);
            old.push((page, pages));
        }
        drop(freed);
        old.into_iter().for_each(|(page, pages)| self.discard(page, pages));
    }

    /// What of a range is still free is allocated while it loses its memory.
    fn discard(&self, page: u64, pages: u64) {
        let Some(frame) = self.frame(page) else { return };
        for (frame, order) in blocks(frame, frame + pages as usize) {
            if self.zone.get_at(frame, order).is_ok() {
                // Refused: the memory stays, and the range is free all the same.
                let _ = self.medium.discard(self.page(frame) * PAGE_BYTES, PAGE_BYTES << order);
                self.put(frame, frame + (1 << order));
            }
        }
    }
}
