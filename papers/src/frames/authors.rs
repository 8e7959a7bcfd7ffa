//! LLFree by its authors, in a library loaded at run time: `make frames-peer` builds
//! `peers-frames/llfree`, with 4 huge frames a tree and with 32. Their panic ends the process.
//!
//! **Unsafe.** Calls functions by their declared types, if the version is ours.

use super::Frames;
use craton_frames::{Kind, Request};
use craton_lab::{peers, shared_object};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

const ABI: u32 = 1;
const BUILD: &str = "`make frames-peer` builds it";

/// Huge frames: their default, and the paper's.
pub const TREES: [u32; 2] = [4, 32];

/// They have separate trees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Classes {
    /// Huge frames from others.
    Simple,
    /// Also unmovable from movable.
    Movable,
}

pub fn name(trees: u32, classes: Classes) -> &'static str {
    match (trees, classes) {
        (4, Classes::Simple) => "llfree4",
        (4, Classes::Movable) => "llfree4-movable",
        (_, Classes::Simple) => "llfree32",
        (_, Classes::Movable) => "llfree32-movable",
    }
}

pub fn here() -> Vec<u32> {
    TREES.into_iter().filter(|trees| find(*trees).is_ok()).collect()
}

pub fn note() -> String {
    let missing = TREES.into_iter().filter(|trees| find(*trees).is_err());
    missing.map(|trees| missing_note(trees) + "\n").collect()
}

/// Without this machine's folders, for records.
fn missing_note(trees: u32) -> String {
    let name = name(trees, Classes::Simple);
    format!("{name}: the authors' code with {trees} huge frames a tree is not there; {BUILD}")
}

fn find(trees: u32) -> Result<PathBuf, String> {
    let program = craton_cli::place::own().unwrap_or_default();
    find_in(&peers::directories(&program), trees)
}

fn find_in(directories: &[PathBuf], trees: u32) -> Result<PathBuf, String> {
    let paths: Vec<PathBuf> = directories.iter().map(|directory| directory.join(format!("llfree{trees}.so"))).collect();
    paths.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let tried: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        format!("{}; tried: {}", missing_note(trees), tried.join(", "))
    })
}

type Handle = c_void;

#[derive(Clone, Copy)]
struct Functions {
    needed: unsafe extern "C" fn(frames: usize, threads: usize, classes: u32) -> usize,
    create: unsafe extern "C" fn(memory: *mut u8, frames: usize, threads: usize, classes: u32) -> *mut Handle,
    get: unsafe extern "C" fn(*const Handle, order: u32, thread: usize, stays: bool) -> i64,
    put: unsafe extern "C" fn(*const Handle, frame: usize, order: u32, thread: usize, stays: bool) -> i32,
    drain: unsafe extern "C" fn(*const Handle),
    free_frames: unsafe extern "C" fn(*const Handle) -> usize,
}

fn open(path: &Path) -> Result<Library, String> {
    shared_object::check(path).map_err(|why| format!("{} {why}", path.display()))?;
    // SAFETY: a peer's library is trusted.
    let loaded = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    loaded.map_err(|why| format!("{} cannot be loaded: {why}", path.display()))
}

fn functions(library: &Library, trees: u32) -> Result<Functions, String> {
    /// # Safety
    /// The function of that name has this type.
    unsafe fn find<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
        // SAFETY: by the contract.
        let found = unsafe { library.get::<T>(name.as_bytes()) };
        found.map(|found| *found).map_err(|_| format!("has no function {name}; {BUILD} anew"))
    }
    let number = |name| {
        // SAFETY: their types since the first version.
        unsafe { find::<unsafe extern "C" fn() -> u32>(library, name).map(|number| number()) }
    };
    agree(number("llfree_abi")?, number("llfree_tree_huge")?, trees)?;
    // SAFETY: the version's types.
    unsafe {
        Ok(Functions {
            needed: find(library, "llfree_needed")?,
            create: find(library, "llfree_create")?,
            get: find(library, "llfree_get")?,
            put: find(library, "llfree_put")?,
            drain: find(library, "llfree_drain")?,
            free_frames: find(library, "llfree_free_frames")?,
        })
    }
}

fn agree(abi: u32, huge: u32, trees: u32) -> Result<(), String> {
    if abi != ABI {
        return Err(format!("has functions of version {abi}, and {ABI} is needed; {BUILD} anew"));
    }
    if huge != trees {
        return Err(format!("has {huge} huge frames a tree, and {trees} were expected; {BUILD} anew"));
    }
    Ok(())
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

pub struct Authors {
    functions: Functions,
    handle: NonNull<Handle>,
    processors: usize,
    /// Kept alive only.
    _memory: Vec<Line>,
    _library: Library,
}

// SAFETY: any thread may use their allocator; the fields never change.
unsafe impl Sync for Authors {}

impl Authors {
    pub fn new(trees: u32, classes: Classes, frames: usize, processors: usize) -> Result<Self, String> {
        Self::of(&find(trees)?, trees, classes, frames, processors)
    }

    fn of(path: &Path, trees: u32, classes: Classes, frames: usize, processors: usize) -> Result<Self, String> {
        let library = open(path)?;
        let functions = functions(&library, trees).map_err(|why| format!("{} {why}", path.display()))?;
        let kinds = match classes {
            Classes::Simple => 2,
            Classes::Movable => 3,
        };
        // SAFETY: any numbers.
        let needed = unsafe { (functions.needed)(frames, processors, kinds) };
        // Written first, as the arrays of others are.
        let mut memory = vec![Line([0; 64]); needed.div_ceil(size_of::<Line>())];
        // SAFETY: zeroed memory of this size on a cache line, used by nothing else.
        let handle = unsafe { (functions.create)(memory.as_mut_ptr().cast(), frames, processors, kinds) };
        let handle = NonNull::new(handle).filter(|_| needed > 0);
        let handle = handle.ok_or_else(|| {
            format!("{} makes no allocator of {frames} frames for {processors} processors", path.display())
        })?;
        Ok(Self { functions, handle, processors, _memory: memory, _library: library })
    }
}

impl Frames for Authors {
    #[inline]
    fn get(&self, Request { order, kind, processor }: Request) -> Option<usize> {
        if processor >= self.processors {
            return None;
        }
        let stays = kind == Kind::Unmovable;
        // SAFETY: the handle's memory lives as long as this value.
        let frame = unsafe { (self.functions.get)(self.handle.as_ptr(), order, processor, stays) };
        usize::try_from(frame).ok()
    }

    #[inline]
    fn put(&self, frame: usize, Request { order, kind, processor }: Request) -> bool {
        if processor >= self.processors {
            return false;
        }
        let stays = kind == Kind::Unmovable;
        // SAFETY: as above.
        unsafe { (self.functions.put)(self.handle.as_ptr(), frame, order, processor, stays) == 0 }
    }

    /// All processors': they have no other way.
    fn drain(&self, _processor: usize) {
        // SAFETY: as above.
        unsafe { (self.functions.drain)(self.handle.as_ptr()) };
    }

    fn free_frames(&self) -> usize {
        // SAFETY: as above.
        unsafe { (self.functions.free_frames)(self.handle.as_ptr()) }
    }
}

#[cfg(test)]
mod tests;
