//! NVAlloc by its authors as a [`Heap`]: `make heaps-peer` builds it with `peers-heaps/nvalloc`.
//!
//! It has no roots, batches, or recovery: it serves the loads that allocate into slots. Places are
//! addresses. Its files lie in a folder, below the one in which the process then runs. A request
//! that it cannot serve ends the process.
//!
//! **Unsafe.** Calls the library's functions by their declared types; accesses objects that the
//! loads allocated.

use super::task::{Load, Mode, Task};
use super::{Count, Heap, ROOTS, Refused};
use craton_kv::{Change, Reservation, Store, StoreError};
use craton_lab::peers;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// In the task's directory; the library knows the name.
pub const FOLDER: &str = "nvalloc-files";
const LOADS: [Load; 6] =
    [Load::Threadtest, Load::ProdCon, Load::Shbench, Load::LarsonSmall, Load::LarsonLarge, Load::Dbmstest];

pub fn is_here() -> Result<(), String> {
    find(Mode::Flush).map(|_| ())
}

/// Its library that writes lines back, or the one that does not.
fn find(mode: Mode) -> Result<PathBuf, String> {
    let name = if mode == Mode::None { "nvalloc-none.so" } else { "nvalloc.so" };
    let program = craton_cli::place::own().unwrap_or_default();
    let mut paths = peers::directories(&program).into_iter().map(|directory| directory.join(name));
    let missing = || "the authors' code is not there; `make heaps-peer` builds it".to_owned();
    paths.find(|path| path.is_file()).ok_or_else(missing)
}

pub struct Nvalloc {
    malloc_to: unsafe extern "C" fn(usize, *mut *mut c_void) -> *mut c_void,
    free_from: unsafe extern "C" fn(*mut *mut c_void),
    /// [`ROOTS`] slots, in an object.
    roots: u64,
    _library: Library,
}

impl Nvalloc {
    /// Moves the process to the task's directory.
    pub fn new(task: &Task) -> Result<Self, String> {
        if !LOADS.contains(&task.load) || task.mode == Mode::Counted {
            return Err(format!("nvalloc cannot do {} with mode {}", task.load.name(), task.mode.name()));
        }
        let path = find(task.mode)?;
        let path = std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let moved = std::fs::create_dir_all(task.directory.join(FOLDER));
        let moved = moved.and_then(|()| std::env::set_current_dir(&task.directory));
        moved.map_err(|e| format!("{}: {e}", task.directory.display()))?;
        // SAFETY: a peer's library is trusted.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|why| format!("{} cannot be loaded: {why}", path.display()))?;
        // SAFETY: the types of its header; `init` is called once, before the others.
        unsafe {
            let init = function::<unsafe extern "C" fn() -> c_int>(&library, "init")?;
            let malloc_to = function(&library, "malloc_to")?;
            let free_from = function(&library, "free_from")?;
            init();
            let mut this = Self { malloc_to, free_from, roots: 0, _library: library };
            this.roots = this.allocate(Box::into_raw(Box::new(0)), ROOTS * Self::SLOT_BYTES).map_err(|_| this.why())?;
            Ok(this)
        }
    }

    /// # Safety
    /// `slot` is a word that lives as long as the object.
    unsafe fn allocate(&self, slot: *mut u64, bytes: u64) -> Result<u64, Refused> {
        // SAFETY: the caller's promise.
        let object = unsafe { (self.malloc_to)(bytes as usize, slot.cast()) };
        if object.is_null() { Err(Refused) } else { Ok(object as u64) }
    }
}

/// # Safety
/// The function of that name has this type.
unsafe fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller's promise.
    let found = unsafe { library.get::<T>(format!("nvalloc_{name}").as_bytes()) };
    found.map(|found| *found).map_err(|_| format!("nvalloc has no function nvalloc_{name}"))
}

fn word(at: u64) -> &'static AtomicU64 {
    // SAFETY: the loads pass places of objects and slots that they have; memory stays mapped.
    unsafe { &*(at as *const AtomicU64) }
}

impl Heap for Nvalloc {
    const SLOT_BYTES: u64 = size_of::<u64>() as u64;

    fn table(&self, number: u64, bytes: u64) -> Result<u64, Refused> {
        let table = self.alloc(self.root(number), bytes)?;
        (0..bytes / 8).for_each(|i| self.store(table + 8 * i, 0));
        Ok(table)
    }

    fn root(&self, number: u64) -> u64 {
        self.roots + number * Self::SLOT_BYTES
    }

    #[inline]
    fn alloc(&self, slot: u64, bytes: u64) -> Result<u64, Refused> {
        // SAFETY: a slot lives as long as the heap.
        unsafe { self.allocate(slot as *mut u64, bytes) }
    }

    #[inline]
    fn free(&self, slot: u64) -> Result<(), Refused> {
        // SAFETY: the slot holds an object.
        unsafe { (self.free_from)(slot as *mut *mut c_void) };
        // That of a small object still points there.
        self.store(slot, 0);
        Ok(())
    }

    #[inline]
    fn holds(&self, slot: u64) -> u64 {
        word(slot).load(Ordering::Relaxed)
    }

    fn tree_slot(&self) -> u64 {
        self.root(0)
    }

    fn count(&self) -> Option<&dyn Count> {
        None
    }

    fn why(&self) -> String {
        "it names no reason".to_owned()
    }
}

/// None can be made.
pub enum Reserved {}

impl Reservation for Reserved {
    fn at(&self) -> u64 {
        match *self {}
    }
}

/// Words alone: it reserves and commits nothing.
impl Store for Nvalloc {
    type Reserved = Reserved;

    #[inline]
    fn load(&self, at: u64) -> Option<u64> {
        // ORDERING: pairs with the release in `store`.
        at.is_multiple_of(8).then(|| word(at).load(Ordering::Acquire))
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        // ORDERING: pairs with the acquire in `load`.
        word(at).store(value, Ordering::Release);
    }

    fn reserve(&self, _bytes: u64) -> Result<Reserved, StoreError> {
        Err(StoreError::NoMemory)
    }

    fn cancel(&self, object: Reserved) {
        match object {}
    }

    fn persist(&self, _at: u64, _bytes: u64) {}

    fn commit<I: IntoIterator<Item = Change<Reserved>>>(&self, _changes: I) -> Result<(), StoreError> {
        Err(StoreError::NoMemory)
    }
}
