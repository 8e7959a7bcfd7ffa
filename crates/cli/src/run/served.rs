//! `craton run --stats`: which processes of a program Craton served.
//!
//! **What.** The program runs as a child, and its processes write [`record`]s to a private file at
//! exit. A `stats_file` of the caller gets them too.
//!
//! **Failure.** A process that ends by `_exit`, `exec` or a signal leaves no record; without any, a
//! message has the likely reason. The exit status is the program's.

use super::forward;
use super::record::{self, Record};
use crate::args;
use crate::failure::Failure;
use crate::options::{self, Setting};
use crate::program;
use crate::terminal::{Stream, plain, say};
use std::env;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use tempfile::TempDir;

/// Of a `stats_file`'s directory.
const LONGEST: usize = 400;

pub fn run(mut command: Command, args: &args::Run, settings: &[Setting]) -> Result<ExitCode, Failure> {
    let directory = directory().map_err(|e| {
        let place = place();
        let what = format!("cannot create a directory for statistics in {}", place.display());
        format!("{what}: {e}; set TMPDIR to one that can be written")
    })?;
    let file = directory.path().join("stats");
    let asked = options::merge(env::var_os(options::VARIABLE).as_deref(), settings);
    let own = Setting::stats_file(file.as_os_str());
    command.env(options::VARIABLE, options::merge(Some(&asked), [&own]));

    forward::start();
    let mut child = command.spawn().map_err(|e| program::cannot_start(&args.command[0], &e))?;
    forward::to(&child);
    let status = forward::until_end(&child)
        .and_then(|()| child.wait())
        .map_err(|e| format!("cannot wait for {}: {e}", args.command[0].display()))?;

    let lines = fs::read(&file).unwrap_or_default();
    if let Some(wanted) = options::stats_file(&asked).map(Path::new) {
        let target = OpenOptions::new().append(true).create(true).open(wanted);
        if let Err(e) = target.and_then(|mut target| target.write_all(&lines)) {
            let line = format!("stats_file: cannot append to {}: {e}", wanted.display());
            say(&format!("craton: {}\n", plain(&line)));
        }
    }
    let records: Vec<Record> = String::from_utf8_lossy(&lines).lines().filter_map(Record::parse).collect();
    say(&report(&records, status, args));
    Ok(ExitCode::from(code(status)))
}

fn report(records: &[Record], status: ExitStatus, args: &args::Run) -> String {
    if !records.is_empty() {
        let head = "craton: processes served, at exit; one that ends by _exit or a signal is not listed";
        return format!("{head}\n{}", record::show(records, Stream::Err.width()));
    }
    let why = match status.signal() {
        Some(signal) => format!("signal {signal} ended it, so that it could not report"),
        None => program::why_not_served(&args.command[0], "its processes ended by _exit or a signal"),
    };
    let name = plain(&args.command[0].to_string_lossy());
    format!("craton: nothing was served: no process of {name} reported; {why}\n")
}

/// As in a shell.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn directory() -> io::Result<TempDir> {
    let own = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("craton-run-").permissions(own).tempdir_in(place())
}

/// Absolute, since the program may change its directory, and valid in an option.
fn place() -> PathBuf {
    let fits = |path: &PathBuf| !path.as_os_str().as_bytes().contains(&b',') && path.as_os_str().len() <= LONGEST;
    std::path::absolute(env::temp_dir()).ok().filter(fits).unwrap_or_else(|| "/tmp".into())
}

#[cfg(test)]
mod tests;
