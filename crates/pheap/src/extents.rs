//! Extents: page ranges of the data area, for large objects and slabs (NVAlloc §2.2 and §4.3).
//!
//! DRAM has every range; the bookkeeping log has those in use. The caller commits a plan by a redo
//! line with the plan's [`Home`], then stores the home word.
//! ```text
//! plan_alloc → commit → store home             plan_free → commit → store home → finish_free
//! plan_alloc → cancel                          plan_free → cancel
//! ```
//!
//! **From.** Where we differ: one index over the reclaimed and the retained list; extents above 2
//! MiB are like others; tags at a range's ends find neighbours, not an R-tree.
//!
//! **Invariants.** *E5* A freed range loses its memory or its place in the file, or becomes log,
//! only once the epoch of its free is settled: until then a crash may redo lines into it.
//!
//! **Failure.** A free needs a slot of the log. If the chunks kept for frees are full too, settle,
//! `tick`, and try again.
//!
//! **Cost.** Of DRAM, 5 bytes a page and 80 a range.

mod bins;
mod check;
mod decay;
mod map;
mod nodes;
mod open;
mod plan;
mod starts;
mod tags;
#[cfg(test)]
mod tests;
mod tick;

pub(crate) use crate::book_log::mix;
use crate::book_log::{self, BookLog, ChunkView, Entry, LogConfig, LogStats, UNIT_BYTES};
use crate::sync::{Mutex, MutexGuard};
use craton_base::atomic::{AtomicU64, Ordering};
use craton_base::{Medium, Space};
pub(crate) use decay::{Decay, STEP_MS};
use map::Map;
use nodes::State;
use std::sync::PoisonError;

pub use plan::{Extent, ExtentError, ExtentKind, Home, PAGE_BYTES, Plan, Range, RangeState, UNIT_PAGES};

