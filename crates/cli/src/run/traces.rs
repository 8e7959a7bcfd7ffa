//! `craton run --trace FILE`: a file for each process, and the largest is FILE.
//!
//! **What.** Behind a shell, `timeout` or an entry point the program that is meant is a child, or
//! the child's child. Each process writes `FILE.PID`; at the end the recording with most events
//! becomes FILE, and a line names its process.

use crate::options::Setting;
use crate::terminal::plain;
use craton_lab::format::count;
use craton_lab::replay::Trace;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Recordings of `FILE.PID`.
#[derive(Debug)]
pub struct Traces {
    file: PathBuf,
    /// Files that were there before, by number, with the time of their last change.
    before: HashMap<u32, (i64, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recording {
    pid: u32,
    events: u64,
}

impl Traces {
    /// `None`: the path has a place for the number already.
    ///
    /// # Errors
    /// An option cannot carry the path, or no file can be created there.
    pub fn new(file: &Path) -> Result<Option<(Self, Setting)>, String> {
        Setting::file("trace", file)?;
        if file.as_os_str().as_bytes().windows(2).any(|two| two == b"%p") {
            return Ok(None);
        }
        let mut each: OsString = file.into();
        each.push(".%p");
        let each = Setting::file("trace", Path::new(&each))?;
        let file = std::path::absolute(file).map_err(|e| e.to_string())?;
        let before = all(&file).map(|(pid, is)| (pid, changed(&is))).collect();
        Ok(Some((Self { file, before }, each)))
    }

    fn path(&self, pid: u32) -> PathBuf {
        path(&self.file, pid)
    }

    /// The sentence about the recordings, if there is something to say; `name` knows processes.
    /// `unserved`: why one has no recording.
    pub fn end(&self, name: impl Fn(u32) -> Option<String>, unserved: Option<&str>) -> Option<String> {
        let ours = all(&self.file).filter(|(pid, is)| self.before.get(pid) != Some(&changed(is)));
        let mut recordings: Vec<Recording> =
            ours.map(|(pid, _)| Recording { pid, events: events(&self.path(pid)) }).collect();
        recordings.sort_by_key(|recording| (std::cmp::Reverse(recording.events), recording.pid));
        let file = plain(&self.file.display().to_string());
        let Some(Recording { pid, events }) = recordings.first().copied() else {
            let why = unserved.map_or(String::new(), |why| format!("; {why}"));
            return Some(format!("craton: no process was recorded: {file} was not written{why}\n"));
        };
        if let Err(e) = fs::rename(self.path(pid), &self.file) {
            return Some(format!("craton: cannot rename {file}.{pid} to {file}: {e}; the recording is {file}.{pid}\n"));
        }
        let who = name(pid).map_or(String::new(), |name| format!(" ({})", plain(&name)));
        if recordings.len() == 1 {
            return unserved.map(|why| format!("craton: {file} is the recording of process {pid}{who}; {why}\n"));
        }
        let (processes, events) = (count(recordings.len() as u64), count(events));
        let why = unserved.map_or(String::new(), |why| format!("; {why}"));
        Some(format!(
            "craton: {processes} processes were recorded; {file} is the largest, of process {pid}{who} with {events} \
             events; the others are {file}.PID{why}\n"
        ))
    }
}

fn path(file: &Path, pid: u32) -> PathBuf {
    let mut path: OsString = file.into();
    path.push(format!(".{pid}"));
    path.into()
}

fn changed(is: &Metadata) -> (i64, i64) {
    (is.mtime(), is.mtime_nsec())
}

/// Files of the name with a number behind it.
fn all(file: &Path) -> impl Iterator<Item = (u32, Metadata)> {
    let name = [file.file_name().unwrap_or_default().as_bytes(), b"."].concat();
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let own = entry.file_name().into_vec();
        let pid = std::str::from_utf8(own.strip_prefix(name.as_slice())?).ok()?.parse().ok()?;
        let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
        Some((pid, metadata))
    })
}

fn events(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap_or_default();
    Trace::read(&bytes).map_or(0, |trace| trace.len())
}

#[cfg(test)]
mod tests;
