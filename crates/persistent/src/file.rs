//! The file of a heap.
//!
//! **Failure.** A new heap is made beside its name and linked to it when it is durable: a crash
//! leaves no half-made heap, and an existing file stays.

use crate::error::Error;
use crate::media::AnyHeap;
use crate::options::{Durability, HeapOptions};
use craton_base::{Medium, Promise, Space};
use craton_os::DiskFile;
use craton_os::disk_file::{DiskOptions, JOURNAL_EXTENSION, sync_folder_of};
use craton_os::persistent_file::{Cached, FileError, FileOptions, Flushed, PersistentFile, WriteBackChoice};
use craton_pheap::{Config, Heap, Identity, Options, Report};
use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::SystemTime;

const FIRST: u64 = 1 << 20;

pub struct Opened {
    pub heap: AnyHeap,
    pub promise: Promise,
    pub base: usize,
    pub report: Report,
}

impl HeapOptions {
    fn choice(&self) -> WriteBackChoice {
        match self.durability {
            Durability::Auto | Durability::SyncPoints => WriteBackChoice::Auto,
            Durability::Flush => WriteBackChoice::Flush,
            Durability::NoFlush => WriteBackChoice::None,
        }
    }
}

pub fn create(path: &Path, options: &HeapOptions) -> Result<Opened, Error> {
    let is_device = |it: fs::Metadata| it.file_type().is_char_device() || it.file_type().is_block_device();
    if fs::metadata(path).is_ok_and(is_device) {
        return create_on_device(path, options);
    }
    if path.symlink_metadata().is_ok() {
        return Err(FileError::Exists.into());
    }
    // A heap that was moved or removed: its journal may hold all of it.
    if path.with_added_extension(JOURNAL_EXTENSION).exists() {
        // Or another process has just made the heap.
        let is_there = path.symlink_metadata().is_ok();
        return Err(if is_there { FileError::Exists.into() } else { Error::JournalAlone });
    }
    let unfinished = path.with_added_extension(format!("{}.new", std::process::id()));
    let made = make(&unfinished, options).and_then(|made| {
        // Refused if the path exists by now.
        fs::hard_link(&unfinished, path)?;
        sync_folder_of(&c_path(path)?)?;
        Ok(made)
    });
    let _ = fs::remove_file(&unfinished);
    let made = made?;
    if options.durability == Durability::SyncPoints {
        // The journal has the heap's name.
        made.heap.close()?;
        return open(path, options);
    }
    Ok(made)
}

fn make(path: &Path, options: &HeapOptions) -> Result<Opened, Error> {
    let file = PersistentFile::create(&c_path(path)?, FIRST, FileOptions::new(options.limit))?;
    let made = fill(file, options)?;
    File::open(path)?.sync_all()?;
    Ok(made)
}

fn create_on_device(path: &Path, options: &HeapOptions) -> Result<Opened, Error> {
    let file = PersistentFile::open(&c_path(path)?, FileOptions::new(u64::MAX))?;
    let medium = Cached::new(file);
    // A damaged heap counts, too.
    if !matches!(Identity::read(&medium), Err(craton_pheap::Error::NotAHeap { .. })) {
        return Err(Error::HoldsHeap);
    }
    drop(medium);
    fill(PersistentFile::open(&c_path(path)?, FileOptions::new(u64::MAX))?, options)
}

fn fill(file: PersistentFile, options: &HeapOptions) -> Result<Opened, Error> {
    let (promise, base) = (file.promise(), file.base() as usize);
    let heap = match file.flushes(options.choice()) {
        true => AnyHeap::Flushed(begin(Flushed::new(file)?, options)?),
        false => AnyHeap::Cached(begin(Cached::new(file), options)?),
    };
    let report = Report { clean: true, generation: 1, ..Report::default() };
    Ok(Opened { heap, promise, base, report })
}

fn begin<M: Medium + Space>(medium: M, options: &HeapOptions) -> Result<Heap<M>, Error> {
    let HeapOptions { model, most, lanes, stripes, .. } = *options;
    let other = Config::default();
    let created = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
    let stripes = stripes.unwrap_or_else(|| Config::stripes_for(model, M::FLUSHES));
    let lanes = lanes.unwrap_or(other.lanes);
    let half = Config::half_for(lanes, if most == 0 { medium.limit() } else { most.min(medium.limit()) });
    let config = Config { model, lanes, half, stripes, created, most, ..other };
    Ok(Heap::create(medium, config, heap_options())?)
}

fn heap_options() -> Options {
    Options { stamp: craton_os::stamp_clock(), ..Options::default() }
}

pub fn open(path: &Path, options: &HeapOptions) -> Result<Opened, Error> {
    // Each name of the file must find its journal.
    let real = path.is_symlink().then(|| path.canonicalize()).transpose()?;
    let path = real.as_deref().unwrap_or(path);
    let name = c_path(path)?;
    if options.durability == Durability::SyncPoints {
        let file = DiskFile::open(&name, DiskOptions::new(options.limit))?;
        let (promise, base) = (file.promise(), file.base() as usize);
        let (heap, report) = Heap::open(file, heap_options())?;
        return Ok(Opened { heap: AnyHeap::Disk(Box::new(heap)), promise, base, report });
    }
    let is_device = fs::metadata(path).is_ok_and(|it| !it.is_file());
    let limit = if is_device { u64::MAX } else { options.limit };
    let file = PersistentFile::open(&name, FileOptions::new(limit));
    let has_journal = path.with_added_extension(JOURNAL_EXTENSION).exists();
    let file = match file {
        Err(FileError::LeftOpen) if !has_journal => return Err(FileError::NoJournal.into()),
        Err(FileError::LeftOpen) => return Err(Error::HasJournal),
        // This process has the lock: no other makes or removes the journal.
        Ok(_) if has_journal => return Err(Error::HasJournal),
        file => file?,
    };
    let (promise, base) = (file.promise(), file.base() as usize);
    let (heap, report) = if file.flushes(options.choice()) {
        let (heap, report) = Heap::open(Flushed::new(file)?, heap_options())?;
        (AnyHeap::Flushed(heap), report)
    } else {
        let (heap, report) = Heap::open(Cached::new(file), heap_options())?;
        (AnyHeap::Cached(heap), report)
    };
    Ok(Opened { heap, promise, base, report })
}

fn c_path(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::Path)
}
