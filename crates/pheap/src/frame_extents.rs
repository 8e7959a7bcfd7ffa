//! Extents in persistent LLFree frames, without a log (LLFree §3.2, NVAlloc §4.3).
//!
//! Pages of the data area are frames of a [`PersistentZone`](craton_frames::PersistentZone). An
//! extent of n pages is an aligned block of the next power of two, whose tail is freed at once; one
//! above 4 MiB is several blocks side by side.
//!
//! **State.** In the medium, from [`FrameConfig::meta`] on:
//! ```text
//! page   512 words             the zone's
//! rows   a bit for each page   children   16 bits for each 2 MiB
//! table  a word for each page: check 34 | is slab 1 | pages 29, or 0 where no extent begins
//! ```
//!
//! **Invariants.** *NF1* The frames of each extent of the table are allocated. *NF2* Other
//! allocated frames belong to operations under way; after a crash [`open`](FrameExtents::open)
//! frees them. *NF3* Frames beyond the end of the file are allocated.
//!
//! **Cost.** `open` reads the table: 2 MiB for each GiB.

mod check;
mod grow;
mod open;
#[cfg(test)]
mod tests;
mod tick;
mod zone;

use crate::extents::{Extent, ExtentError, ExtentKind, Home, PAGE_BYTES, Plan, UNIT_PAGES, mix};
use crate::sync::Mutex;
use craton_base::atomic::{AtomicU64, AtomicUsize, Ordering};
use craton_base::{LINE_BYTES, Medium, Space};
use craton_frames::{Geometry, PAGE_WORDS, Sizes, Standard};
use grow::Backed;
use tick::Decays;
use zone::{Memory, Zone};

const BLOCK: u64 = 1 << Standard::MAX_ORDER;
const MOST_PAGES: u32 = 1 << 29;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameConfig {
    /// First byte of the records, a multiple of 64.
    pub meta: u64,
    /// First byte of the data area, a multiple of 64 KiB.
    pub data: u64,
    pub pages: u64,
    /// Threads that do not share the zone's hints.
    pub processors: usize,
    pub salt: u64,
}

impl FrameConfig {
    const fn sizes(&self) -> Sizes {
        Sizes::of::<Standard>(self.pages as usize, self.processors)
    }

    const fn children(&self) -> u64 {
        self.meta + (8 * (PAGE_WORDS + self.sizes().rows) as u64).next_multiple_of(LINE_BYTES)
    }

    const fn table(&self) -> u64 {
        self.children() + (4 * self.sizes().children as u64).next_multiple_of(LINE_BYTES)
    }

    /// Bytes of the records.
    pub const fn bytes_for(pages: u64) -> u64 {
        let config = Self { meta: 0, data: 0, pages, processors: 1, salt: 0 };
        config.table() + 8 * pages
    }
}

pub struct FrameExtents {
    config: FrameConfig,
    table: u64,
    memory: Memory,
    /// A bit for each page whose extent's free is planned.
    freeing: Box<[AtomicU64]>,
    backed: Backed,
    /// In pages, with planned extents.
    used: AtomicU64,
    /// Pages of data in the file.
    end: AtomicU64,
    /// Held while the file changes its length.
    growth: Mutex<()>,
    decays: Mutex<Decays>,
}

impl FrameExtents {
    fn frame(&self, page: u64) -> Option<usize> {
        let frame = page.checked_sub(self.config.data / PAGE_BYTES)?;
        (frame < self.config.pages).then_some(frame as usize)
    }

    fn page(&self, frame: usize) -> u64 {
        self.config.data / PAGE_BYTES + frame as u64
    }

    fn home(&self, frame: usize) -> u64 {
        self.table + 8 * frame as u64
    }

    fn end(&self) -> u64 {
        // ORDERING: pairs with the release in `grow`: the frames before the end are the zone's.
        self.end.load(Ordering::Acquire)
    }

    fn encode(&self, frame: usize, pages: u32, kind: ExtentKind) -> u64 {
        let word = u64::from(pages) | u64::from(kind == ExtentKind::Slab) << 29;
        word | mix(self.config.salt, frame as u64, word) << 30
    }

    /// Error: the word is invalid.
    fn entry<M: Medium>(&self, medium: &M, frame: usize) -> Result<Option<Extent>, ExtentError> {
        // ORDERING: pairs with the release of `Medium::store`.
        let word = medium.word(self.home(frame)).load(Ordering::Acquire);
        if word == 0 {
            return Ok(None);
        }
        let pages = (word & u64::from(MOST_PAGES - 1)) as u32;
        let kind = if word >> 29 & 1 == 1 { ExtentKind::Slab } else { ExtentKind::Object };
        let fits = pages > 0 && u64::from(pages) <= self.config.pages - frame as u64;
        if word != self.encode(frame, pages, kind) || !fits {
            return Err(ExtentError::Corrupt { what: "entry of an extent", at: self.home(frame) });
        }
        Ok(Some(Extent { page: self.page(frame), pages, kind }))
    }

    /// Slabs are one unit.
    pub fn plan_alloc<M: Medium + Space>(&self, medium: &M, pages: u32, kind: ExtentKind) -> Result<Plan, ExtentError> {
        if pages == 0 || pages >= MOST_PAGES {
            return Err(ExtentError::Pages { pages });
        }
        let zone = self.zone(medium)?;
        let frame = loop {
            let end = self.end();
            match self.get(&zone, pages, kind) {
                Some(frame) => break frame,
                None if self.grow(&zone, u64::from(pages), end) => {}
                None => return Err(ExtentError::NoMemory),
            }
        };
        let frames = frame..frame + pages as usize;
        if !self.back(medium, frames.clone()) {
            zone.put(frames);
            return Err(ExtentError::NoMemory);
        }
        self.used.fetch_add(pages.into(), Ordering::Relaxed);
        let home = Home { at: self.home(frame), value: self.encode(frame, pages, kind) };
        Ok(Plan { page: self.page(frame), pages, home })
    }

