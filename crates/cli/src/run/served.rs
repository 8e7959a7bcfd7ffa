//! `craton run` where a process stays. At exit processes send [`record`]s to a [`Listener`]; one
//! that ends by a signal or `_exit` leaves its page of statistics, and gets a sentence ([`ended`]).

use super::checked::{Checked, Seen};
use super::listener::{Listener, Sent};
use super::record::{self, Record};
use super::traces::Traces;
use super::unserved::{Main, running, still_run};
use super::{ended, forward};
use crate::args;
use crate::failure::Failure;
use crate::get;
use crate::options::{self, Setting};
use crate::output::{Output, command as command_line};
use crate::program;
use crate::terminal::{Stream, plain, say};
use craton_inspect::Published;
use craton_lab::document::Document;
use craton_lab::ratios::Ratios;
use craton_os::cgroup::Events;
use craton_tables::options::RUN_FOLDER;
use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use tempfile::TempDir;

/// Of the directory for the private one: a socket's path has at most 107 bytes.
const LONGEST: usize = 80;

/// `asked`: the library's options.
pub fn run(
    mut command: Command,
    args: &args::Run,
    asked: &OsStr,
    traces: Option<&Traces>,
    checked: Option<Checked<'_>>,
) -> Result<ExitCode, Failure> {
    let mut json = args.stats_json.as_deref().map(|path| Output::open("--stats-json", path)).transpose()?;
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

    let listener = Listener::start(file, args.stats_json.is_some())
        .map_err(|e| format!("cannot listen in {}: {e}", directory.path().display()))?;
    let (before, start_ns) = (Events::now(), now_ns());
    forward::start();
    let mut child = command.spawn().map_err(|e| program::cannot_start(&args.command[0], &e))?;
    forward::to(&child);
    let ended = forward::until_end(&child);
    let main = Main::of(child.id());
    let status =
        ended.and_then(|()| child.wait()).map_err(|e| format!("cannot wait for {}: {e}", args.command[0].display()))?;

    let sent = listener.end();
    if let Some(wanted) = options::stats_file(asked).map(Path::new) {
        append(&sent, wanted);
    }
    let records: Vec<Record> = sent.into_iter().filter_map(Record::sent).collect();
    let exited: HashSet<u64> = records.iter().map(|record| record.pid).collect();
    // A folder of the caller's has files of other runs.
    let is_left = |p: &Published| !exited.contains(&p.pid.into()) && p.since_ns >= start_ns;
    let left: Vec<Published> = Published::in_folder(&pages).into_iter().filter(is_left).collect();
    let running = still_run(&running(directory.path()));
    let every: Vec<Published> =
        Published::all_in_folder(&pages).into_iter().filter(|p| p.since_ns >= start_ns).collect();
    let records = programs(records, &left, &every);
    let unserved = match records.is_empty() {
        true => Some(format!("nothing was served: {}", why_nothing(status, args))),
        false => main.unserved(&args.command[0], &records, &every),
    };
    if let Some(traces) = traces {
        let name =
            |pid: u32| records.iter().rfind(|record| record.pid == u64::from(pid)).map(|record| record.exe.clone());
        say(&traces.end(name, unserved.as_deref()).unwrap_or_default());
    }
    if args.stats || checked.as_ref().is_some_and(|checked| !checked.only_lines()) {
        say(&ended::sentences(&left, &main, status, Events::now().since(before)));
    }
    if args.stats {
        let lines = [&unserved, &running].into_iter().flatten().map(|text| format!("craton: {text}\n"));
        let table = if records.is_empty() { String::new() } else { table(&records) };
        say(&format!("{}{table}", lines.collect::<String>()));
    }
    if let Some(json) = &mut json {
        json.document(&Document::new("run", &command_line(), &[], records, &Ratios::default()))?;
    }
    let status = code(status);
    let seen = Seen { left: &left, main: &main, unserved, running };
    let status = checked.map_or(Ok(status), |checked| checked.end(directory.path(), status, seen));
    status.map(ExitCode::from)
}

/// The programs of each process in their order: those that it left by `exec`, and the last.
fn programs(exited: Vec<Record>, left: &[Published], every: &[Published]) -> Vec<Record> {
    let mut pages: Vec<&Published> = every.iter().filter(|page| !page.has_exited).collect();
    pages.sort_by_key(|page| page.since_ns);
    let mut of = |pid: u64| pages.extract_if(.., |page| u64::from(page.pid) == pid).map(Record::of).collect::<Vec<_>>();
    let mut all = Vec::new();
    for record in exited {
        all.extend(of(record.pid));
        all.push(record);
    }
    for page in left {
        all.extend(of(page.pid.into()));
    }
    all
}

/// As the processes would have done.
fn append(sent: &[Sent], wanted: &Path) {
    let lines: Vec<u8> = sent.iter().flat_map(|sent| sent.line.iter().copied()).collect();
    let target = OpenOptions::new().append(true).create(true).open(wanted);
    if let Err(e) = target.and_then(|mut target| target.write_all(&lines)) {
        let line = format!("stats_file: cannot append to {}: {e}", wanted.display());
        say(&format!("craton: {}\n", plain(&line)));
    }
}

/// The clock of [`Published::since_ns`].
fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn table(records: &[Record]) -> String {
    let head = "craton: processes served, with their last statistics";
    format!("{}{head}\n{}", largest(records), record::show(records, Stream::Err.width()))
}

fn why_nothing(status: ExitStatus, args: &args::Run) -> String {
    let why = match status.signal() {
        Some(signal) => format!("signal {signal} ended it before the library was loaded"),
        None => program::why_not_served(&args.command[0], "its processes ended before the library was loaded"),
    };
    format!("no process of {} reported; {why}", plain(&args.command[0].to_string_lossy()))
}

/// The largest process's ledger.
fn largest(records: &[Record]) -> String {
    let ledgers = records.iter().filter_map(|record| Some((record, record.ledger.as_ref()?)));
    let Some((record, ledger)) = ledgers.max_by_key(|(_, ledger)| ledger.rss_bytes) else { return String::new() };
    let name = plain(&record.exe);
    format!("craton: memory of process {} ({name}) at its exit\n{}", record.pid, get::ledger_text(ledger))
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Whether a process can stay.
pub fn has_room() -> bool {
    directory().is_ok()
}

fn directory() -> io::Result<TempDir> {
    let own = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(RUN_FOLDER).permissions(own).tempdir_in(place())
}

/// Absolute, since the program may change its directory, and valid in an option.
fn place() -> PathBuf {
    let fits = |path: &PathBuf| !path.as_os_str().as_bytes().contains(&b',') && path.as_os_str().len() <= LONGEST;
    std::path::absolute(env::temp_dir()).ok().filter(fits).unwrap_or_else(|| "/tmp".into())
}

#[cfg(test)]
mod tests;
