//! A heap file that is looked at and never changed.
//!
//! **What.** [`map`] maps the file privately: recovery runs there, and its stores stay in copies
//! of the pages.
//!
//! **Threads.** A shared lock on the file refuses programs that would change it meanwhile; a file
//! that a program has open to change it is refused here.
//!
//! **Cost.** Memory for the pages that recovery stores to.

use super::file;
use crate::failure::Failure;
use craton_os::persistent_file::{Access, Cached};
use craton_pheap::{Error, Heap, Identity, Options, Report};
use std::path::Path;

/// Private memory above a file that is open to be read: it neither grows nor loses pages.
pub type View = Cached;

/// A recovered view, and what recovery did.
pub struct Opened {
    pub identity: Identity,
    pub heap: Heap<View>,
    pub report: Report,
}

/// Maps a file privately.
pub fn map(path: &Path) -> Result<View, Failure> {
    file::report_panics(path);
    Ok(Cached::new(file::open(path, Access::ReadOnly, 0)?))
}

/// Opens the heap of a file, and recovers the view. Inner error: what is wrong with the heap.
pub fn open(path: &Path) -> Result<Result<Opened, Error>, Failure> {
    // A writer's lock is the better reason, since its journal is there as well.
    let view = map(path)?;
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
