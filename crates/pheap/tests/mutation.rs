//! The crash tests find a heap that leaves out a kind of flush or fence.

use crate::common::{Sim, config, options, seeds};
use crate::crash::run_in;
use craton_base::{Line, Medium, Space, SpaceError};
use craton_pheap::{Heap, Model};
use craton_sim::SimMedium;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Out {
    Nothing,
    /// Behind redo lines.
    CommitFence,
    /// Between homes, or objects, and what makes them count.
    FlushFence,
    RootFlush,
    /// Of transactions' words.
    LaneFlush,
    /// Of slabs' headers, bitmaps and tables.
    HeaderFlush,
    /// Of objects, with slots and undo entries, and of the bookkeeping log.
    ObjectFlush,
    /// Of frames.
    RecordFlush,
}

#[derive(Clone)]
struct Without {
    inner: SimMedium,
    out: Out,
    /// First bytes.
    rings: u64,
    data: u64,
    records: Range<u64>,
}

thread_local! {
    /// Lines stored since the last fence: of a ring, of the state.
    static LINES: Cell<(bool, bool)> = const { Cell::new((false, false)) };
}

impl Medium for Without {
    const FLUSHES: bool = true;

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        self.inner.word(at)
    }

    fn store(&self, at: u64, value: u64) {
        self.inner.store(at, value);
    }

    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        self.inner.update(at, set, clear)
    }

    fn store_line(&self, at: u64, line: &Line) {
        let (ring, state) = LINES.get();
        LINES.set((ring || (self.rings..self.data).contains(&at), state || at < 1024));
        self.inner.store_line(at, line);
    }

    fn flush(&self, at: u64) {
        let kind = match at {
            ..65_536 => Out::RootFlush,
            at if at < self.rings => Out::LaneFlush,
            at if self.records.contains(&at) => Out::RecordFlush,
            at if at % 65_536 < 1024 => Out::HeaderFlush,
            _ => Out::ObjectFlush,
        };
        if kind != self.out {
            self.inner.flush(at);
        }
    }

    fn fence(&self) {
        let (ring, state) = LINES.replace((false, false));
        let kind = if ring { Out::CommitFence } else { Out::FlushFence };
        if state || kind != self.out {
            self.inner.fence();
        }
    }

    fn array(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.inner.array(at, words)
    }

    fn half_array(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        self.inner.half_array(at, words)
    }

    fn stored(&self, at: u64) {
        self.inner.stored(at);
    }
}

impl Space for Without {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        self.inner.resize(len)
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        self.inner.discard(at, len)
    }

    fn limit(&self) -> u64 {
        self.inner.limit()
    }
}

/// By one of some seeds.
fn is_caught(model: Model, out: Out) -> bool {
    let most = if model == Model::Frames { 2 } else { 8 };
    // Without a fault, all pass.
    let mut seeds = if out == Out::Nothing { seeds(1, most) } else { 0..most };
    seeds.any(|seed| {
        let sim: Sim<true> = SimMedium::new(1 << 16, 2 << 20);
        let rings = 65_536 + 3 * 128;
        let data = rings + 3 * 2 * 8 * 64;
        let records = if model == Model::Frames { data..2 << 16 } else { 0..0 };
        let medium = |out| Without { inner: sim.clone(), out, rings, data, records: records.clone() };
        drop(Heap::create(medium(Out::Nothing), config(model), options()).unwrap().close());
        let heap = Heap::open(medium(out), options()).unwrap().0;
        let run = std::panic::AssertUnwindSafe(|| run_in(&sim, heap, seed, 16, 8));
        !matches!(std::panic::catch_unwind(run), Ok(Ok(_)))
    })
}

#[test]
fn a_kind_of_flush_or_fence_left_out_is_caught() {
    assert!(!is_caught(Model::Log, Out::Nothing));
    for out in [Out::CommitFence, Out::FlushFence, Out::RootFlush, Out::LaneFlush, Out::HeaderFlush, Out::ObjectFlush] {
        assert!(is_caught(Model::Log, out), "{out:?} is not missed");
    }
    assert!(!is_caught(Model::Frames, Out::Nothing));
    assert!(is_caught(Model::Frames, Out::RecordFlush), "flushes of frames' records are not missed");
}
