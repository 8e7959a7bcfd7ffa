//! The heap file, made or opened. A new heap gets its name once it is whole: a crash leaves no
//! half-made file.

use crate::disk::{self, DiskParts};
use crate::options::{ModelName, Options, WriteBackName};
use craton_base::{Medium, Promise, Space};
use craton_os::disk_file::JOURNAL_EXTENSION;
use craton_os::persistent_file::{FileError, FileOptions, PersistentFile, UseMedium, WriteBackChoice};
use craton_pheap::{Config, Heap, Model};
use std::ffi::CString;
use std::fmt::Display;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Returns the heap when it ends well.
pub trait UseHeap {
    fn call<M: Medium + Space + 'static>(
        self,
        heap: Heap<M>,
        promise: Promise,
        disk: Option<DiskParts<M>>,
    ) -> Result<Heap<M>, String>;
}

/// Bytes of a new file.
pub const FIRST: u64 = 1 << 20;

pub fn with_heap(options: &Options, f: impl UseHeap) -> Result<(), String> {
    let path = &options.file;
    let named = |why: &dyn Display| format!("{}: {why}", path.display());
    if !path.exists() {
        check_new(path).map_err(|why| named(&why))?;
    }
    if let Some(interval) = options.sync {
        return disk::with_disk(options, interval, f);
    }
    const SYNCED: &str = "was used with --sync and not closed: use it so again";
    if disk::beside(path, JOURNAL_EXTENSION).exists() {
        return Err(named(&SYNCED));
    }
    let choice = match options.write_back {
        WriteBackName::Auto => WriteBackChoice::Auto,
        WriteBackName::Flush => WriteBackChoice::Flush,
        WriteBackName::None => WriteBackChoice::None,
    };
    let file_options = FileOptions::new(options.most);
    let is_new = !path.exists();
    let unfinished = path.with_added_extension("new");
    let file = if is_new {
        // Left by a process that ended.
        match std::fs::remove_file(&unfinished) {
            Err(why) if !matches!(why.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => {
                return Err(named(&why));
            }
            _ => PersistentFile::create(&c_path(&unfinished)?, FIRST, file_options),
        }
    } else {
        PersistentFile::open(&c_path(path)?, file_options)
    };
    let file = file.map_err(|why| match why {
        FileError::LeftOpen => named(&SYNCED),
        why => refused(options, why),
    })?;
    let promise = file.promise();
    let run = Run { options, promise, unfinished: is_new.then_some(unfinished), f };
    file.with_medium(choice, run).map_err(|why| named(&why))?
}

/// Whether the path may be made: the files of a heap that was moved may hold its last writes.
fn check_new(path: &Path) -> Result<(), String> {
    if path.is_symlink() {
        return Err("a symbolic link to a file that is not there: give the path of the file itself".to_owned());
    }
    let journal = disk::beside(path, JOURNAL_EXTENSION);
    match disk::log_paths(path).into_iter().chain([journal]).find(|beside| beside.exists()) {
        // Otherwise another server has just made it.
        Some(beside) if !path.exists() => {
            let beside = beside.display();
            Err(format!("no such file, but {beside} is there: restore the heap, or remove {beside} to make a new one"))
        }
        _ => Ok(()),
    }
}

struct Run<'a, F> {
    options: &'a Options,
    promise: Promise,
    /// A new file, before it has its name.
    unfinished: Option<PathBuf>,
    f: F,
}

impl<F: UseHeap> UseMedium for Run<'_, F> {
    type Output = Result<(), String>;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> Self::Output {
        let path = &self.options.file;
        let named = |why: &dyn Display| format!("{}: {why}", path.display());
        let heap = match &self.unfinished {
            Some(unfinished) => {
                let made = create(medium, self.options).map_err(|why| named(&why)).and_then(|heap| {
                    // Refused if another process made the file.
                    std::fs::hard_link(unfinished, path).map_err(|why| named(&why))?;
                    Ok(heap)
                });
                let _ = std::fs::remove_file(unfinished);
                made?
            }
            None => Heap::open(medium, heap_options()).map_err(|why| named(&why))?.0,
        };
        self.f.call(heap, self.promise, None)?.close();
        Ok(())
    }
}

pub fn refused(options: &Options, why: FileError) -> String {
    let name = options.file.display();
    match why {
        FileError::TooLong(bytes) => format!("{name}: {bytes} bytes are more than --most: raise it"),
        FileError::AddressSpace(bytes) => format!("{name}: no address space for --most of {bytes} bytes: give less"),
        why => format!("{name}: {why}"),
    }
}

pub fn heap_options() -> craton_pheap::Options {
    craton_pheap::Options { stamp: craton_os::stamp_clock(), ..Default::default() }
}

pub fn create<M: Medium + Space>(medium: M, options: &Options) -> Result<Heap<M>, craton_pheap::Error> {
    let model = match options.model {
        ModelName::Log => Model::Log,
        ModelName::Gc => Model::Gc,
        ModelName::Frames => Model::Frames,
    };
    // Frames have records for all that the file may become.
    let most = if model == Model::Frames { options.most } else { 0 };
    let stripes = Config::stripes_for(model, M::FLUSHES);
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
    let default = Config::default();
    let half = Config::half_for(default.lanes, options.most);
    let config = Config { model, half, stripes, created: now, most, ..default };
    Heap::create(medium, config, heap_options())
}

pub fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| "--file: a path has no zero byte".to_owned())
}
