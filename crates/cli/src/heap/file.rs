//! A heap file by its path: how to open it, and what is wrong with it.

use super::view;
use crate::failure::Failure;
use crate::output::is_one_file;
use craton_lab::format::plural;
use craton_os::PersistentFile;
use craton_os::disk_file::{JOURNAL_EXTENSION, check_journal};
use craton_os::persistent_file::{Access, FileError, FileOptions, Room};
use craton_pheap::{Error, Identity};
use std::ffi::CString;
use std::fmt::Display;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes before the data of every heap.
const LEAST: u64 = 65536;
const PAGE: u64 = 4096;

pub fn failed(path: &Path, why: impl Display) -> Failure {
    Failure::Failed(format!("{}: {why}", path.display()))
}

pub fn refused(path: &Path, why: FileError) -> Failure {
    let name = path.display();
    match why {
        _ if path.is_dir() => failed(path, "is a folder; give the path of a heap file"),
        FileError::Missing if journal(path).is_some() => {
            failed(path, format!("no such file, but {} is there: restore the heap", journal_path(path).display()))
        }
        FileError::Missing => failed(path, format!("no such file; `craton heap create {name}` makes one")),
        // The journal's state says more.
        FileError::LeftOpen => refuse_journal(path).err().unwrap_or_else(|| failed(path, why)),
        FileError::NoJournal => {
            let journal = journal_path(path).display().to_string();
            let what = format!("not closed; its last sync point was in {journal}, which is missing or empty");
            let step = format!("restore it, or `craton heap repair {name} --lose-journal` goes on without it");
            failed(path, format!("{what}: {step}"))
        }
        FileError::Journal | FileError::OtherJournal => failed(&journal_path(path), why),
        FileError::Length(bytes) if bytes < LEAST => {
            failed(path, format!("too small for a heap: {}", plural(bytes, "byte")))
        }
        FileError::Length(bytes) => failed(path, format!("{bytes} bytes are not whole pages: the file was cut")),
        FileError::InUse => failed(path, "in use by another process"),
        FileError::NotAFile => failed(path, "not a file"),
        FileError::ReadOnly => failed(path, "the file system is read-only; info, check, stats and dump still work"),
        why => failed(path, why),
    }
}

pub fn broken(path: &Path, why: Error) -> Failure {
    match why {
        Error::NotAHeap { found } => {
            let start = String::from_utf8_lossy(&found.to_le_bytes()).escape_debug().to_string();
            failed(path, format!("not a heap file: it begins with \"{start}\", and not with \"CRATONPH\""))
        }
        Error::Version { found, known } => {
            failed(path, format!("a heap of version {found} of the format; this program knows version {known}"))
        }
        Error::Damaged { at, .. } => {
            let identity = view::map(path).ok().and_then(|view| Identity::read(&view).ok());
            let region = identity.map_or(String::new(), |identity| format!(" ({})", identity.place_of(at)));
            failed(path, format!("{why}{region}; cannot be repaired: restore a copy of the file"))
        }
        Error::Truncated { len, needed } => {
            failed(path, format!("too small: {len} bytes; the heap needs at least {needed}"))
        }
        why => failed(path, why),
    }
}

pub fn c_path(path: &Path) -> Result<CString, Failure> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| failed(path, "a path has no zero byte"))
}

/// A file beside the heap, whose links have the same.
fn beside(path: &Path, end: &str) -> PathBuf {
    let real = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
    real.as_deref().unwrap_or(path).with_added_extension(end)
}

fn journal_path(path: &Path) -> PathBuf {
    beside(path, JOURNAL_EXTENSION)
}

pub fn journal(path: &Path) -> Option<PathBuf> {
    Some(journal_path(path)).filter(|journal| journal.exists())
}

/// Only craton-kv can redo its log, and would find it void after a repair.
pub fn refuse_log(path: &Path) -> Result<(), Failure> {
    let Some(log) = ["log0", "log1"].map(|name| beside(path, name)).into_iter().find(|log| log.exists()) else {
        return Ok(());
    };
    let (name, log) = (path.display(), log.display());
    Err(failed(path, format!("{log} may hold acknowledged writes: start `craton-kv --file {name} --sync always` once")))
}

pub fn refuse_output(path: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let is_same =
        |output: &Path| matches!((fs::metadata(path), fs::metadata(output)), (Ok(a), Ok(b)) if is_one_file(&a, &b));
    match output {
        Some(output) if is_same(output) => {
            Err(Failure::Usage(format!("{} is the heap file: give another path for the output", output.display())))
        }
        _ => Ok(()),
    }
}

/// The journal holds later contents, or is not the file's.
pub fn refuse_journal(path: &Path) -> Result<(), Failure> {
    match check_journal(&c_path(path)?) {
        Ok(()) => {}
        Err(why @ (FileError::Journal | FileError::NoJournal | FileError::OtherJournal)) => {
            return Err(refused(path, why));
        }
        // Opening names it.
        Err(_) => {}
    }
    match journal(path) {
        Some(journal) => {
            refuse_log(path)?;
            let journal = journal.display();
            let step = format!("`craton heap repair {} --yes` applies it", path.display());
            Err(failed(path, format!("not closed; its last sync point is in {journal}: {step}")))
        }
        None => Ok(()),
    }
}

/// `room`: bytes that it may grow by.
pub fn open(path: &Path, access: Access, room: u64) -> Result<PersistentFile, Failure> {
    let limit = match fs::metadata(path) {
        Ok(it) if it.is_file() => (it.len().max(PAGE) + room).next_multiple_of(PAGE),
        // A device is mapped up to its end.
        _ => u64::MAX,
    };
    let options = FileOptions { access, ..FileOptions::new(limit) };
    PersistentFile::open(&c_path(path)?, options).map_err(|why| refused(path, why))
}

/// With room for what is written at once.
pub fn new_options(limit: u64) -> FileOptions {
    FileOptions { room: Room::Reserved, ..FileOptions::new(limit) }
}

pub fn sizes(path: &Path) -> Result<(u64, u64), Failure> {
    let it = fs::metadata(path).map_err(|e| failed(path, e))?;
    Ok((it.len(), it.blocks() * 512))
}

/// The medium panics rather than read beyond its end.
pub fn report_panics(path: &Path) {
    let name = crate::terminal::plain(&path.display().to_string());
    std::panic::set_hook(Box::new(move |info| {
        let why = info.payload_as_str().unwrap_or("damaged");
        crate::terminal::say(&format!("craton: {name}: damaged: {}\n", crate::terminal::plain(why)));
        std::process::exit(1);
    }));
}
