//! The heap file on a disk, with its log (`docs/kv.md`). A heap that could not be made leaves no
//! files.

use crate::file::{FIRST, UseHeap, c_path, create, heap_options, refused};
use crate::options::{Options, WriteBackName};
use craton_base::{Medium, Space};
use craton_kv::StoreError;
use craton_kv::heap::HeapStore;
use craton_kv::log::{LogFile, holds_records};
use craton_kv::server::{Gates, SyncHeap};
use craton_os::DiskFile;
use craton_os::disk_file::{DiskOptions, JOURNAL_EXTENSION, MARK_BYTES};
use craton_os::persistent_file::FileError;
use craton_pheap::Heap;
use std::fmt::Display;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub struct DiskParts<M: Medium + Space> {
    pub interval: Duration,
    pub files: [Box<dyn LogFile>; 2],
    /// The heap was left open: the log has the writes since its last sync point.
    pub needs_log: bool,
    pub sync: SyncHeap<HeapStore<M>>,
}

/// A file beside the heap. Each name of the heap must find it.
pub fn beside(path: &Path, end: &str) -> PathBuf {
    let real = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
    real.as_deref().unwrap_or(path).with_added_extension(end)
}

pub fn log_paths(path: &Path) -> [PathBuf; 2] {
    ["log0", "log1"].map(|end| beside(path, end))
}

fn has_records(path: &PathBuf) -> bool {
    File::open(path).is_ok_and(|file| holds_records(&file).unwrap_or(true))
}

/// A sync point's log, and the records while it is made.
pub fn log_file_bytes(options: &Options) -> u64 {
    options.log + FIRST
}

/// Opens the heap file, or makes it.
pub fn with_disk(options: &Options, interval: Duration, f: impl UseHeap) -> Result<(), String> {
    let path = &options.file;
    let named = |why: &dyn Display| format!("{}: {why}", path.display());
    if options.write_back != WriteBackName::Auto {
        return Err(named(&"--write-back has no use with --sync: leave one of them out"));
    }
    let disk_options = DiskOptions { loses_journal: options.lose_log, ..DiskOptions::new(options.most) };
    let is_there = path.exists();
    let medium = if is_there {
        DiskFile::open(&c_path(path)?, disk_options)
    } else {
        DiskFile::create(&c_path(path)?, FIRST, disk_options)
    };
    let medium = medium.map_err(|why| match why {
        FileError::NoJournal => {
            let journal = beside(path, JOURNAL_EXTENSION).display().to_string();
            let what = "is missing or empty, and has the last sync points";
            format!("{journal}: {what}: restore it, or give --lose-log to go on without the last writes")
        }
        why => refused(options, why),
    })?;
    let (promise, was_left_open) = (medium.promise(), medium.was_left_open());
    // All zero: its maker ended before the heap was durable.
    let is_zero = |at: u64| MARK_BYTES.contains(&at) || medium.word(at).load(Ordering::Relaxed) == 0;
    let is_new = medium.len() == FIRST && (0..FIRST).step_by(8).all(is_zero);
    if is_new && !options.lose_log && log_paths(path).iter().any(has_records) {
        let journal = beside(path, JOURNAL_EXTENSION).display().to_string();
        let what = "has no sync point, and the log has writes: it was cut";
        return Err(format!("{journal}: {what}; restore it, or give --lose-log to begin anew"));
    }
    let heap = if is_new {
        create(medium, options).map(|heap| (heap, true))
    } else {
        Heap::open(medium, heap_options()).map(|(heap, report)| (heap, report.clean))
    };
    let (heap, was_closed) = heap.map_err(|why| {
        if !is_there {
            let journal = beside(path, JOURNAL_EXTENSION);
            [path, &journal].into_iter().for_each(|made| _ = fs::remove_file(made));
        }
        named(&why)
    })?;
    let open = |path: &PathBuf| {
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o640).open(path);
        file.map(|file| Box::new(file) as Box<dyn LogFile>).map_err(|why| format!("{}: {why}", path.display()))
    };
    let [first, second] = log_paths(path);
    let files = [open(&first)?, open(&second)?];
    // Names must be durable before the first record.
    let folder = first.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|why| named(&why))?;
    let parts = DiskParts { interval, files, needs_log: was_left_open && !was_closed, sync: sync_disk };
    let medium = f.call(heap, promise, Some(parts))?.close();
    medium.sync(|| ()).and_then(|_| medium.close()).map_err(|why| match why {
        FileError::Full(_) => named(&format!("{why}: {}", crate::MAKE_ROOM)),
        why => named(&why),
    })?;
    // The closed heap has all records.
    for log in [first, second] {
        fs::remove_file(&log).map_err(|why| format!("{}: {why}", log.display()))?;
    }
    Ok(())
}

fn sync_disk(store: &HeapStore<DiskFile>, gates: &Gates, then: &dyn Fn()) -> Result<(), StoreError> {
    let medium = store.heap().medium();
    let pause = || {
        let paused = gates.pause();
        then();
        paused
    };
    let failed = |why: FileError| StoreError::System(why.errno());
    medium.sync(pause).map_err(failed)?;
    medium.checkpoint_if_due(|| gates.pause()).map_err(failed)
}
