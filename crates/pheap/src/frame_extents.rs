//! Extents in persistent LLFree frames, without a log (DESIGN §3.4).
//!
//! **What.** The same plans as [`Extents`](crate::Extents), where caches persist. Frames of a
//! [`PersistentZone`] are pages of the data area; a table says which of them begin an extent, and
//! how long it is. An extent of n pages is an aligned block of the next power of two, whose tail is
//! freed at once; one above 4 MiB is several blocks side by side.
//! **From.** LLFree §3.2; the extents of NVAlloc §4.3. Nothing is collected, and memory is found
//! without a lock.
//!
//! **State.** In the medium, from [`FrameConfig::meta`] on:
//! ```text
//! page   512 words             the zone's
//! rows   a bit for each page   children   16 bits for each 2 MiB
//! table  a word for each page: check 34 | is slab 1 | pages 29, or 0 where no extent begins
//! ```
//! **Invariants.** *NF1* The frames of each extent of the table are allocated. *NF2* An allocated
//! frame outside belongs to an operation under way. After a crash [`open`](FrameExtents::open)
//! frees those: the table's word, the home of the redo line, decides.
//! **Threads.** The zone's and the table's atomics; a bit for each page whose free is under way.
//! A mutex for freed ranges that wait for their decay.
//! **Failure.** As the zone's; the file has its full length from the beginning, with holes.
//! **Cost.** An extent of 2^k pages: one change of a row or a child's entry each way; others one
//! more for each set bit of the tail. `open` reads the table: 2 MiB for each GiB.

mod open;
#[cfg(test)]
mod tests;
mod tick;

use crate::extents::{Decay, Extent, ExtentError, ExtentKind, Home, PAGE_BYTES, Plan, UNIT_PAGES, mix};
use craton_base::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use craton_base::{LINE_BYTES, Medium};
use craton_frames::{
    Config, Error as ZoneError, Geometry, Kind, Local, Media, Metadata, PAGE_WORDS, PersistentZone, Request, Sizes,
    Standard,
};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Pages of the largest block of a zone.
const BLOCK: u64 = 1 << Standard::MAX_ORDER;
/// Pages of an extent at most.
const MOST_PAGES: u32 = 1 << 29;

/// Where frames and their records lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameConfig {
    /// First byte of the records, a multiple of 64; they have [`FrameConfig::meta_bytes`].
    pub meta: u64,
    /// First byte of the data area, a multiple of 64 KiB.
    pub data: u64,
    /// Pages of the data area, as long as the heap exists.
    pub pages: u64,
    pub processors: usize,
    /// Mixed into each check.
    pub salt: u64,
}

impl FrameConfig {
    fn sizes(&self) -> Sizes {
        Sizes::of::<Standard>(self.pages as usize, self.processors)
    }

    fn rows(&self) -> u64 {
        self.meta + 8 * PAGE_WORDS as u64
    }

    fn children(&self) -> u64 {
        self.rows() + (8 * self.sizes().rows as u64).next_multiple_of(LINE_BYTES)
    }

    fn table(&self) -> u64 {
        self.children() + (4 * self.sizes().children as u64).next_multiple_of(LINE_BYTES)
    }

    /// Bytes of the records.
    pub fn meta_bytes(&self) -> u64 {
        self.table() + 8 * self.pages - self.meta
    }
}

/// The volatile part of a zone, which outlives its [`FrameExtents`].
pub struct FrameMemory {
    trees: Vec<AtomicU16>,
    index: Vec<AtomicU64>,
    locals: Vec<Local>,
}

impl FrameMemory {
    pub fn new(config: &FrameConfig) -> Self {
        fn array<T: Default>(len: usize) -> Vec<T> {
            (0..len).map(|_| T::default()).collect()
        }
        let sizes = config.sizes();
        Self { trees: array(sizes.trees), index: array(sizes.index), locals: array(sizes.locals) }
    }
}

/// The zone's view of the medium: flushes by address.
#[derive(Clone, Copy)]
pub(crate) struct Through<'m, M> {
    medium: &'m M,
    /// Of the zone's page, and its offset.
    address: usize,
    at: u64,
}

impl<M: Medium> Media for Through<'_, M> {
    #[inline(always)]
    fn flush<W>(&self, word: &W) {
        if M::FLUSHES {
            self.medium.flush(self.at + (core::ptr::from_ref(word).addr() - self.address) as u64);
        }
    }

    #[inline(always)]
    fn fence(&self) {
        if M::FLUSHES {
            self.medium.fence();
        }
    }
}

