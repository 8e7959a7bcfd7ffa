//! The heap file: made or opened, with the medium that it asks for.
//!
//! **Failure.** A new heap is made beside the name, and gets it once it is whole: a crash in
//! between leaves no half-made file there. Errors are one line that names the file.

use crate::options::{ModelName, Options, WriteBackName};
use craton_base::{Medium, Promise, Space};
use craton_kv::StoreError;
use craton_kv::heap::HeapStore;
use craton_kv::log::LogFile;
use craton_kv::server::{Gates, SyncHeap};
use craton_os::DiskFile;
use craton_os::disk_file::DiskOptions;
use craton_os::persistent_file::{FileError, FileOptions, PersistentFile, UseMedium, WriteBackChoice};
use craton_pheap::{Config, Heap, Model};
use std::ffi::CString;
use std::fmt::Display;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

/// What runs on the heap, and returns it when it ends well.
pub trait UseHeap {
    fn call<M: Medium + Space + 'static>(
        self,
        heap: Heap<M>,
        promise: Promise,
        disk: Option<DiskParts<M>>,
    ) -> Result<Heap<M>, String>;
}

/// What makes writes durable on a disk.
pub struct DiskParts<M: Medium + Space> {
    pub interval: Duration,
    pub files: [Box<dyn LogFile>; 2],
    pub sync: SyncHeap<HeapStore<M>>,
}

/// Bytes of a new file, before the heap makes it longer.
const FIRST: u64 = 1 << 20;

/// Opens the heap file of the options, or makes it, and calls `f`.
pub fn with_heap(options: &Options, f: impl UseHeap) -> Result<(), String> {
    let path = &options.file;
    let named = |why: &dyn Display| format!("{}: {why}", path.display());
    if let Some(interval) = options.sync {
        return on_disk(options, interval, f);
    }
    if with(path, JOURNAL).exists() {
        return Err(named(&"was used with --sync and not closed: use it so again"));
    }
    let choice = match options.write_back {
        WriteBackName::Auto => WriteBackChoice::Auto,
        WriteBackName::Flush => WriteBackChoice::Flush,
        WriteBackName::None => WriteBackChoice::None,
    };
    let file_options = FileOptions::new(options.most);
    let is_new = !path.exists();
    let unfinished = with(path, ".new");
    let file = if is_new {
        // Left by a process that ended while it made the file.
        match std::fs::remove_file(&unfinished) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => return Err(named(&why)),
            _ => PersistentFile::create(&c_path(&unfinished)?, FIRST, file_options),
        }
    } else {
        PersistentFile::open(&c_path(path)?, file_options)
    };
    let file = file.map_err(|why| match why {
        FileError::TooLong(bytes) => named(&format!("{bytes} bytes are more than --most: raise it")),
        why => named(&why),
    })?;
    let promise = file.promise();
    let run = Run { options, promise, unfinished: is_new.then_some(unfinished), f };
    file.with_medium(choice, run).map_err(|why| named(&why))?
}

struct Run<'a, F> {
    options: &'a Options,
    promise: Promise,
    /// The file that is to get the heap's name.
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
                let heap = create(medium, self.options).map_err(|why| named(&why))?;
                // Refused if another process has made the file meanwhile.
                std::fs::hard_link(unfinished, path).map_err(|why| named(&why))?;
                let _ = std::fs::remove_file(unfinished);
                heap
            }
            None => Heap::open(medium, craton_pheap::Options::default()).map_err(|why| named(&why))?.0,
        };
        self.f.call(heap, self.promise, None)?.close();
        Ok(())
    }
}

fn create<M: Medium + Space>(medium: M, options: &Options) -> Result<Heap<M>, craton_pheap::Error> {
    let model = match options.model {
        ModelName::Log => Model::Log,
        ModelName::Gc => Model::Gc,
        ModelName::Frames => Model::Frames,
    };
    // Frames have records for all that the file may become.
    let most = if model == Model::Frames { options.most } else { 0 };
    // Bits of one object are spread over lines only where lines are written back.
    let stripes = if M::FLUSHES { Config::default().stripes } else { 1 };
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
    let config = Config { model, stripes, created: now, most, ..Config::default() };
    Heap::create(medium, config, craton_pheap::Options::default())
}

/// Serves a heap on a disk, whose state after a crash is the heap's last sync point and the log.
fn on_disk(options: &Options, interval: Duration, f: impl UseHeap) -> Result<(), String> {
    let path = &options.file;
    let named = |why: &dyn Display| format!("{}: {why}", path.display());
    if options.write_back != WriteBackName::Auto {
        return Err(named(&"--write-back has no use with --sync: leave one of them out"));
    }
    let disk_options = DiskOptions::new(options.most);
    let medium = if path.exists() {
        DiskFile::open(&c_path(path)?, disk_options)
    } else {
        DiskFile::create(&c_path(path)?, FIRST, disk_options)
    };
    let medium = medium.map_err(|why| named(&why))?;
    let promise = medium.promise();
    // All zero: made by a process that ended before its heap was durable.
    let is_new = medium.len() == FIRST && (0..FIRST).step_by(8).all(|at| medium.word(at).load(Ordering::Relaxed) == 0);
    let heap = if is_new {
        create(medium, options)
    } else {
        Heap::open(medium, craton_pheap::Options::default()).map(|(heap, _)| heap)
    };
    let heap = heap.map_err(|why| named(&why))?;
    let open = |name: &str| {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).mode(0o640).open(with(path, name));
        let file = file.and_then(|file| fill(&file, options.log + FIRST).map(|()| file));
        file.map(|file| Box::new(file) as Box<dyn LogFile>).map_err(|why| format!("{}{name}: {why}", path.display()))
    };
    let files = [open(".log0")?, open(".log1")?];
    // The log's names are durable before its first record.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|why| named(&why))?;
    let parts = DiskParts { interval, files, sync: sync_disk };
    let medium = f.call(heap, promise, Some(parts))?.close();
    medium.sync(|| ()).and_then(|_| medium.close()).map_err(|why| named(&why))
}

/// Writes zeros up to a length, so that a flush of the log finds its blocks in place.
fn fill(file: &File, bytes: u64) -> std::io::Result<()> {
    let zeros = vec![0; FIRST as usize];
    let len = file.metadata()?.len();
    if len >= bytes {
        return Ok(());
    }
    for at in (len..bytes).step_by(zeros.len()) {
        file.write_all_at(&zeros[..zeros.len().min((bytes - at) as usize)], at)?;
    }
    file.sync_all()
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
    if medium.wants_checkpoint() {
        medium.checkpoint().map_err(failed)?;
        medium.release(|| gates.pause()).map_err(failed)?;
    }
    Ok(())
}

/// The name of the file that the disk's medium has beside a heap that is not closed.
const JOURNAL: &str = ".journal";

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| "--file: a path has no zero byte".to_owned())
}
