//! Extents in persistent LLFree frames, without a log (DESIGN §3.4).
//!
//! **What.** The same plans as [`Extents`](crate::Extents), without a list of ranges in DRAM.
//! Frames of a [`PersistentZone`](craton_frames::PersistentZone) are pages of the data area; a
//! table lists where extents begin, and their lengths. An extent of n pages is an aligned block of
//! the next power of two, whose tail is freed at once; one above 4 MiB is several blocks side by
//! side.
//!
//! **From.** LLFree §3.2; the extents of NVAlloc §4.3. No log is collected, and a search takes no
//! lock.
//!
//! **State.** In the medium, from [`FrameConfig::meta`] on:
//! ```text
//! page   512 words             the zone's
//! rows   a bit for each page   children   16 bits for each 2 MiB
//! table  a word for each page: check 34 | is slab 1 | pages 29, or 0 where no extent begins
//! ```
//! In DRAM the zone's upper level; of each page whether its free is planned, and whether it has
//! memory; of 64 pages the last epoch of a free.
//!
//! **Invariants.** *NF1* The frames of each extent of the table are allocated. *NF2* An allocated
//! frame outside belongs to an operation under way. After a crash [`open`](FrameExtents::open)
//! frees those: the table's word, the home of the redo line, decides. *NF3* Frames beyond the end
//! of the file are allocated.
//!
//! **Threads.** The zone's and the table's atomics. Mutexes for the file's length, and for the work
//! of `tick`. **Failure.** A refused plan has changed nothing.
//!
//! **Cost.** An extent of 2^k pages: one change of a row or a child's entry each way; others one
//! more for each set bit of the tail. `open` reads the table up to the end of the file: 2 MiB for
//! each GiB.

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

/// Pages of the largest block of a zone.
const BLOCK: u64 = 1 << Standard::MAX_ORDER;
const MOST_PAGES: u32 = 1 << 29;

/// Where frames and their records lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameConfig {
    /// First byte of the records, a multiple of 64; they take [`FrameConfig::bytes_for`] the pages.
    pub meta: u64,
    /// First byte of the data area, a multiple of 64 KiB.
    pub data: u64,
    /// Most pages of the data area.
    pub pages: u64,
    /// Threads that do not share the zone's hints.
    pub processors: usize,
    /// Mixed into each check.
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

    /// Bytes of the records of this many pages.
    pub const fn bytes_for(pages: u64) -> u64 {
        let config = Self { meta: 0, data: 0, pages, processors: 1, salt: 0 };
        config.table() + 8 * pages
    }
}

pub struct FrameExtents {
    config: FrameConfig,
    /// Where the table begins.
    table: u64,
    memory: Memory,
    /// Pages whose extent's free is planned.
    freeing: Box<[AtomicU64]>,
    backed: Backed,
    /// With planned extents.
    used: AtomicU64,
    /// Pages of the data area that the file has.
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

    /// Pages of the data area that the file has.
    fn end(&self) -> u64 {
        // ORDERING: pairs with the release in `grow`: the frames before the end are the zone's.
        self.end.load(Ordering::Acquire)
    }

    fn encode(&self, frame: usize, pages: u32, kind: ExtentKind) -> u64 {
        let word = u64::from(pages) | u64::from(kind == ExtentKind::Slab) << 29;
        word | mix(self.config.salt, frame as u64, word) << 30
    }

    /// Error: no writer wrote the word.
    fn entry<M: Medium>(&self, medium: &M, frame: usize) -> Result<Option<Extent>, ExtentError> {
        // ORDERING: pairs with the release of `Medium::store` that stored the home.
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

    /// Frames for an extent.
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

    /// Whole blocks side by side.
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

    /// The extent begins at `page`.
    pub fn plan_free<M: Medium>(&self, medium: &M, page: u64) -> Result<Plan, ExtentError> {
        let not_allocated = ExtentError::NotAllocated { page };
        let frame = self.frame(page).ok_or(not_allocated)?;
        let bit = 1 << (frame % 64);
        // ORDERING: the bit orders two frees of one page: the second reads the table after the
        // first has cleared the bit (release in `clear`), and so sees the stored home.
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

    /// Ends a free whose line, of `epoch`, is committed and whose home word is stored.
    pub fn finish_free<M: Medium>(&self, medium: &M, plan: &Plan, epoch: u64) {
        let Some(frame) = self.frame(plan.page) else { return };
        let frames = frame..frame + plan.pages as usize;
        self.backed.freed(frames.clone(), epoch);
        // Before the frames can belong to another extent.
        self.clear(frame);
        self.give_back(medium, frames);
    }

    /// Drops a plan whose line was never written.
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

    /// The extent that contains a page.
    pub fn extent_at<M: Medium>(&self, medium: &M, page: u64) -> Option<Extent> {
        let frame = self.frame(page)?;
        let covers = |first: usize| {
            let there = self.entry(medium, first).ok()??;
            (page < there.page + u64::from(there.pages)).then_some(there)
        };
        // An extent up to 4 MiB begins at a multiple of a power of two above its length.
        if let Some(there) = (0..=Standard::MAX_ORDER).find_map(|order| covers(frame >> order << order)) {
            return Some(there);
        }
        let block = BLOCK as usize;
        let begins = |first: &usize| matches!(self.entry(medium, *first), Ok(Some(_)));
        let first = (0..frame / block).rev().map(|nth| nth * block).find(begins)?;
        covers(first)
    }

    /// The extents in use, by address.
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

    /// Closes the zone, so that the next [`open`](Self::open) need not read its rows.
    pub fn close<M: Medium>(&self, medium: &M) {
        if let Ok(zone) = self.zone(medium) {
            zone.close();
        }
    }
}

/// A number for each thread, in place of its CPU's: the zone takes any.
fn seat() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // ORDERING: relaxed; it only counts.
    thread_local!(static SEAT: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    SEAT.with(|seat| *seat)
}

const _: () = assert!(UNIT_PAGES.is_power_of_two());
