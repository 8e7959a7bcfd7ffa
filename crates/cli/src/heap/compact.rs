//! `craton heap compact`. The heap's clock runs forward until all free memory has decayed.

use super::print::show;
use super::recovery::Recovery;
use super::{file, repair, view};
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::plain;
use craton_base::{Medium, Space};
use craton_lab::format::{self, plural};
use craton_os::persistent_file::{Access, UseMedium, WriteBackChoice};
use craton_pheap::{Error, Heap, Identity, Options};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

const DECAY_MS: u64 = 10_000;
/// Rounds without a change: slabs, ranges and the end of the file follow each other.
const QUIET: u32 = 4;

#[derive(Serialize)]
struct Row {
    file: String,
    recovery: Recovery,
    slabs_freed: u64,
    bytes_before: u64,
    bytes_after: u64,
    disk_bytes_before: u64,
    disk_bytes_after: u64,
}

pub fn compact(path: &Path, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
    // A damaged heap is refused before anything changes.
    view::open_whole(path)?.heap.verify().map_err(|why| file::broken(path, why))?;
    let before = file::sizes(path)?;
    let opened = file::open(path, Access::ReadWrite, repair::ROOM)?;
    let done = opened.with_medium(WriteBackChoice::Auto, Compact).map_err(|why| file::refused(path, why))?;
    let (recovery, slabs_freed) = done.map_err(|why| file::broken(path, why))?;
    let after = file::sizes(path)?;
    let row = Row {
        file: path.to_string_lossy().into_owned(),
        recovery,
        slabs_freed,
        bytes_before: before.0,
        bytes_after: after.0,
        disk_bytes_before: before.1,
        disk_bytes_after: after.1,
    };
    let text = format!(
        "{}: length {} before, {} after; on the disk {} before, {} after; {} freed\n",
        plain(&row.file),
        format::bytes(before.0),
        format::bytes(after.0),
        format::bytes(before.1),
        format::bytes(after.1),
        plural(slabs_freed, "empty slab")
    );
    let steps = recovery.steps();
    let note = if steps.is_empty() { String::new() } else { format!("recovered: {}\n", steps.join(", ")) };
    show(&(note + &text), "heap compact", row, json)?;
    Ok(ExitCode::SUCCESS)
}

struct Compact;

impl UseMedium for Compact {
    type Output = Result<(Recovery, u64), Error>;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> Self::Output {
        let identity = Identity::read(&medium)?;
        let (heap, report) = Heap::open(medium, Options::default())?;
        let slabs = heap.stats().slabs;
        let (mut now, mut quiet, mut last) = (0, 0, (0, 0));
        while quiet < QUIET {
            heap.maintain(now);
            heap.settle();
            now += DECAY_MS;
            let found = (heap.medium().len(), heap.extent_stats().reclaimed_pages);
            quiet = if found == last { quiet + 1 } else { 0 };
            last = found;
        }
        let freed = slabs - heap.stats().slabs;
        heap.verify()?;
        heap.close();
        Ok((Recovery::new(&identity, &report), freed))
    }
}
