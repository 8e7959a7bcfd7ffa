//! `craton heap repair`. Damage is not repaired: nothing tells what was there.

use super::print::show;
use super::recovery::Recovery;
use super::{file, view};
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::plain;
use craton_base::{Medium, Space};
use craton_lab::format;
use craton_os::DiskFile;
use craton_os::disk_file::{DiskOptions, check_journal};
use craton_os::persistent_file::{Access, FileError, UseMedium, WriteBackChoice};
use craton_pheap::{Error, Heap, Identity, Options};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Beyond the file's bytes, for chunks of the bookkeeping log.
pub const ROOM: u64 = 64 << 20;

#[derive(Serialize)]
struct Row {
    file: String,
    is_repaired: bool,
    journal_bytes: Option<u64>,
    lost_journal: bool,
    recovery: Option<Recovery>,
}

pub fn repair(path: &Path, yes: bool, lose_journal: bool, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
    // Opening does so as well.
    let fits = if yes && !lose_journal { Ok(()) } else { check_journal(&file::c_path(path)?) };
    let lost_journal = lose_journal && fits == Err(FileError::NoJournal);
    if lose_journal && !lost_journal {
        fits.map_err(|why| file::refused(path, why))?;
        return Err(file::failed(path, "no journal is missing: leave --lose-journal out"));
    }
    let journal = file::journal(path);
    let bytes = journal.as_ref().map(|journal| fs::metadata(journal).map_or(0, |it| it.len()));
    let journal_bytes = bytes.filter(|_| !lost_journal);
    let is_on_disk = lost_journal || journal_bytes.is_some();
    let recovery = match (is_on_disk, yes) {
        (true, false) => {
            if !lost_journal {
                fits.map_err(|why| file::refused(path, why))?;
            }
            None
        }
        (true, true) => {
            file::refuse_log(path)?;
            Some(on_disk(path, lost_journal)?)
        }
        (false, _) => {
            let opened = view::open_whole(path)?;
            opened.heap.verify().map_err(|why| file::broken(path, why))?;
            Some(Recovery::new(&opened.identity, &opened.report))
        }
    };
    let is_needed = recovery.is_some_and(|recovery| recovery.is_needed());
    if yes && is_needed && !is_on_disk {
        let opened = file::open(path, Access::ReadWrite, ROOM)?;
        let done = opened.with_medium(WriteBackChoice::Auto, Recover).map_err(|why| file::refused(path, why))?;
        done.map_err(|why| file::broken(path, why))?;
    }
    let is_repaired = yes && (is_needed || is_on_disk);
    let row = Row { file: path.to_string_lossy().into_owned(), is_repaired, journal_bytes, lost_journal, recovery };
    show(&text(&row, yes), "heap repair", row, json)?;
    Ok(ExitCode::SUCCESS)
}

fn text(row: &Row, yes: bool) -> String {
    let name = plain(&row.file);
    let mut steps: Vec<String> = row.recovery.map_or(Vec::new(), |recovery| recovery.steps());
    if let Some(bytes) = row.journal_bytes {
        steps.insert(0, format!("apply the journal {name}.journal of {}", format::bytes(bytes)));
    }
    if row.lost_journal {
        steps.insert(0, format!("go on without {name}.journal: what it had is lost"));
    }
    let is_open = row.recovery.is_some_and(|recovery| !recovery.was_closed);
    if is_open {
        steps.push("mark the heap as closed".to_owned());
    }
    if steps.is_empty() {
        return format!("{name}: closed and whole; there is nothing to repair\n");
    }
    let done = if yes { "repaired" } else { "repair would" };
    let list: String = steps.iter().map(|step| format!("  {step}\n")).collect();
    let lose = if row.lost_journal { " --lose-journal" } else { "" };
    let next = if yes { String::new() } else { format!("`craton heap repair {name}{lose} --yes` does it\n") };
    format!("{name}: {done}:\n{list}{next}")
}

struct Recover;

impl UseMedium for Recover {
    type Output = Result<(), Error>;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> Self::Output {
        let (heap, _) = Heap::open(medium, Options::default())?;
        heap.verify()?;
        heap.close();
        Ok(())
    }
}

fn on_disk(path: &Path, loses_journal: bool) -> Result<Recovery, Failure> {
    // Another length may be in the journal.
    let options = DiskOptions { loses_journal, ..DiskOptions::new(1 << 40) };
    let medium = DiskFile::open(&file::c_path(path)?, options).map_err(|why| file::refused(path, why))?;
    let identity = Identity::read(&medium).map_err(|why| file::broken(path, why))?;
    let (heap, report) = Heap::open(medium, Options::default()).map_err(|why| file::broken(path, why))?;
    heap.verify().map_err(|why| file::broken(path, why))?;
    let medium = heap.close();
    medium.sync(|| ()).and_then(|_| medium.close()).map_err(|why| file::refused(path, why))?;
    Ok(Recovery::new(&identity, &report))
}
