//! A heap file that is looked at and never changed: stores go to private copies of pages.

use super::file;
use crate::failure::Failure;
use craton_os::persistent_file::{Access, Cached};
use craton_pheap::{Error, Heap, Identity, Options, Report};
use std::path::Path;

/// It neither grows nor loses pages.
pub type View = Cached;

pub struct Opened {
    pub identity: Identity,
    pub heap: Heap<View>,
    pub report: Report,
}

pub fn map(path: &Path) -> Result<View, Failure> {
    file::report_panics(path);
    Ok(Cached::new(file::open(path, Access::ReadOnly, 0)?))
}

/// Inner error: what is wrong with the heap.
pub fn open(path: &Path) -> Result<Result<Opened, Error>, Failure> {
    // A writer's lock is the better reason, since its journal is there as well.
    let view = map(path)?;
    file::refuse_journal(path)?;
    Ok(Identity::read(&view).and_then(|identity| {
        let (heap, report) = Heap::open(view, Options::default())?;
        Ok(Opened { identity, heap, report })
    }))
}

/// Damage is a failure.
pub fn open_whole(path: &Path) -> Result<Opened, Failure> {
    open(path)?.map_err(|why| file::broken(path, why))
}
