//! LLFree by its authors, as a library loaded from where it was built.
//!
//! **What.** `make frames-peer` builds their code with 4 huge frames a tree (their default) and
//! with the paper's 32. [`here`] finds these libraries among the peers, [`Authors`] is an allocator
//! of one, [`note`] names missing ones.
//!
//! **From.** <https://github.com/luhsra/llfree-rs>; `peers-frames/llfree` has the commit and the
//! functions called here. Their crate derives a block's class from its order, or also from whether
//! it moves: [`Classes`].
//!
//! **Failure.** A library that cannot be loaded or has other functions is an error that names the
//! file. What their code refuses is refused here. A panic of theirs ends the process.
//!
//! **Threads.** Theirs. A processor's number is below the number that the allocator was made for.
//!
//! **Unsafe.** Loads a library and calls its functions by declared types; the library's version
//! must be the one declared here.

use super::Frames;
use craton_frames::{Kind, Request};
use craton_lab::{peers, shared_object};
use std::ffi::{CStr, CString, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// The version of the library's functions, as `peers-frames/llfree/src/lib.rs` has it.
const ABI: u32 = 1;
const BUILD: &str = "`make frames-peer` builds it";

/// Huge frames of a tree, of which each number is a build of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trees {
    /// Their default.
    Four,
    /// The paper's.
    ThirtyTwo,
}

impl Trees {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Four, Self::ThirtyTwo];

    fn huge(self) -> u32 {
        match self {
            Self::Four => 4,
            Self::ThirtyTwo => 32,
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Four => "llfree4.so",
            Self::ThirtyTwo => "llfree32.so",
        }
    }
}

/// What their allocator keeps apart, on trees of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Classes {
    /// Huge frames from others.
    Simple,
    /// Also what stays from what may be moved.
    Movable,
}

/// What it is called.
pub fn name(trees: Trees, classes: Classes) -> &'static str {
    match (trees, classes) {
        (Trees::Four, Classes::Simple) => "llfree4",
        (Trees::Four, Classes::Movable) => "llfree4-movable",
        (Trees::ThirtyTwo, Classes::Simple) => "llfree32",
        (Trees::ThirtyTwo, Classes::Movable) => "llfree32-movable",
    }
}

/// The builds that are there.
pub fn here() -> Vec<Trees> {
    Trees::ALL.into_iter().filter(|trees| find(*trees).is_ok()).collect()
}

/// A line for each build that is not there, with what to do; nothing if both are.
pub fn note() -> String {
    let missing = Trees::ALL.into_iter().filter(|trees| find(*trees).is_err());
    missing.map(|trees| missing_note(trees) + "\n").collect()
}

/// Without folders of this machine, since it goes into records.
fn missing_note(trees: Trees) -> String {
    let (name, huge) = (name(trees, Classes::Simple), trees.huge());
    format!("{name}: the authors' code with {huge} huge frames a tree is not there; {BUILD}")
}

fn find(trees: Trees) -> Result<PathBuf, String> {
    let program = craton_cli::place::own().unwrap_or_default();
    find_in(&peers::directories(&program), trees)
}

fn find_in(directories: &[PathBuf], trees: Trees) -> Result<PathBuf, String> {
    let paths: Vec<PathBuf> = directories.iter().map(|directory| directory.join(trees.file())).collect();
    paths.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let tried: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        format!("{}; tried: {}", missing_note(trees), tried.join(", "))
    })
}

type Handle = c_void;

type Needed = unsafe extern "C" fn(frames: usize, threads: usize, classes: u32) -> usize;
type Create = unsafe extern "C" fn(memory: *mut u8, frames: usize, threads: usize, classes: u32) -> *mut Handle;
type Get = unsafe extern "C" fn(*const Handle, order: u32, thread: usize, stays: bool) -> i64;
type Put = unsafe extern "C" fn(*const Handle, frame: usize, order: u32, thread: usize, stays: bool) -> i32;
type Drain = unsafe extern "C" fn(*const Handle);
type FreeFrames = unsafe extern "C" fn(*const Handle) -> usize;

/// The library's functions; what each does is said there.
#[derive(Clone, Copy)]
struct Functions {
    needed: Needed,
    create: Create,
    get: Get,
    put: Put,
    drain: Drain,
    free_frames: FreeFrames,
}

