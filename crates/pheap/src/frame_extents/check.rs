//! Ranges, sums and invariants of extents in frames.

use super::FrameExtents;
use crate::extents::{ExtentError, ExtentKind, ExtentStats, Range, RangeState};
use craton_base::Medium;
use craton_base::atomic::Ordering;

impl FrameExtents {
    /// By address. Frames of plans count as objects.
    pub fn ranges<M: Medium>(&self, medium: &M) -> Vec<Range> {
        let Ok(zone) = self.zone(medium) else { return Vec::new() };
        let mut ranges: Vec<Range> = Vec::new();
        let (mut frame, end) = (0, self.end() as usize);
        while frame < end {
            let page = self.page(frame);
            if let Ok(Some(there)) = self.entry(medium, frame) {
                let state = RangeState::Used(there.kind);
                ranges.push(Range { page, pages: there.pages.into(), state });
                frame += there.pages as usize;
                continue;
            }
            let state = match (zone.is_free(frame), self.backed.count(frame..frame + 1)) {
                (false, _) => RangeState::Used(ExtentKind::Object),
                (true, 0) => RangeState::Retained,
                (true, _) => RangeState::Reclaimed,
            };
            match ranges.last_mut() {
                Some(last) if last.state == state && zone.is_free(frame) => last.pages += 1,
                _ => ranges.push(Range { page, pages: 1, state }),
            }
            frame += 1;
        }
        ranges
    }

    pub fn stats<M: Medium>(&self, medium: &M) -> ExtentStats {
        let mut stats = ExtentStats::default();
        let mut free_end = None;
        let mut run = 0;
        for range in self.ranges(medium) {
            match range.state {
                RangeState::Used(kind) => {
                    stats.used_pages += range.pages;
                    stats.slabs += u64::from(kind == ExtentKind::Slab);
                    stats.extents += u64::from(kind == ExtentKind::Object);
                    continue;
                }
                RangeState::Reclaimed => stats.reclaimed_pages += range.pages,
                _ => stats.retained_pages += range.pages,
            }
            // A search finds frames with and without memory.
            run = if free_end == Some(range.page) { run } else { 0 } + range.pages;
            free_end = Some(range.page + range.pages);
            stats.largest_free_pages = stats.largest_free_pages.max(run);
        }
        stats
    }

    /// NF1 to NF3, and the zone's invariants.
    pub fn check<M: Medium>(&self, medium: &M) -> Result<(), ExtentError> {
        let zone = self.zone(medium)?;
        let broken = |what, at| Err(ExtentError::Corrupt { what, at });
        if let Err(what) = zone.check() {
            return broken(what, self.config.meta);
        }
        let (mut frame, mut allocated) = (0, 0);
        let end = self.end() as usize;
        while frame < end {
            let pages = self.entry(medium, frame)?.map_or(1, |there| there.pages as usize);
            let is_extent = pages > 1 || self.entry(medium, frame)?.is_some();
            let taken = (frame..frame + pages).filter(|frame| !zone.is_free(*frame)).count();
            if is_extent && taken < pages {
                return broken("extent with free frames (NF1)", self.home(frame));
            }
            allocated += taken as u64;
            frame += pages;
        }
        if allocated != self.used.load(Ordering::Relaxed) {
            return broken("frames without an extent (NF2)", self.config.meta);
        }
        if zone.free_frames() + allocated != end as u64 {
            return broken("free frames beyond the end of the file (NF3)", self.config.meta);
        }
        Ok(())
    }
}