/// The extents of a heap, as frames.
pub struct FrameExtents<'m, M> {
    medium: &'m M,
    config: FrameConfig,
    zone: PersistentZone<'m, Standard, Through<'m, M>>,
    table: &'m [AtomicU64],
    /// Pages whose extent's free is planned.
    freeing: Vec<AtomicU64>,
    freed: Mutex<Freed>,
}

/// Freed ranges that still have their memory, oldest first: first page, pages, epoch.
struct Freed {
    ranges: VecDeque<(u64, u64, u64)>,
    pages: u64,
    decay: Decay,
}

fn parts<'m, M: Medium>(
    medium: &'m M,
    memory: &'m FrameMemory,
    config: &FrameConfig,
) -> Option<(&'m [AtomicU64], Metadata<'m>, &'m [AtomicU64])> {
    let sizes = config.sizes();
    let metadata = Metadata {
        rows: medium.words(config.rows(), sizes.rows)?,
        children: medium.half_words(config.children(), sizes.children)?,
        trees: &memory.trees,
        index: &memory.index,
        locals: &memory.locals,
    };
    let table = medium.words(config.table(), config.pages as usize)?;
    Some((medium.words(config.meta, PAGE_WORDS)?, metadata, table))
}

impl<'m, M: Medium> FrameExtents<'m, M> {
    fn zone_config(config: &FrameConfig) -> Config {
        Config { claims: false, ..Config::new(config.processors) }
    }

    /// The frame of a page.
    fn frame(&self, page: u64) -> Option<usize> {
        let frame = page.checked_sub(self.config.data / PAGE_BYTES)?;
        (frame < self.config.pages).then_some(frame as usize)
    }

    fn page(&self, frame: usize) -> u64 {
        self.config.data / PAGE_BYTES + frame as u64
    }

    fn home(&self, frame: usize) -> u64 {
        self.config.table() + 8 * frame as u64
    }

    fn encode(&self, frame: usize, pages: u32, kind: ExtentKind) -> u64 {
        let word = u64::from(pages) | u64::from(kind == ExtentKind::Slab) << 29;
        word | mix(self.config.salt, frame as u64, word) << 30
    }

