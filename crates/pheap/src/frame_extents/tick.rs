//! Free pages lose their memory by the curve of [`Decay`], and the file its free end. A block is
//! allocated while it loses its memory.

use super::FrameExtents;
use super::zone::Zone;
use crate::extents::{Decay, PAGE_BYTES, STEP_MS, UNIT_PAGES};
use crate::sync::MutexGuard;
use craton_base::{Medium, Space, SpaceError};
use std::sync::PoisonError;

const MOST_DISCARDS: usize = 64;
/// Pages: 1 MiB.
const LEAST_CUT: u64 = 16 * UNIT_PAGES;
/// Blocks that lose their memory together: a huge frame, or a unit.
const HUGE_ORDER: u32 = 9;
const UNIT_ORDER: u32 = UNIT_PAGES.trailing_zeros();

pub(super) struct Decays {
    reclaimed: Decay,
    retained: Decay,
    can_discard: bool,
    can_shrink: bool,
    keeps_length: bool,
    /// Time and settled epoch.
    last: Option<(u64, u64)>,
}

impl Decays {
    pub fn new() -> Self {
        let (reclaimed, retained) = (Decay::new(), Decay::new());
        Self { reclaimed, retained, can_discard: true, can_shrink: true, keeps_length: false, last: None }
    }
}

struct Sweep<'a, M> {
    zone: &'a Zone<'a, M>,
    settled: u64,
    excess: u64,
    left: usize,
    gone: u64,
    is_fixed: bool,
}

impl FrameExtents {
    /// Returns memory that has been free long enough and whose free is settled.
    pub fn tick<M: Medium + Space>(&self, medium: &M, now_ms: u64, settled: u64) {
        let Ok(mut decays) = self.decays.try_lock() else { return };
        let now = (now_ms / STEP_MS, settled);
        if decays.last.replace(now) == Some(now) {
            return;
        }
        let Ok(zone) = self.zone(medium) else { return };
        let reclaimed = self.reclaimed_pages();
        let excess = decays.reclaimed.excess(now_ms, reclaimed);
        if decays.can_discard && excess > 0 {
            let mut sweep = Sweep { zone: &zone, settled, excess, left: MOST_DISCARDS, gone: 0, is_fixed: false };
            // The file can then become shorter.
            let huge = 1 << HUGE_ORDER;
            for frame in (0..self.end() as usize).step_by(huge).rev() {
                self.sweep(&mut sweep, frame, HUGE_ORDER);
            }
            decays.reclaimed.went(sweep.gone);
            decays.can_discard = !sweep.is_fixed;
        }
        self.shorten(&zone, &mut decays, now_ms);
    }

    /// Until [`cut_kept`](Self::cut_kept).
    pub fn keep_length(&self) {
        self.lock_decays().keeps_length = true;
    }

    /// Cuts what [`keep_length`](Self::keep_length) has kept.
    pub fn cut_kept<M: Medium + Space>(&self, medium: &M, now_ms: u64) {
        let mut decays = self.lock_decays();
        if std::mem::take(&mut decays.keeps_length)
            && let Ok(zone) = self.zone(medium)
        {
            self.shorten(&zone, &mut decays, now_ms);
        }
    }

    fn lock_decays(&self) -> MutexGuard<'_, Decays> {
        self.decays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reclaimed_pages(&self) -> u64 {
        self.backed.pages().saturating_sub(self.used.load(craton_base::atomic::Ordering::Relaxed))
    }

    fn sweep<M: Medium + Space>(&self, sweep: &mut Sweep<'_, M>, frame: usize, order: u32) {
        let frames = frame..frame + (1 << order);
        let is_done = sweep.left == 0 || sweep.gone >= sweep.excess || sweep.is_fixed;
        let is_there = (frames.end as u64) <= self.config.pages;
        if is_done || self.backed.count(frame..frames.end.min(self.config.pages as usize)) == 0 {
            return;
        }
        // E5.
        if is_there && self.backed.is_settled(frames.clone(), sweep.settled) && sweep.zone.get_at(frame, order) {
            match sweep.zone.medium.discard(self.page(frame) * PAGE_BYTES, PAGE_BYTES << order) {
                Ok(()) => sweep.gone += self.backed.discarded(frames.clone()),
                Err(error) => sweep.is_fixed |= error == SpaceError::Fixed,
            }
            sweep.left -= 1;
            sweep.zone.put(frames);
        } else if order > UNIT_ORDER {
            self.sweep(sweep, frame + (1 << (order - 1)), order - 1);
            self.sweep(sweep, frame, order - 1);
        }
    }

    fn shorten<M: Medium + Space>(&self, zone: &Zone<'_, M>, decays: &mut Decays, now_ms: u64) {
        let idle = self.idle_end(zone);
        // The file keeps a unit, or it cannot be opened.
        let excess = decays.retained.excess(now_ms, idle).min(self.end().saturating_sub(UNIT_PAGES));
        let cut = excess / UNIT_PAGES * UNIT_PAGES;
        if !decays.can_shrink || decays.keeps_length || cut < LEAST_CUT.min(idle) || cut == 0 {
            return;
        }
        match self.cut(zone, cut) {
            Ok(pages) => decays.retained.went(pages),
            Err(()) => decays.can_shrink = false,
        }
    }
}