/// And by 1/32 of its length, which bounds the spare room.
const GROWTH_BYTES: u64 = 1 << 20;
const GROWTH_PART: u64 = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentConfig {
    /// A multiple of 64 KiB. The data area ends with the medium.
    pub data: u64,
    pub log: LogConfig,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExtentStats {
    pub extents: u64,
    pub slabs: u64,
    pub used_pages: u64,
    pub log_pages: u64,
    pub reclaimed_pages: u64,
    pub retained_pages: u64,
    pub discarding_pages: u64,
    /// The longest free range.
    pub largest_free_pages: u64,
    pub log: LogStats,
}

pub struct Extents {
    inner: Mutex<Inner>,
    /// At least that of any line written.
    epoch: AtomicU64,
    /// Step and settled epoch.
    ticked: [AtomicU64; 2],
}

struct Inner {
    map: Map,
    log: BookLog,
    settled: u64,
    reclaimed: Decay,
    retained: Decay,
    can_shrink: bool,
    keeps_length: bool,
    can_discard: bool,
    /// The file's largest size.
    most: u64,
}

impl Extents {
    /// Ignores the contents.
    pub fn create<M: Medium>(medium: &M, config: ExtentConfig) -> Self {
        let log = BookLog::create(medium, config.log);
        let mut map = Map::new(config.data / PAGE_BYTES);
        let end = medium.len() / PAGE_BYTES;
        if end > map.first() {
            map.extend(end, State::Retained);
        }
        Self::over(map, log)
    }

    fn over(map: Map, log: BookLog) -> Self {
        let inner = Inner {
            map,
            log,
            settled: 0,
            reclaimed: Decay::new(),
            retained: Decay::new(),
            can_shrink: true,
            keeps_length: false,
            can_discard: true,
            most: u64::MAX,
        };
        // An unknown epoch: chunks that the slow collection frees stay unused.
        let never = || AtomicU64::new(u64::MAX);
        Self { inner: Mutex::new(inner), epoch: never(), ticked: [never(), never()] }
    }

    /// `pages` is below 2^26. Slabs are one unit.
    pub fn plan_alloc<M: Medium + Space>(&self, medium: &M, pages: u32, kind: ExtentKind) -> Result<Plan, ExtentError> {
        if pages == 0 || pages >> book_log::PAGES_BITS != 0 {
            return Err(ExtentError::Pages { pages });
        }
        let mut inner = self.lock();
        inner.prepare_log(medium, false, &self.epoch)?;
        let (node, before) = inner.carve(medium, u64::from(pages))?;
        let page = inner.map.nodes[node].page;
        let is_slab = kind == ExtentKind::Slab;
        let (slot, at, value) = inner.log.append(Entry::Extent { page, pages, is_slab });
        let there = &mut inner.map.nodes[node];
        (there.slot, there.kind) = (slot, kind);
        drop(inner);
        let plan = Plan { page, pages, home: Home { at, value } };
        // Without the lock: the file system may zero it.
        if before == State::Retained && medium.allocate(page * PAGE_BYTES, u64::from(pages) * PAGE_BYTES).is_err() {
            self.cancel(&plan);
            return Err(ExtentError::NoMemory);
        }
        Ok(plan)
    }

    pub fn plan_free<M: Medium + Space>(&self, medium: &M, page: u64) -> Result<Plan, ExtentError> {
        let mut inner = self.lock();
        let live = |map: &Map| map.starting_at(page).filter(|node| map.nodes[*node].state == State::Live);
        let node = live(&inner.map).ok_or(ExtentError::NotAllocated { page })?;
        inner.prepare_log(medium, true, &self.epoch)?;
        let Inner { map, log, .. } = &mut *inner;
        let there = &mut map.nodes[node];
        let (slot, at, value) = log.append_tombstone(there.slot);
        (there.tombstone, there.state) = (slot, State::Freeing);
        Ok(Plan { page, pages: there.pages as u32, home: Home { at, value } })
    }

    /// Call when the line, of `epoch`, is committed and the home word stored.
    pub fn finish_free(&self, plan: &Plan, epoch: u64) {
        let mut inner = self.lock();
        let Inner { map, log, .. } = &mut *inner;
        let Some(node) = map.starting_at(plan.page) else { return };
        let there = &map.nodes[node];
        if there.state != State::Freeing {
            debug_assert!(false, "finish_free of page {} without plan_free", plan.page);
            return;
        }
        log.end(there.slot, there.tombstone, epoch);
        let epoch = epoch.max(there.epoch);
        map.free(node, State::Reclaimed, epoch);
    }

    /// The line was never written.
    pub fn cancel(&self, plan: &Plan) {
        let mut inner = self.lock();
        let Inner { map, log, .. } = &mut *inner;
        let Some(node) = map.starting_at(plan.page) else { return };
        let there = &mut map.nodes[node];
        match (there.state, Entry::is_tombstone(plan.home.value)) {
            (State::Freeing, true) => {
                log.cancel_tombstone(there.slot, there.tombstone);
                there.state = State::Live;
            }
            (State::Live, false) => {
                log.cancel(there.slot);
                let epoch = there.epoch;
                map.free(node, State::Reclaimed, epoch);
            }
            _ => debug_assert!(false, "cancel of page {} without a plan", plan.page),
        }
    }

    /// In bytes.
    pub fn limit_to(&self, most: u64) {
        self.lock().most = most;
    }

    /// Until [`cut_kept`](Self::cut_kept).
    pub fn keep_length(&self) {
        self.lock().keeps_length = true;
    }

    /// Cuts what [`keep_length`](Self::keep_length) has kept.
    pub fn cut_kept<M: Medium + Space>(&self, medium: &M, now_ms: u64) {
        let mut inner = self.lock();
        if std::mem::take(&mut inner.keeps_length) {
            inner.shorten(medium, now_ms);
        }
    }

    /// Call before any line of `epoch` is written.
    pub fn begin_epoch(&self, epoch: u64) {
        // ORDERING: relaxed; the home word (release) of a line of the epoch orders this before
        // `compact`'s load.
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    pub fn settled(&self, epoch: u64) {
        let mut inner = self.lock();
        inner.settled = inner.settled.max(epoch);
    }

    pub fn extent_at(&self, page: u64) -> Option<Extent> {
        let inner = self.lock();
        let node = inner.map.starting_at(page).or_else(|| inner.map.containing(page))?;
        inner.map.nodes[node].extent()
    }

    /// By address.
    pub fn list(&self) -> Vec<Extent> {
        let inner = self.lock();
        inner.map.iter().filter_map(|node| inner.map.nodes[node].extent()).collect()
    }

    /// By address.
    pub fn ranges(&self) -> Vec<Range> {
        let inner = self.lock();
        let nodes = &inner.map.nodes;
        let range =
            |node: u32| Range { page: nodes[node].page, pages: nodes[node].pages, state: nodes[node].public_state() };
        inner.map.iter().map(range).collect()
    }

    /// Oldest first.
    pub fn chunks(&self) -> Vec<ChunkView> {
        self.lock().log.views().collect()
    }

    pub fn stats(&self) -> ExtentStats {
        let inner = self.lock();
        let mut stats = ExtentStats { log: inner.log.stats(), ..ExtentStats::default() };
        for node in inner.map.iter() {
            let there = &inner.map.nodes[node];
            match there.state {
                State::Live | State::Freeing => {
                    stats.used_pages += there.pages;
                    let is_slab = there.kind == ExtentKind::Slab;
                    stats.slabs += u64::from(is_slab);
                    stats.extents += u64::from(!is_slab);
                }
                State::Log => stats.log_pages += there.pages,
                State::Reclaimed => stats.reclaimed_pages += there.pages,
                State::Discarding => stats.discarding_pages += there.pages,
                State::Retained | State::Vacant => stats.retained_pages += there.pages,
            }
            if matches!(there.state, State::Reclaimed | State::Retained) {
                stats.largest_free_pages = stats.largest_free_pages.max(there.pages);
            }
        }
        stats
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    #[inline]
    fn prepare_log<M: Medium + Space>(
        &mut self,
        medium: &M,
        is_free: bool,
        epoch: &AtomicU64,
    ) -> Result<(), ExtentError> {
        if self.log.has_slot() { Ok(()) } else { self.extend_log(medium, is_free, epoch) }
    }

    #[cold]
    #[inline(never)]
    fn extend_log<M: Medium + Space>(
        &mut self,
        medium: &M,
        is_free: bool,
        epoch: &AtomicU64,
    ) -> Result<(), ExtentError> {
        self.log.collect(medium);
        if self.log.is_slow_due() {
            let needed = self.log.slow_chunks();
            while self.log.free_chunks() < needed && self.add_log_unit(medium) {}
            self.compact(medium, epoch);
            if self.log.has_slot() {
                return Ok(());
            }
        }
        while self.log.missing_chunks(is_free) > 0 {
            if !self.add_log_unit(medium) {
                return Err(ExtentError::NoMemory);
            }
        }
        if self.log.append_chunk(medium) { Ok(()) } else { Err(ExtentError::NoMemory) }
    }

    fn compact<M: Medium>(&mut self, medium: &M, epoch: &AtomicU64) -> bool {
        let Self { map, log, .. } = self;
        // ORDERING: relaxed; the home words were read (acquire) before this.
        log.compact(
            medium,
            || epoch.load(Ordering::Relaxed),
            |page, slot| {
                if let Some(node) = map.starting_at(page) {
                    map.nodes[node].slot = slot;
                }
            },
        )
    }

    /// E5: an early unit of log could get a redone line.
    fn add_log_unit<M: Medium + Space>(&mut self, medium: &M) -> bool {
        let settled = self.settled;
        let carve = |map: &mut Map| map.carve(UNIT_PAGES, State::Log, |range| range.epoch <= settled);
        let node = carve(&mut self.map).or_else(|| {
            self.grow(medium, UNIT_PAGES, State::Retained);
            carve(&mut self.map)
        });
        let Some((node, before)) = node else { return false };
        let at = self.map.nodes[node].page * PAGE_BYTES;
        if before == State::Retained && medium.allocate(at, UNIT_BYTES).is_err() {
            let epoch = self.map.nodes[node].epoch;
            self.map.free(node, State::Retained, epoch);
            return false;
        }
        self.log.add_unit(at);
        true
    }

    #[inline]
    fn carve<M: Medium + Space>(&mut self, medium: &M, pages: u64) -> Result<(u32, State), ExtentError> {
        match self.map.carve(pages, State::Live, |_| true) {
            Some(found) => Ok(found),
            None => self.carve_slowly(medium, pages).ok_or(ExtentError::NoMemory),
        }
    }

    #[cold]
    #[inline(never)]
    fn carve_slowly<M: Medium + Space>(&mut self, medium: &M, pages: u64) -> Option<(u32, State)> {
        let carve = |map: &mut Map| map.carve(pages, State::Live, |_| true);
        if self.grow(medium, pages, State::Retained) {
            return carve(&mut self.map);
        }
        // Ranges with and without memory may fit together.
        self.map.merge_all();
        carve(&mut self.map).or_else(|| {
            self.grow(medium, pages, State::Reclaimed);
            carve(&mut self.map)
        })
    }

    /// So that an extent of `pages` fits.
    fn grow<M: Medium + Space>(&mut self, medium: &M, pages: u64, state: State) -> bool {
        let end = self.map.end();
        let last = self.map.last().map(|node| &self.map.nodes[node]);
        let from = last.filter(|last| last.state == state).map_or(end, |last| last.page);
        let needed = (from.next_multiple_of(UNIT_PAGES) + pages).next_multiple_of(UNIT_PAGES) * PAGE_BYTES;
        let len = end * PAGE_BYTES;
        let wanted = len + GROWTH_BYTES.max(len / GROWTH_PART).next_multiple_of(UNIT_BYTES);
        let wanted = wanted.max(needed).min(medium.limit().min(self.most) / PAGE_BYTES * PAGE_BYTES);
        if wanted < needed || (needed / PAGE_BYTES) >> book_log::PAGE_BITS != 0 {
            return false;
        }
        let is_grown = medium.resize(wanted).is_ok() || needed < wanted && medium.resize(needed).is_ok();
        let end = medium.len() / PAGE_BYTES;
        if !is_grown || end <= self.map.end() {
            return false;
        }
        self.map.extend(end, state);
        true
    }
}
