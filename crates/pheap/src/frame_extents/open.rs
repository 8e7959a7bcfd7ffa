//! Creates and opens extents in frames. After a crash, frames without an extent are freed.

use super::{FrameConfig, FrameExtents, FrameMemory, Freed, Through, parts, refused};
use crate::extents::{Decay, Extent, ExtentError, PAGE_BYTES};
use craton_base::Medium;
use craton_frames::{Init, Opened, PersistentZone};
use std::collections::VecDeque;
use std::sync::Mutex;

const NO_ARRAYS: &str = "records of frames, which need a medium with arrays";

impl<'m, M: Medium> FrameExtents<'m, M> {
    /// Makes a zone without extents, whatever was there; the medium has its full length.
    pub fn create(medium: &'m M, memory: &'m FrameMemory, config: FrameConfig) -> Result<Self, ExtentError> {
        let corrupt = ExtentError::Corrupt { what: NO_ARRAYS, at: config.meta };
        let (page, metadata, table) = parts(medium, memory, &config).ok_or(corrupt)?;
        for at in 0..config.pages {
            let at = config.table() + 8 * at;
            // Holes of the file stay holes.
            if medium.word(at).load(craton_base::atomic::Ordering::Relaxed) != 0 {
                medium.store(at, 0);
                medium.flush(at);
            }
        }
        medium.fence();
        let through = Through { medium, address: page.as_ptr().addr(), at: config.meta };
        let frames = config.pages as usize;
        let zone_config = Self::zone_config(&config);
        let zone = PersistentZone::create(frames, page, metadata, Init::Free, zone_config, through)
            .map_err(|error| refused(error, config.meta))?;
        Ok(Self::over(medium, config, zone, table))
    }

    /// Opens a zone whose table's redo lines were redone. NF2 after a crash: returns how many pages
    /// without an extent were freed.
    pub fn open(medium: &'m M, memory: &'m FrameMemory, config: FrameConfig) -> Result<(Self, u64), ExtentError> {
        let corrupt = ExtentError::Corrupt { what: NO_ARRAYS, at: config.meta };
        let (page, metadata, table) = parts(medium, memory, &config).ok_or(corrupt)?;
        let through = Through { medium, address: page.as_ptr().addr(), at: config.meta };
        let zone_config = Self::zone_config(&config);
        let (zone, opened) = PersistentZone::open(config.pages as usize, page, metadata, zone_config, through)
            .map_err(|error| refused(error, config.meta))?;
        let found = Self::over(medium, config, zone, table);
        let freed = found.match_table(opened != Opened::Clean)?;
        Ok((found, freed))
    }

    fn over(
        medium: &'m M,
        config: FrameConfig,
        zone: PersistentZone<'m, craton_frames::Standard, Through<'m, M>>,
        table: &'m [craton_base::atomic::AtomicU64],
    ) -> Self {
        let freeing = (0..config.pages.div_ceil(64)).map(|_| Default::default()).collect();
        let freed = Mutex::new(Freed { ranges: VecDeque::new(), pages: 0, decay: Decay::new() });
        Self { medium, config, zone, table, freeing, freed }
    }

    /// Verifies NF1, and NF2 or makes it so.
    fn match_table(&self, is_crash: bool) -> Result<u64, ExtentError> {
        let mut freed = 0;
        let mut last: Option<Extent> = None;
        let mut at = 0;
        for frame in 0..self.table.len() {
            let Some(there) = self.entry(frame)? else { continue };
            let is_overlap = last.is_some_and(|last| last.page + u64::from(last.pages) > there.page);
            let end = frame + there.pages as usize;
            if is_overlap || is_crash && (frame..end).any(|frame| self.zone.is_free(frame) != Ok(false)) {
                let what = "entry of an extent, which overlaps another or has free frames";
                return Err(ExtentError::Corrupt { what, at: self.home(frame) });
            }
            if is_crash {
                freed += self.free_between(at, frame);
            }
            (last, at) = (Some(there), end);
        }
        if is_crash {
            freed += self.free_between(at, self.table.len());
        }
        debug_assert!(last.is_none_or(|last| last.page >= self.config.data / PAGE_BYTES));
        Ok(freed)
    }

    fn free_between(&self, from: usize, to: usize) -> u64 {
        let lost = (from..to).filter(|frame| self.zone.is_free(*frame) == Ok(false));
        lost.map(|frame| self.put(frame, frame + 1)).count() as u64
    }
}
