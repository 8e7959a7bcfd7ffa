//! The trace of page heap requests (docs/trace.md), in the format of [`craton_pages::trace`].
//!
//! **Threads.** Lock order: page heap → recorder. The first keeps events in true order.
//!
//! **Failure.** A killed process leaves a readable file without an end.
//!
//! **Cost.** On: two stores, a checksum of 12 cycles and the coarse clock for each event.
//!
//! **Unsafe.** Takes the recorder from the lock that a fork holds.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use craton_base::{Clock, Density, PageRange, Pages, Platform};
use craton_heap::hooks::SpanEvent;
use craton_heap::page_heap::PageHeap;
use craton_os::{CoarseClock, FileMap, Line, Mutex, Rank, process};
use craton_pages::trace::{BLOCK_BYTES, BLOCK_EVENTS, Event, Header, Kind, SLOT_BYTES, Seal, Sum};
use craton_pages::{PageHeap as _, PageHeapExt};
use craton_tables::options::PATH_MOST;

pub(crate) const PATH_MAX: usize = PATH_MOST + 1;
const WINDOW: usize = 1 << 20;
const DEFAULT_EVENTS: u64 = 16_000_000;

pub(crate) struct Tracer {
    pub(crate) bound: AtomicU64,
    /// Until its recording begins.
    pub(crate) requested: Mutex<Option<([u8; PATH_MAX], usize)>>,
    /// As last set.
    pub(crate) path: Mutex<([u8; PATH_MAX], usize)>,
    pub(crate) on: AtomicBool,
    /// A fork's child has not begun its recording yet.
    pub(crate) inherited: AtomicBool,
    pub(crate) recorder: Mutex<Option<Recorder>>,
}

pub(crate) struct Recorder {
    map: FileMap,
    window: u64,
    /// From 1 on.
    block: u64,
    slot: usize,
    sum: Sum,
    start_ns: u64,
    events: u64,
    bound: u64,
    dropped: u64,
}

impl Tracer {
    pub(crate) const fn new() -> Self {
        Self {
            bound: AtomicU64::new(DEFAULT_EVENTS),
            requested: Mutex::ranked(Rank::TraceAsked, None),
            path: Mutex::ranked(Rank::TracePath, ([0; PATH_MAX], 0)),
            on: AtomicBool::new(false),
            inherited: AtomicBool::new(false),
            recorder: Mutex::ranked(Rank::Recorder, None),
        }
    }

    /// An empty path ends a recording.
    pub(crate) fn request(&self, path: &[u8]) -> bool {
        let pids = path.windows(2).filter(|two| *two == b"%p").count();
        if path.len() + 10 * pids >= PATH_MAX || path.contains(&0) {
            return false;
        }
        *self.requested.lock() = Some(with_pid(path));
        let mut shown = self.path.lock();
        shown.0[..path.len()].copy_from_slice(path);
        shown.1 = path.len();
        true
    }

    /// `path` ends with 0. The caller holds the heap's lock.
    pub(crate) fn begin<F: Platform, C: Clock>(&self, path: &[u8], pages: &PageHeap<F, C>) -> Result<(), i32> {
        *self.recorder.lock() = Some(Recorder::new(path, self.bound.load(Relaxed), pages)?);
        self.on.store(true, Relaxed);
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.on.store(false, Relaxed);
        if let Some(recorder) = self.recorder.lock().take() {
            recorder.finish();
        }
    }

    /// `nested`: a signal handler may have interrupted the recorder; its window stays mapped.
    /// Returns whether the child shall record into a file of another name.
    ///
    /// # Safety
    /// The locks are held for a fork.
    pub(crate) unsafe fn forked(&self, nested: bool) -> bool {
        self.on.store(false, Relaxed);
        if nested {
            return false;
        }
        // SAFETY: by the contract; nothing interrupted uses them.
        let (recorder, path, requested) = unsafe {
            (self.recorder.held_for_fork().take(), self.path.held_for_fork(), self.requested.held_for_fork())
        };
        let Some(recorder) = recorder else { return false };
        recorder.map.leave();
        let path = &path.0[..path.1];
        let is_other = path.windows(2).any(|two| two == b"%p");
        if is_other {
            *requested = Some(with_pid(path));
            self.inherited.store(true, Relaxed);
        }
        is_other
    }

