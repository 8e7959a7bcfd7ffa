//! The heap file: made or opened, with the medium that it asks for.
//!
//! **Failure.** A new heap is made beside the name, and gets it once it is whole: a crash in
//! between leaves no half-made file there. Errors are one line that names the file.

use crate::options::{ModelName, Options, WriteBackName};
use craton_base::{Medium, Promise, Space};
use craton_kv::heap::HeapStore;
use craton_kv::server::SyncPoints;
use craton_os::persistent_file::{FileError, FileOptions, PersistentFile, UseMedium, WriteBackChoice};
use craton_pheap::{Config, Heap, Model};
use std::ffi::CString;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What runs on the heap.
pub trait UseHeap {
    fn call<M: Medium + Space + 'static>(
        self,
        heap: Heap<M>,
        promise: Promise,
        sync: Option<SyncPoints<HeapStore<M>>>,
    ) -> Result<(), String>;
}

/// Bytes of a new file, before the heap makes it longer.
const FIRST: u64 = 1 << 20;

/// Opens the heap file of the options, or makes it, and calls `f`.
pub fn with_heap(options: &Options, f: impl UseHeap) -> Result<(), String> {
    let path = &options.file;
    let named = |why: &dyn Display| format!("{}: {why}", path.display());
    if options.sync.is_some() {
        return Err(named(&"--sync: this medium has no sync points; leave the option out"));
    }
    let choice = match options.write_back {
        WriteBackName::Auto => WriteBackChoice::Auto,
        WriteBackName::Flush => WriteBackChoice::Flush,
        WriteBackName::None => WriteBackChoice::None,
    };
    let file_options = FileOptions::new(options.most);
    let is_new = !path.exists();
    let unfinished = beside(path);
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
        let heap_options = craton_pheap::Options::default();
        let heap = match &self.unfinished {
            Some(unfinished) => {
                let model = match self.options.model {
                    ModelName::Log => Model::Log,
                    ModelName::Gc => Model::Gc,
                };
                // Bits of one object are spread over lines only where lines are written back.
                let stripes = if M::FLUSHES { Config::default().stripes } else { 1 };
                let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
                let config = Config { model, stripes, created: now, ..Config::default() };
                let heap = Heap::create(medium, config, heap_options).map_err(|why| named(&why))?;
                // Refused if another process has made the file meanwhile.
                std::fs::hard_link(unfinished, path).map_err(|why| named(&why))?;
                let _ = std::fs::remove_file(unfinished);
                heap
            }
            None => Heap::open(medium, heap_options).map_err(|why| named(&why))?.0,
        };
        self.f.call(heap, self.promise, None)
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| "--file: a path has no zero byte".to_owned())
}