struct Library(NonNull<c_void>);

impl Library {
    fn open(path: &Path) -> Result<Self, String> {
        shared_object::check(path).map_err(|why| format!("{} {why}", path.display()))?;
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path with a zero in it".to_owned())?;
        // SAFETY: a path that ends with a zero. A peer's library and its constructors are trusted.
        let loaded = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(loaded).map(Self).ok_or_else(|| format!("{} cannot be loaded: {}", path.display(), why()))
    }

    fn symbol(&self, name: &CStr) -> Result<NonNull<c_void>, String> {
        // SAFETY: a library that is loaded, and a name that ends with a zero.
        let at = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(at).ok_or_else(|| format!("has no function {}; {BUILD} anew", name.to_string_lossy()))
    }

    /// The functions, if the library's are those declared here, with trees of that size.
    fn functions(&self, trees: Trees) -> Result<Functions, String> {
        let number = |name| {
            let at = self.symbol(name)?;
            // SAFETY: both have had this type since the first version, to describe the others.
            let number = unsafe { transmute::<NonNull<c_void>, unsafe extern "C" fn() -> u32>(at) };
            // SAFETY: it has no arguments and no conditions.
            Ok::<u32, String>(unsafe { number() })
        };
        agree(number(c"llfree_abi")?, number(c"llfree_tree_huge")?, trees)?;
        let [needed, create, get, put, drain, free] =
            [c"llfree_needed", c"llfree_create", c"llfree_get", c"llfree_put", c"llfree_drain", c"llfree_free_frames"]
                .map(|name| self.symbol(name));
        // SAFETY: by the version the functions have these types; a null pointer is none.
        unsafe {
            Ok(Functions {
                needed: transmute::<NonNull<c_void>, Needed>(needed?),
                create: transmute::<NonNull<c_void>, Create>(create?),
                get: transmute::<NonNull<c_void>, Get>(get?),
                put: transmute::<NonNull<c_void>, Put>(put?),
                drain: transmute::<NonNull<c_void>, Drain>(drain?),
                free_frames: transmute::<NonNull<c_void>, FreeFrames>(free?),
            })
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: loaded once by this value; who called its functions has ended.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

fn why() -> String {
    // SAFETY: null, or a string that stays until this thread's next such call.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "no reason is known".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// Whether what a library says of itself is what is expected of it.
fn agree(abi: u32, huge: u32, trees: Trees) -> Result<(), String> {
    if abi != ABI {
        return Err(format!("has functions of version {abi}, and {ABI} is needed; {BUILD} anew"));
    }
    if huge != trees.huge() {
        return Err(format!("has {huge} huge frames a tree, and {} were expected; {BUILD} anew", trees.huge()));
    }
    Ok(())
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The allocator.
pub struct Authors {
    functions: Functions,
    handle: NonNull<Handle>,
    processors: usize,
    /// What the handle lies in, and who has the functions: both are only kept.
    _memory: Vec<Line>,
    _library: Library,
}

// SAFETY: any thread may use their allocator at any time; the rest is constant.
unsafe impl Sync for Authors {}

impl Authors {
    /// All frames are free. Error: no or another library, or a size that their code refuses.
    pub fn new(trees: Trees, classes: Classes, frames: usize, processors: usize) -> Result<Self, String> {
        Self::of(&find(trees)?, trees, classes, frames, processors)
    }

    fn of(path: &Path, trees: Trees, classes: Classes, frames: usize, processors: usize) -> Result<Self, String> {
        let library = Library::open(path)?;
        let functions = library.functions(trees).map_err(|why| format!("{} {why}", path.display()))?;
        let kinds = match classes {
            Classes::Simple => 2,
            Classes::Movable => 3,
        };
        // SAFETY: any numbers will do.
        let needed = unsafe { (functions.needed)(frames, processors, kinds) };
        // Written before it is used, as the arrays of others are.
        let mut memory = vec![Line([0; 64]); needed.div_ceil(size_of::<Line>())];
        // SAFETY: enough memory, on a cache line, all zeros, and from here on theirs alone.
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
        // SAFETY: the handle's memory is there as long as this value.
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

    /// All processors': their code has no other way.
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