    fn get<M: Medium>(&self, zone: &Zone<'_, M>, pages: u32, kind: ExtentKind) -> Option<usize> {
        let size = u64::from(pages);
        let (frame, end) = if size <= BLOCK {
            // An aligned block of 16 is a unit; smaller ones lie in one.
            let order = pages.next_power_of_two().trailing_zeros();
            let frame = zone.get(order, kind, seat() % self.config.processors)?;
            (frame, frame + (1 << order))
        } else {
            let frame = self.get_blocks(zone, size)?;
            (frame, frame + size.next_multiple_of(BLOCK) as usize)
        };
        zone.put(frame + pages as usize..end);
        Some(frame)
    }

    /// Whole blocks side by side, above 4 MiB.
    #[cold]
    fn get_blocks<M: Medium>(&self, zone: &Zone<'_, M>, pages: u64) -> Option<usize> {
        let blocks = pages.div_ceil(BLOCK) as usize;
        let all = (self.end() / BLOCK) as usize;
        let (mut first, mut next) = (0, 0);
        while first + blocks <= all {
            if next == first + blocks {
                return Some(first * BLOCK as usize);
            }
            if !zone.get_at(next * BLOCK as usize, Standard::MAX_ORDER) {
                zone.put(first * BLOCK as usize..next * BLOCK as usize);
                first = next + 1;
            }
            next += 1;
        }
        None
    }

    pub fn plan_free<M: Medium>(&self, medium: &M, page: u64) -> Result<Plan, ExtentError> {
        let not_allocated = ExtentError::NotAllocated { page };
        let frame = self.frame(page).ok_or(not_allocated)?;
        let bit = 1 << (frame % 64);
        // ORDERING: pairs with the release in `clear`: a second free of the page then sees the
        // first one's stored home.
        if self.freeing[frame / 64].fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Err(not_allocated);
        }
        match self.entry(medium, frame) {
            Ok(Some(there)) => Ok(Plan { page, pages: there.pages, home: Home { at: self.home(frame), value: 0 } }),
            refused => {
                self.clear(frame);
                refused.and(Err(not_allocated))
            }
        }
    }

    fn clear(&self, frame: usize) {
        // ORDERING: release, pairs with `plan_free`.
        self.freeing[frame / 64].fetch_and(!(1 << (frame % 64)), Ordering::AcqRel);
    }

    /// Call when the line, of `epoch`, is committed and the home word stored.
    pub fn finish_free<M: Medium>(&self, medium: &M, plan: &Plan, epoch: u64) {
        let Some(frame) = self.frame(plan.page) else { return };
        let frames = frame..frame + plan.pages as usize;
        self.backed.freed(frames.clone(), epoch);
        // Before another extent can get the frames.
        self.clear(frame);
        self.give_back(medium, frames);
    }

    /// The line was never written.
    pub fn cancel<M: Medium>(&self, medium: &M, plan: &Plan) {
        let Some(frame) = self.frame(plan.page) else { return };
        if plan.home.value == 0 {
            self.clear(frame);
        } else {
            self.give_back(medium, frame..frame + plan.pages as usize);
        }
    }

    fn give_back<M: Medium>(&self, medium: &M, frames: std::ops::Range<usize>) {
        self.used.fetch_sub(frames.len() as u64, Ordering::Relaxed);
        match self.zone(medium) {
            Ok(zone) => zone.put(frames),
            Err(error) => debug_assert!(false, "{error}"),
        }
    }

    pub fn extent_at<M: Medium>(&self, medium: &M, page: u64) -> Option<Extent> {
        let frame = self.frame(page)?;
        let covers = |first: usize| {
            let there = self.entry(medium, first).ok()??;
            (page < there.page + u64::from(there.pages)).then_some(there)
        };
        // One up to 4 MiB is aligned to a power of two above its length.
        if let Some(there) = (0..=Standard::MAX_ORDER).find_map(|order| covers(frame >> order << order)) {
            return Some(there);
        }
        let block = BLOCK as usize;
        let begins = |first: &usize| matches!(self.entry(medium, *first), Ok(Some(_)));
        let first = (0..frame / block).rev().map(|nth| nth * block).find(begins)?;
        covers(first)
    }

    /// By address.
    pub fn list<M: Medium>(&self, medium: &M) -> Vec<Extent> {
        let mut found = Vec::new();
        let (mut frame, end) = (0, self.end() as usize);
        while frame < end {
            match self.entry(medium, frame) {
                Ok(Some(there)) => {
                    frame += there.pages as usize;
                    found.push(there);
                }
                _ => frame += 1,
            }
        }
        found
    }

    /// Spares the next [`open`](Self::open) reading the zone's rows.
    pub fn close<M: Medium>(&self, medium: &M) {
        if let Ok(zone) = self.zone(medium) {
            zone.close();
        }
    }
}

/// Each thread's number, in place of its CPU's.
fn seat() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // ORDERING: relaxed; a count.
    thread_local!(static SEAT: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    SEAT.with(|seat| *seat)
}

const _: () = assert!(UNIT_PAGES.is_power_of_two());
