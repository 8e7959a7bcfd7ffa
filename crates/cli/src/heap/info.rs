//! `craton heap info`. A file that only others may write is shown without its medium's promise.

use super::print::{lines, show};
use super::{file, view};
use crate::failure::Failure;
use crate::output::Output;
use craton_base::Promise;
use craton_lab::format;
use craton_os::persistent_file::Access;
use craton_pheap::{Identity, Phase};
use jiff::Timestamp;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

#[derive(Serialize)]
struct Row {
    file: String,
    version: u32,
    model: &'static str,
    uuid: String,
    /// Since 1970.
    created_s: Option<f64>,
    lanes: u32,
    half_ring_lines: u32,
    stripes: u32,
    most_bytes: Option<u64>,
    data_at: u64,
    state: &'static str,
    torn_state_at: Option<u64>,
    generation: u64,
    settled_epoch: u64,
    bytes: u64,
    disk_bytes: u64,
    promise: &'static str,
}

pub fn info(path: &Path, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
    let promise = promise(path)?;
    let identity = match Identity::read(&view::map(path)?) {
        Ok(identity) => identity,
        // Before the first checkpoint all of the heap is in its journal.
        Err(why) => return Err(file::refuse_journal(path).err().unwrap_or_else(|| file::broken(path, why))),
    };
    let (bytes, disk_bytes) = file::sizes(path)?;
    let row = Row {
        file: path.to_string_lossy().into_owned(),
        version: identity.version,
        model: identity.model.name(),
        uuid: uuid(identity.uuid),
        created_s: (identity.created != 0).then(|| identity.created as f64 / 1e9),
        lanes: identity.lanes,
        half_ring_lines: identity.half,
        stripes: identity.stripes,
        most_bytes: (identity.most != 0).then_some(identity.most),
        data_at: identity.data,
        state: match identity.phase {
            Phase::Closed => "closed",
            Phase::Running => "open, or its last program did not close it",
            Phase::Recovering => "in recovery, which was interrupted",
        },
        torn_state_at: identity.torn_state,
        generation: identity.generation,
        settled_epoch: identity.settled,
        bytes,
        disk_bytes,
        promise,
    };
    let text = lines(&[
        ("file", crate::terminal::plain(&row.file)),
        ("format", format!("version {}, {} heap", row.version, row.model)),
        ("uuid", row.uuid.clone()),
        ("created", created(identity.created)),
        ("lanes", format!("{}, with {} lines a half ring", row.lanes, row.half_ring_lines)),
        ("stripes", row.stripes.to_string()),
        ("grows to", row.most_bytes.map_or("the limit of the program".to_owned(), format::bytes)),
        ("data from", format!("{:#x}", row.data_at)),
        (
            "state",
            row.state.to_owned() + if row.torn_state_at.is_some() { "; one state line is not whole" } else { "" },
        ),
        ("opened", format::plural(row.generation, "time")),
        ("settled epoch", format::count(row.settled_epoch)),
        ("length", format!("{} ({} bytes)", format::bytes(bytes), format::count(bytes))),
        ("on the disk", format!("{} ({} bytes)", format::bytes(disk_bytes), format::count(disk_bytes))),
        ("survives", row.promise.to_owned()),
    ]);
    show(&text, "heap info", row, json)?;
    Ok(ExitCode::SUCCESS)
}

fn promise(path: &Path) -> Result<&'static str, Failure> {
    let has_journal = file::journal(path).is_some();
    // Only a shared mapping shows whether the file lies on persistent memory.
    let opened = file::open(path, Access::ReadWrite, 0);
    Ok(match opened.map(|file| (file.promise(), file.is_on_disk())) {
        Ok((Promise::PowerFailure, _)) => "a power failure (persistent memory)",
        Ok((_, false)) => "a process crash (a file system in memory)",
        Ok(_) if has_journal => "a power failure at sync points (the file has a journal)",
        Ok(_) => "a process crash (page cache); a power failure at sync points, if opened with a journal",
        Err(_) => "unknown: the file cannot be opened for writing",
    })
}

pub fn uuid(uuid: u128) -> String {
    let hex = format!("{uuid:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// UTC, from nanoseconds since 1970.
fn created(ns: u64) -> String {
    match Timestamp::from_nanosecond(ns.into()) {
        Ok(time) if ns != 0 => time.strftime("%F %T UTC").to_string(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (s, text) in [
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_799, "2000-02-29 23:59:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00:00 UTC"),
        ] {
            assert_eq!(created(s * 1_000_000_000), text);
        }
        assert_eq!(created(0), "unknown");
    }

    #[test]
    fn uuids_have_five_groups() {
        assert_eq!(uuid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef), "01234567-89ab-cdef-0123-456789abcdef");
    }
}
