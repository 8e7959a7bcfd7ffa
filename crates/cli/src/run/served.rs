//! `craton run` where a process stays. At exit processes write [`record`]s to a private file; one
//! that ends by a signal or `_exit` leaves its page of statistics, and gets a sentence ([`ended`]).

use super::checked::Checked;
use super::group::Group;
use super::record::{self, Record};
use super::{ended, forward};
use crate::args;
use crate::failure::Failure;
use crate::options::{self, Setting};
use crate::program;
use crate::terminal::{Stream, plain, say};
use craton_inspect::Published;
use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
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

/// `asked`: the library's options.
pub fn run(
    mut command: Command,
    args: &args::Run,
    asked: &OsStr,
    checked: Option<Checked<'_>>,
) -> Result<ExitCode, Failure> {
    let directory = directory().map_err(|e| {
        let place = place();
        let what = format!("cannot create a directory for statistics in {}", place.display());
        format!("{what}: {e}; set TMPDIR to one that can be written")
    })?;
    let file = directory.path().join("stats");
    let pages = options::stats_dir(asked).map_or_else(|| directory.path().to_owned(), PathBuf::from);
    let own = [Setting::stats_file(file.as_os_str()), Setting::stats_dir(pages.as_os_str())];
    let reports = checked.as_ref().map(|_| Checked::setting(directory.path()));
    command.env(options::VARIABLE, options::merge(Some(asked), own.iter().chain(&reports)));

    let (group, start_ns) = (Group::ours(), now_ns());
    forward::start();
    let mut child = command.spawn().map_err(|e| program::cannot_start(&args.command[0], &e))?;
    forward::to(&child);
    let status = forward::until_end(&child)
        .and_then(|()| child.wait())
        .map_err(|e| format!("cannot wait for {}: {e}", args.command[0].display()))?;

    let lines = fs::read(&file).unwrap_or_default();
    if let Some(wanted) = options::stats_file(asked).map(Path::new) {
        let target = OpenOptions::new().append(true).create(true).open(wanted);
        if let Err(e) = target.and_then(|mut target| target.write_all(&lines)) {
            let line = format!("stats_file: cannot append to {}: {e}", wanted.display());
            say(&format!("craton: {}\n", plain(&line)));
        }
    }
    let mut records: Vec<Record> = String::from_utf8_lossy(&lines).lines().filter_map(Record::parse).collect();
    let exited: HashSet<u64> = records.iter().map(|record| record.pid).collect();
    // A folder of the caller's has files of other runs.
    let is_left = |p: &Published| !exited.contains(&p.pid.into()) && p.since_ns >= start_ns;
    let left: Vec<Published> = Published::in_folder(&pages).into_iter().filter(is_left).collect();
    records.extend(left.iter().map(Record::of));
    say(&ended::sentences(&left, child.id(), status, Group::ours().since(group)));
    if args.stats || records.is_empty() {
        say(&report(&records, status, args));
    }
    let status = code(status);
    let status = checked.map_or(Ok(status), |checked| checked.end(directory.path(), status, !records.is_empty()));
    status.map(ExitCode::from)
}

/// The clock of [`Published::since_ns`].
fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn report(records: &[Record], status: ExitStatus, args: &args::Run) -> String {
    if !records.is_empty() {
        let head = "craton: processes served, with their last statistics";
        return format!("{head}\n{}", record::show(records, Stream::Err.width()));
    }
    let why = match status.signal() {
        Some(signal) => format!("signal {signal} ended it before the library was loaded"),
        None => program::why_not_served(&args.command[0], "its processes ended before the library was loaded"),
    };
    let name = plain(&args.command[0].to_string_lossy());
    format!("craton: nothing was served: no process of {name} reported; {why}\n")
}

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
