//! What Craton did not serve, or has not seen the end of: the program that CMD's process became by
//! `exec`, and processes that outlive CMD.
//!
//! **Failure.** A program that renames its main thread and ends by `_exit` looks like one that
//! became another by `exec`.

use super::record::Record;
use crate::program;
use crate::terminal::plain;
use craton_inspect::Published;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names that a sentence lists.
const NAMED: usize = 5;

/// The process of CMD at its end.
pub struct Main {
    pub pid: u32,
    /// Of the last program, as the system has it; empty if unknown.
    pub name: String,
}

impl Main {
    /// Of a process that runs, or has ended but was not waited for.
    pub fn of(pid: u32) -> Self {
        // Another namespace's process may have the number.
        let name = if craton_inspect::has_own_numbers() { name(pid) } else { String::new() };
        Self { pid, name }
    }

    /// Whether the process became another program, which has not reported.
    pub fn is_lost(&self, served: &Published) -> bool {
        served.pid == self.pid && !self.name.is_empty() && served.exe != self.name
    }

    /// The sentence about the process if its last program was not served. `left`: all pages of the
    /// run's processes.
    pub fn unserved(&self, command: &OsStr, records: &[Record], left: &[Published]) -> Option<String> {
        let Self { pid, name } = self;
        let is_own = |record: &&Record| record.pid == u64::from(*pid);
        let served = records.iter().rfind(is_own);
        let is_known = served.is_some_and(|record| record.exited || record.exe == *name);
        // A process that gave up its rights can neither send its record nor remove its page.
        let has_page = left.iter().any(|page| page.pid == *pid && page.exe == *name);
        if is_known || has_page || name.is_empty() {
            return None;
        }
        let rights = "may not write into the temporary folder";
        Some(match served {
            Some(record) => format!(
                "process {pid} ({}) became {} by exec, which was not served: it is linked statically, runs set-uid, \
                 has no LD_PRELOAD in its environment, or {rights}",
                plain(&record.exe),
                plain(name)
            ),
            None => {
                let why = program::why_not_served(command, rights);
                format!("process {pid} ({}) was not served: {why}", plain(name))
            }
        })
    }
}

fn name(pid: u32) -> String {
    let text = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(&text)).into_owned()
}

/// Processes that still run and have `folder` in their environment, served or not, with their
/// names.
pub fn running(folder: &Path) -> Vec<(u32, String)> {
    let folder = folder.as_os_str().as_bytes();
    let has_it = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(folder.len()).any(|part| part == folder)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<(u32, String)> = pids.filter(|pid| has_it(*pid)).map(|pid| (pid, name(pid))).collect();
    found.sort_unstable();
    found
}

/// `2 processes still run: 12 (sh), 14 (server)`; `None` without any.
pub fn still_run(running: &[(u32, String)]) -> Option<String> {
    let names: Vec<String> = running.iter().take(NAMED).map(|(pid, name)| format!("{pid} ({})", plain(name))).collect();
    let more = match running.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (many, whose) = match running.len() {
        0 => return None,
        1 => ("1 process still runs".to_owned(), "its"),
        n => (format!("{n} processes still run"), "their"),
    };
    Some(format!("{many}: {}{more}; {whose} later messages reach standard error alone", names.join(", ")))
}

#[cfg(test)]
mod tests;
