//! Creates and opens extents in frames.

use super::grow::Backed;
use super::tick::Decays;
use super::zone::{Memory, Zone};
use super::{FrameConfig, FrameExtents};
use crate::extents::{Extent, ExtentError, PAGE_BYTES};
use crate::sync::Mutex;
use craton_base::atomic::{AtomicU64, Ordering};
use craton_base::{Medium, Space};

impl FrameExtents {
    /// The records are zero, and the medium has at least a unit of data.
    pub fn create<M: Medium + Space>(medium: &M, config: FrameConfig) -> Result<Self, ExtentError> {
        let memory = Memory::new(&config);
        let first = config.meta / PAGE_BYTES * PAGE_BYTES;
        medium
            .allocate(first, config.table().next_multiple_of(PAGE_BYTES) - first)
            .map_err(|_| ExtentError::NoMemory)?;
        Zone::create(medium, &memory, &config)?;
        let new = Self::over(medium, config, memory, 0);
        let end = new.end() as usize;
        new.back_table(medium, 0..end as u64)?;
        new.zone(medium)?.put(0..end);
        Ok(new)
    }

    /// Call after redo. Returns how many pages without an extent were freed (NF2).
    pub fn open<M: Medium + Space>(
        medium: &M,
        config: FrameConfig,
        is_crash: bool,
    ) -> Result<(Self, u64), ExtentError> {
        let memory = Memory::new(&config);
        let (_, is_closed) = Zone::open(medium, &memory, &config)?;
        // Which free pages have memory is unknown.
        let found = Self::over(medium, config, memory, u64::MAX);
        let freed = found.match_table(medium, is_crash || !is_closed)?;
        Ok((found, freed))
    }

    fn over<M: Medium>(medium: &M, config: FrameConfig, memory: Memory, backed: u64) -> Self {
        let new = Self {
            config,
            table: config.table(),
            memory,
            freeing: (0..config.pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            backed: Backed::new(config.pages, 0),
            used: AtomicU64::new(0),
            end: AtomicU64::new(0),
            growth: Mutex::new(()),
            decays: Mutex::new(Decays::new()),
        };
        let end = new.pages_of(medium);
        Self { backed: Backed::new(config.pages, backed.min(end)), end: AtomicU64::new(end), ..new }
    }

    /// Verifies NF1 to NF3, and restores NF2. Returns the pages freed.
    fn match_table<M: Medium>(&self, medium: &M, is_crash: bool) -> Result<u64, ExtentError> {
        let (zone, end) = (self.zone(medium)?, self.end() as usize);
        let extents = self.entries(medium, end)?;
        let used = extents.iter().map(|there| u64::from(there.pages)).sum();
        self.used.store(used, Ordering::Relaxed);
        let is_right = || zone.free_frames() + used == end as u64;
        // A closed heap may have had reserved extents.
        if !is_crash && is_right() {
            return Ok(0);
        }
        let (mut freed, mut last) = (0, 0);
        for there in extents {
            let first = (there.page - self.page(0)) as usize;
            let frames = first..first + there.pages as usize;
            if frames.clone().any(|frame| zone.is_free(frame)) {
                return Err(ExtentError::Corrupt { what: "entry of an extent with free frames", at: self.home(first) });
            }
            freed += free_lost(&zone, last..first);
            last = frames.end;
        }
        freed += free_lost(&zone, last..end);
        if is_right() {
            return Ok(freed);
        }
        Err(ExtentError::Corrupt { what: "zone with free frames beyond the file's end", at: self.config.meta })
    }

    /// By address. Error: an overlap, or one beyond the end.
    fn entries<M: Medium>(&self, medium: &M, end: usize) -> Result<Vec<Extent>, ExtentError> {
        let mut found = Vec::new();
        let mut last = 0;
        for frame in 0..end {
            let Some(there) = self.entry(medium, frame)? else { continue };
            let next = frame + there.pages as usize;
            if frame < last || next > end {
                let what = "entry of an extent, which overlaps another or the end of the file";
                return Err(ExtentError::Corrupt { what, at: self.home(frame) });
            }
            last = next;
            found.push(there);
        }
        Ok(found)
    }
}

fn free_lost<M: Medium>(zone: &Zone<'_, M>, frames: std::ops::Range<usize>) -> u64 {
    let lost = frames.filter(|frame| !zone.is_free(*frame));
    lost.map(|frame| zone.put(frame..frame + 1)).count() as u64
}
