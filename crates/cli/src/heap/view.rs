//! A heap file that is looked at and never changed.
//!
//! **What.** [`View`] maps the file privately: recovery runs there, and its stores stay in copies
//! of the pages.
//!
//! **Threads.** A shared lock on the file refuses programs that would change it meanwhile; a file
//! that a program has open to change it is refused here.
//!
//! **Cost.** Memory for the pages that recovery stores to.

use super::file;
use crate::failure::Failure;
use craton_base::atomic::AtomicU64;
use craton_base::{Line, Medium, Space, SpaceError};
use craton_os::persistent_file::{Access, Cached};
use craton_pheap::{Error, Heap, Identity, Options, Report};
use std::path::Path;

/// Private memory above a file, which neither grows nor loses pages.
pub struct View(Cached);

/// A recovered view, and what recovery did.
pub struct Opened {
    pub identity: Identity,
    pub heap: Heap<View>,
    pub report: Report,
}

impl View {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        file::report_panics(path);
        Ok(Self(Cached::new(file::open(path, Access::ReadOnly, 0)?)))
    }
}

/// Opens the heap of a file, and recovers the view. Inner error: what is wrong with the heap.
pub fn open(path: &Path) -> Result<Result<Opened, Error>, Failure> {
    // A writer's lock is the better reason, since its journal is there as well.
    let view = View::open(path)?;
    file::refuse_journal(path)?;
    Ok(Identity::read(&view).and_then(|identity| {
        let (heap, report) = Heap::open(view, Options::default())?;
        Ok(Opened { identity, heap, report })
    }))
}

/// As [`open`]; damage is a failure.
pub fn open_whole(path: &Path) -> Result<Opened, Failure> {
    open(path)?.map_err(|why| file::broken(path, why))
}

impl Medium for View {
    const FLUSHES: bool = false;

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        self.0.word(at)
    }

    fn store(&self, at: u64, value: u64) {
        self.0.store(at, value);
    }

    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        self.0.update(at, set, clear)
    }

    fn store_line(&self, at: u64, line: &Line) {
        self.0.store_line(at, line);
    }

    fn flush(&self, _at: u64) {}

    fn fence(&self) {}
}

impl Space for View {
    fn resize(&self, _len: u64) -> Result<(), SpaceError> {
        Err(SpaceError::Full)
    }

    fn discard(&self, _at: u64, _len: u64) -> Result<(), SpaceError> {
        Err(SpaceError::Fixed)
    }

    /// Copies of pages take memory alone.
    fn allocate(&self, _at: u64, _len: u64) -> Result<(), SpaceError> {
        Ok(())
    }

    fn limit(&self) -> u64 {
        self.0.limit()
    }
}
