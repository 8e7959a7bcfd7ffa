//! Flushes and fences of a heap, counted exactly. For libpmemobj, `count.c` passes libpmem's calls
//! on to a medium of no memory.
//!
//! **Unsafe.** Loads the library just built, and calls its one function.

use craton_base::{LINE_BYTES, Medium};
use craton_sim::{Counted, Counters, Latency};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::c_void;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub trait Count {
    fn counters(&self) -> Counters;

    /// Keeps the offsets of the first `keep` flushes.
    fn reset(&self, keep: usize);

    fn first_flushes(&self) -> Vec<u64>;
}

impl<M: Medium> Count for Counted<M> {
    fn counters(&self) -> Counters {
        Counted::counters(self)
    }

    fn reset(&self, keep: usize) {
        Counted::reset(self, keep);
    }

    fn first_flushes(&self) -> Vec<u64> {
        Counted::first_flushes(self)
    }
}

pub struct Nowhere(AtomicU64);

impl Medium for Nowhere {
    const FLUSHES: bool = true;

    fn len(&self) -> u64 {
        u64::MAX
    }

    fn word(&self, _at: u64) -> &AtomicU64 {
        &self.0
    }

    fn flush(&self, _at: u64) {}

    fn fence(&self) {}
}

/// Of libpmemobj in this process.
pub static PMDK: LazyLock<Counted<Nowhere>> =
    LazyLock::new(|| Counted::new(Nowhere(AtomicU64::new(0)), Latency::PAPER));

/// Where it is mapped.
pub static POOL: AtomicU64 = AtomicU64::new(0);

extern "C" fn flushed(at: *const c_void, bytes: usize) {
    let from = (at as u64).wrapping_sub(POOL.load(Relaxed));
    let mut line = from / LINE_BYTES * LINE_BYTES;
    while line < from + bytes as u64 {
        PMDK.flush(line);
        line += LINE_BYTES;
    }
}

extern "C" fn fenced() {
    PMDK.fence();
}

/// For a libpmemobj that is loaded later.
pub fn install(directory: &Path) -> Result<Library, String> {
    let (source, library) = (directory.join("count.c"), directory.join("count.so"));
    fs::write(&source, include_str!("count.c")).map_err(|e| format!("cannot write {}: {e}", source.display()))?;
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
    let made = compile.status().map_err(|e| format!("libpmemobj's flushes are counted with a C compiler, cc: {e}"))?;
    if !made.success() {
        return Err(format!("cc could not build {}: {made}", source.display()));
    }
    // SAFETY: no constructors.
    let loaded = unsafe { Library::open(Some(&library), RTLD_NOW | RTLD_GLOBAL) };
    let loaded = loaded.map_err(|e| format!("{} cannot be loaded: {e}", library.display()))?;
    type Install = unsafe extern "C" fn(extern "C" fn(*const c_void, usize), extern "C" fn());
    // SAFETY: `count.c` declares this type.
    unsafe { loaded.get::<Install>(b"craton_count").map(|install| install(flushed, fenced)) }
        .map_err(|e| format!("{} is incomplete: {e}", library.display()))?;
    Ok(loaded)
}