    /// The extent that begins at a frame. Error: no writer wrote the word.
    fn entry(&self, frame: usize) -> Result<Option<Extent>, ExtentError> {
        // ORDERING: pairs with the release of `Medium::store`, by which the caller stored the home.
        let word = self.table[frame].load(Ordering::Acquire);
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

    fn request(&self, order: u32, kind: ExtentKind) -> Request {
        let kind = if kind == ExtentKind::Slab { Kind::Unmovable } else { Kind::Movable };
        Request { order, kind, processor: seat() % self.config.processors }
    }

    /// Plans an extent of `pages`. Slabs are one unit.
    pub fn plan_alloc(&self, pages: u32, kind: ExtentKind) -> Result<Plan, ExtentError> {
        if pages == 0 || pages >= MOST_PAGES {
            return Err(ExtentError::Pages { pages });
        }
        let size = u64::from(pages);
        let (frame, end) = if size <= BLOCK {
            let order = pages.next_power_of_two().trailing_zeros();
            // An aligned block of 16 is a unit; smaller ones lie in one.
            let request = self.request(order, kind);
            let frame = self.zone.get(request).map_err(|_| ExtentError::NoMemory)?;
            (frame, frame + (1 << order))
        } else {
            let frame = self.get_blocks(size).ok_or(ExtentError::NoMemory)?;
            (frame, frame + size.next_multiple_of(BLOCK) as usize)
        };
        self.put(frame + pages as usize, end);
        let home = Home { at: self.home(frame), value: self.encode(frame, pages, kind) };
        Ok(Plan { page: self.page(frame), pages, home })
    }

    /// Allocates whole blocks side by side.
    #[cold]
    fn get_blocks(&self, pages: u64) -> Option<usize> {
        let blocks = pages.div_ceil(BLOCK) as usize;
        let all = self.zone.frames() / BLOCK as usize;
        let (mut first, mut next) = (0, 0);
        while first + blocks <= all {
            if next == first + blocks {
                return Some(first * BLOCK as usize);
            }
            if self.zone.get_at(next * BLOCK as usize, Standard::MAX_ORDER).is_err() {
                self.put(first * BLOCK as usize, next * BLOCK as usize);
                first = next + 1;
            }
            next += 1;
        }
        None
    }

    /// Frees frames, by aligned blocks.
    fn put(&self, from: usize, to: usize) {
        for (frame, order) in blocks(from, to) {
            let done = self.zone.put(frame, self.request(order, ExtentKind::Object));
            debug_assert_eq!(done, Ok(()), "frame {frame} of order {order}");
        }
    }

    /// Plans the free of the extent that begins at `page`.
    pub fn plan_free(&self, page: u64) -> Result<Plan, ExtentError> {
        let not_allocated = ExtentError::NotAllocated { page };
        let frame = self.frame(page).ok_or(not_allocated)?;
        let bit = 1 << (frame % 64);
        // ORDERING: the bit orders two frees of one page: the second reads the table after the
        // first has cleared the bit (release in `clear`), and so sees the stored home.
        if self.freeing[frame / 64].fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Err(not_allocated);
        }
        match self.entry(frame) {
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
    pub fn finish_free(&self, plan: &Plan, epoch: u64) {
        let Some(frame) = self.frame(plan.page) else { return };
        // Before the frames can belong to another extent.
        self.clear(frame);
        self.put(frame, frame + plan.pages as usize);
        let mut freed = self.freed.lock().unwrap_or_else(PoisonError::into_inner);
        freed.ranges.push_back((plan.page, u64::from(plan.pages), epoch));
        freed.pages += u64::from(plan.pages);
    }

    /// Drops a plan whose line was never written.
    pub fn cancel(&self, plan: &Plan) {
        let Some(frame) = self.frame(plan.page) else { return };
        if plan.home.value == 0 {
            self.clear(frame);
        } else {
            self.put(frame, frame + plan.pages as usize);
        }
    }

    /// The extent that contains a page.
    pub fn extent_at(&self, page: u64) -> Option<Extent> {
        let frame = self.frame(page)?;
        let covers = |first: usize| {
            let there = self.entry(first).ok()??;
            (page < there.page + u64::from(there.pages)).then_some(there)
        };
        // An extent up to 4 MiB begins at a multiple of a power of two above its length.
        if let Some(there) = (0..=Standard::MAX_ORDER).find_map(|order| covers(frame >> order << order)) {
            return Some(there);
        }
        let block = BLOCK as usize;
        let first = (0..frame / block).rev().map(|nth| nth * block).find(|first| self.has_entry(*first))?;
        covers(first)
    }

    fn has_entry(&self, frame: usize) -> bool {
        matches!(self.entry(frame), Ok(Some(_)))
    }

    /// The extents in use, by address.
    pub fn list(&self) -> Vec<Extent> {
        let mut found = Vec::new();
        let mut frame = 0;
        while frame < self.table.len() {
            match self.entry(frame) {
                Ok(Some(there)) => {
                    frame += there.pages as usize;
                    found.push(there);
                }
                _ => frame += 1,
            }
        }
        found
    }

    /// Free pages, those of operations under way not counted.
    pub fn free_pages(&self) -> u64 {
        self.zone.free_frames() as u64
    }

    /// Ends the zone, so that the next [`open`](Self::open) need not read its rows.
    pub fn close(self) {
        self.zone.close();
    }
}

/// Frames as aligned blocks.
fn blocks(from: usize, to: usize) -> impl Iterator<Item = (usize, u32)> {
    let mut at = from;
    std::iter::from_fn(move || {
        if at >= to {
            return None;
        }
        let order = at.trailing_zeros().min((to - at).ilog2()).min(Standard::MAX_ORDER);
        at += 1 << order;
        Some((at - (1 << order), order))
    })
}

/// A number for each thread, in place of its CPU's: the zone takes any.
fn seat() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // ORDERING: relaxed; it only counts.
    thread_local!(static SEAT: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    SEAT.with(|seat| *seat)
}

fn refused(error: ZoneError, at: u64) -> ExtentError {
    match error {
        ZoneError::NoMemory => ExtentError::NoMemory,
        _ => ExtentError::Corrupt { what: "zone of frames", at },
    }
}

const _: () = assert!(UNIT_PAGES.is_power_of_two());