    #[inline(always)]
    pub(crate) fn span(&self, event: SpanEvent) {
        if self.on.load(Relaxed) {
            self.record(event);
        }
    }

    #[cold]
    fn record(&self, event: SpanEvent) {
        if let Some(recorder) = &mut *self.recorder.lock() {
            let (kind, range, align, density) = match event {
                SpanEvent::Alloc { range, align, density } => (Kind::Alloc, range, align, density),
                SpanEvent::Free { range, density } => (Kind::Free, range, Pages(1), density),
                SpanEvent::Resize { range } => (Kind::Resize, range, Pages(1), Density::Sparse),
            };
            recorder.record(CoarseClock.now_ns(), kind, range, align, density);
        }
    }
}

/// The number of the process for each `%p`.
fn with_pid(path: &[u8]) -> ([u8; PATH_MAX], usize) {
    let mut text = Line::new();
    let mut at = 0;
    while at < path.len() {
        let is_pid = path[at..].starts_with(b"%p");
        text = if is_pid { text.number(process::id().into()) } else { text.bytes(&path[at..=at]) };
        at += if is_pid { 2 } else { 1 };
    }
    let mut place = [0; PATH_MAX];
    let len = text.as_bytes().len();
    place[..len].copy_from_slice(text.as_bytes());
    (place, len)
}

impl Recorder {
    fn new<F: Platform, C: Clock>(path: &[u8], bound: u64, heap: &PageHeap<F, C>) -> Result<Self, i32> {
        let saved = process::errno();
        let map = FileMap::create(path, WINDOW);
        process::set_errno(saved);
        let now = CoarseClock.now_ns();
        let mut recorder = Self {
            map: map?,
            window: 0,
            block: 1,
            slot: 0,
            sum: Sum::of_block(1),
            start_ns: now,
            events: 0,
            bound,
            dropped: 0,
        };
        let header = Header { bound, region: heap.capacity().pages() }.encode();
        for (i, words) in header.as_chunks::<2>().0.iter().enumerate().rev() {
            // The first words last: they make it valid.
            recorder.map.store(SLOT_BYTES * i, *words);
        }
        heap.for_each_span(|span, density| recorder.record(now, Kind::Alloc, span, Pages(1), density));
        Ok(recorder)
    }

    fn record(&mut self, now_ns: u64, kind: Kind, span: PageRange, align: Pages, density: Density) {
        if self.events >= self.bound || (self.slot == BLOCK_EVENTS && !self.turn()) {
            self.dropped += 1;
            return;
        }
        let time_us = now_ns.saturating_sub(self.start_ns) / 1000;
        let words = Event { time_us, kind, span, align, density }.encode();
        self.map.store(self.place(self.slot), words);
        self.sum.add(words);
        self.slot += 1;
        self.events += 1;
    }

    fn place(&self, slot: usize) -> usize {
        (self.block * BLOCK_BYTES as u64 - self.window) as usize + slot * SLOT_BYTES
    }

    /// Seals the full block only if another follows: a sealed last one looks truncated.
    fn turn(&mut self) -> bool {
        let next = (self.block + 1) * BLOCK_BYTES as u64;
        if next < self.window + WINDOW as u64 {
            self.seal(false);
        } else {
            let saved = process::errno();
            let window = self.map.next(next, WINDOW);
            process::set_errno(saved);
            let Ok(window) = window else {
                // Later events would follow a gap.
                self.bound = self.events;
                return false;
            };
            self.seal(false);
            core::mem::replace(&mut self.map, window).unmap();
            self.window = next;
        }
        self.block += 1;
        self.slot = 0;
        self.sum = Sum::of_block(self.block);
        true
    }

    fn seal(&self, last: bool) {
        let seal = Seal { events: self.slot as u8, last, dropped: if last { self.dropped } else { 0 } };
        self.map.store(self.place(BLOCK_EVENTS), seal.encode(self.sum));
    }

    fn finish(self) {
        self.seal(true);
        let saved = process::errno();
        let bytes = (self.block + 1) * BLOCK_BYTES as u64;
        self.map.finish(bytes);
        process::set_errno(saved);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
