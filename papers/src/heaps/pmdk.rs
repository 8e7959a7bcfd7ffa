//! PMDK's libpmemobj as a [`Heap`]: libpmemobj(7), pmemobj_action(3).
//!
//! Slots are its 16-byte object identifiers. As a [`Store`], slots are offsets of 8 bytes, and
//! `pmemobj_publish` commits an array of actions. `PMEM_IS_PMEM_FORCE=1` makes it flush lines of
//! any file, unless there is `PMEM_NO_FLUSH=1`.
//!
//! **Unsafe.** Calls the library's functions by their documented types; accesses the pool by
//! atomics within it.

use super::{Count, Heap, ROOTS, Refused, count, space};
use craton_kv::{Change, Reservation, Store, StoreError};
use libloading::os::unix::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

const LIBRARY: &str = "libpmemobj.so.1";
const LAYOUT: &CStr = c"craton";
const ROOT_BYTES: usize = (ROOTS as usize + 1) * size_of::<Oid>();

type Pool = c_void;

/// `PMEMoid`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Oid {
    pool: u64,
    at: u64,
}

/// `struct pobj_action`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Action([u64; 16]);

type Create = unsafe extern "C" fn(*const c_char, *const c_char, usize, libc::mode_t) -> *mut Pool;
type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut Pool;
type Construct = Option<unsafe extern "C" fn(*mut Pool, *mut c_void, *mut c_void) -> c_int>;

struct Functions {
    create: Create,
    open: Open,
    close: unsafe extern "C" fn(*mut Pool),
    root: unsafe extern "C" fn(*mut Pool, usize) -> Oid,
    alloc: unsafe extern "C" fn(*mut Pool, *mut Oid, usize, u64, Construct, *mut c_void) -> c_int,
    zalloc: unsafe extern "C" fn(*mut Pool, *mut Oid, usize, u64) -> c_int,
    free: unsafe extern "C" fn(*mut Oid),
    flush: unsafe extern "C" fn(*mut Pool, *const c_void, usize),
    drain: unsafe extern "C" fn(*mut Pool),
    reserve: unsafe extern "C" fn(*mut Pool, *mut Action, usize, u64) -> Oid,
    set_value: unsafe extern "C" fn(*mut Pool, *mut Action, *mut u64, u64),
    defer_free: unsafe extern "C" fn(*mut Pool, Oid, *mut Action),
    publish: unsafe extern "C" fn(*mut Pool, *mut Action, usize) -> c_int,
    cancel: unsafe extern "C" fn(*mut Pool, *mut Action, usize),
    message: unsafe extern "C" fn() -> *const c_char,
}

impl Functions {
    fn find(library: &Library) -> Result<Self, String> {
        /// # Safety
        /// The function of that name has this type.
        unsafe fn find<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: the caller's promise.
            let found = unsafe { library.get::<T>(format!("pmemobj_{name}").as_bytes()) };
            found.map(|found| *found).map_err(|_| format!("{LIBRARY} has no function pmemobj_{name}"))
        }
        // SAFETY: the types of the headers, which the library's first number fixes.
        unsafe {
            Ok(Self {
                create: find(library, "create")?,
                open: find(library, "open")?,
                close: find(library, "close")?,
                root: find(library, "root")?,
                alloc: find(library, "alloc")?,
                zalloc: find(library, "zalloc")?,
                free: find(library, "free")?,
                flush: find(library, "flush")?,
                drain: find(library, "drain")?,
                reserve: find(library, "reserve")?,
                set_value: find(library, "set_value")?,
                defer_free: find(library, "defer_free")?,
                publish: find(library, "publish")?,
                cancel: find(library, "cancel")?,
                message: find(library, "errormsg")?,
            })
        }
    }
}

pub fn is_here() -> Result<(), String> {
    load().map(|_| ())
}

fn load() -> Result<Library, String> {
    // SAFETY: the system's library is trusted.
    let loaded = unsafe { Library::new(LIBRARY) };
    loaded.map_err(|_| format!("{LIBRARY} is not here; Debian's package libpmemobj1 has it"))
}

pub struct Pmdk {
    functions: Functions,
    pool: NonNull<Pool>,
    bytes: u64,
    id: u64,
    root: u64,
    /// Kept alive.
    _library: Library,
    counting: Option<Library>,
}

// SAFETY: any thread may call the library; the fields never change.
unsafe impl Send for Pmdk {}
// SAFETY: as above.
unsafe impl Sync for Pmdk {}

#[derive(Clone, Copy)]
pub enum Begin {
    /// Bytes.
    New(u64),
    Old,
}

impl Pmdk {
    /// With a folder, flushes are counted instead of done.
    pub fn new(path: &Path, begin: Begin, counted: Option<&Path>) -> Result<Self, String> {
        if std::env::var_os("PMEM_IS_PMEM_FORCE").is_none_or(|it| it != "1") {
            return Err("libpmemobj calls msync unless PMEM_IS_PMEM_FORCE=1 is set".to_owned());
        }
        // Before libpmemobj, which then links to it.
        let counting = counted.map(count::install).transpose()?;
        let library = load()?;
        let functions = Functions::find(&library)?;
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        let checked = |pool: *mut Pool| NonNull::new(pool).ok_or_else(|| message(&functions));
        if let Begin::New(bytes) = begin {
            // SAFETY: strings with a zero byte at the end.
            let pool = unsafe { (functions.create)(name.as_ptr(), LAYOUT.as_ptr(), bytes as usize, 0o600) };
            let pool = checked(pool)?;
            // The library writes zeros to all of it.
            // SAFETY: the pool is open, and closed once.
            unsafe { (functions.close)(pool.as_ptr()) };
            space::punch_zeros(path)
                .map_err(|e| format!("cannot give back what {} does not use: {e}", path.display()))?;
        }
        // SAFETY: as above.
        let pool = checked(unsafe { (functions.open)(name.as_ptr(), LAYOUT.as_ptr()) })?;
        count::POOL.store(pool.as_ptr() as u64, Ordering::Relaxed);
        // SAFETY: the pool is open.
        let root = unsafe { (functions.root)(pool.as_ptr(), ROOT_BYTES) };
        let bytes = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
        Ok(Self { functions, pool, bytes, id: root.pool, root: root.at, _library: library, counting })
    }

    fn at(&self, at: u64) -> *mut u8 {
        assert!(at < self.bytes, "no byte {at} in a pool of {} bytes", self.bytes);
        // SAFETY: inside of the pool, which is mapped as a whole.
        unsafe { self.pool.as_ptr().cast::<u8>().add(at as usize) }
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        // SAFETY: mapped while the pool is open, and aligned.
        unsafe { &*self.at(at).cast() }
    }

    fn oid(&self, at: u64) -> Oid {
        Oid { pool: self.id, at }
    }

    fn set(&self, actions: &mut Vec<Action>, slot: u64, value: u64) {
        let mut action = Action([0; 16]);
        // SAFETY: the pool is open, the slot in it.
        unsafe { (self.functions.set_value)(self.pool.as_ptr(), &raw mut action, self.at(slot).cast(), value) };
        actions.push(action);
    }

    fn defer_free(&self, actions: &mut Vec<Action>, slot: u64) {
        let mut action = Action([0; 16]);
        let oid = self.oid(self.word(slot).load(Ordering::Relaxed));
        // SAFETY: the pool is open, the object in it.
        unsafe { (self.functions.defer_free)(self.pool.as_ptr(), oid, &raw mut action) };
        actions.push(action);
    }
}

fn message(functions: &Functions) -> String {
    // SAFETY: the library's string about this thread's last error.
    let text = unsafe { CStr::from_ptr((functions.message)()) };
    text.to_string_lossy().into_owned()
}

impl Drop for Pmdk {
    fn drop(&mut self) {
        // SAFETY: the pool is open, and closed once.
        unsafe { (self.functions.close)(self.pool.as_ptr()) };
    }
}

impl Heap for Pmdk {
    const SLOT_BYTES: u64 = size_of::<Oid>() as u64;

    fn table(&self, number: u64, bytes: u64) -> Result<u64, Refused> {
        let slot = self.root(number);
        // SAFETY: the pool is open, the slot in it.
        match unsafe { (self.functions.zalloc)(self.pool.as_ptr(), self.at(slot).cast(), bytes as usize, 0) } {
            0 => Ok(self.holds(slot)),
            _ => Err(Refused),
        }
    }

    fn root(&self, number: u64) -> u64 {
        self.root + number * Self::SLOT_BYTES
    }

    #[inline]
    fn alloc(&self, slot: u64, bytes: u64) -> Result<u64, Refused> {
        let (oid, pool) = (self.at(slot).cast(), self.pool.as_ptr());
        // SAFETY: as in `table`.
        match unsafe { (self.functions.alloc)(pool, oid, bytes as usize, 0, None, null_mut()) } {
            0 => Ok(self.holds(slot)),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn free(&self, slot: u64) -> Result<(), Refused> {
        // SAFETY: a slot of the pool.
        unsafe { (self.functions.free)(self.at(slot).cast()) };
        Ok(())
    }

    #[inline]
    fn holds(&self, slot: u64) -> u64 {
        self.word(slot + 8).load(Ordering::Relaxed)
    }

    fn tree_slot(&self) -> u64 {
        self.root(ROOTS)
    }

    fn count(&self) -> Option<&dyn Count> {
        self.counting.as_ref().map(|_| &*count::PMDK as &dyn Count)
    }

    fn why(&self) -> String {
        message(&self.functions)
    }
}

pub struct Reserved {
    at: u64,
    action: Action,
}

impl Reservation for Reserved {
    fn at(&self) -> u64 {
        self.at
    }
}

impl Store for Pmdk {
    type Reserved = Reserved;

    #[inline]
    fn load(&self, at: u64) -> Option<u64> {
        // ORDERING: pairs with the release in `store`.
        (at.is_multiple_of(8) && at < self.bytes).then(|| self.word(at).load(Ordering::Acquire))
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        // ORDERING: pairs with the acquire in `load`.
        self.word(at).store(value, Ordering::Release);
    }

    fn reserve(&self, bytes: u64) -> Result<Reserved, StoreError> {
        let mut action = Action([0; 16]);
        // SAFETY: the pool is open; the library fills the action.
        let oid = unsafe { (self.functions.reserve)(self.pool.as_ptr(), &raw mut action, bytes as usize, 0) };
        if oid.at == 0 { Err(StoreError::NoMemory) } else { Ok(Reserved { at: oid.at, action }) }
    }

    fn cancel(&self, mut object: Reserved) {
        // SAFETY: an action of `reserve`, not yet published.
        unsafe { (self.functions.cancel)(self.pool.as_ptr(), &raw mut object.action, 1) };
    }

    fn persist(&self, at: u64, bytes: u64) {
        // SAFETY: inside of the pool.
        unsafe { (self.functions.flush)(self.pool.as_ptr(), self.at(at).cast(), bytes as usize) };
    }

    fn commit<I: IntoIterator<Item = Change<Reserved>>>(&self, changes: I) -> Result<(), StoreError> {
        let mut actions = Vec::with_capacity(2 * craton_kv::store::MOST_CHANGES);
        for change in changes {
            match change {
                Change::Attach { slot, object } => {
                    actions.push(object.action);
                    self.set(&mut actions, slot, object.at);
                }
                Change::Replace { slot, object } => {
                    self.defer_free(&mut actions, slot);
                    actions.push(object.action);
                    self.set(&mut actions, slot, object.at);
                }
                Change::Free { slot } => {
                    self.defer_free(&mut actions, slot);
                    self.set(&mut actions, slot, 0);
                }
                Change::Set { slot, value } => self.set(&mut actions, slot, value),
                Change::Link { slot, object, word, value } => {
                    actions.push(object.action);
                    self.set(&mut actions, slot, object.at);
                    self.set(&mut actions, word, value);
                }
            }
        }
        // SAFETY: the pool is open; each action is the library's.
        let published = unsafe {
            (self.functions.drain)(self.pool.as_ptr());
            (self.functions.publish)(self.pool.as_ptr(), actions.as_mut_ptr(), actions.len())
        };
        if published == 0 { Ok(()) } else { Err(StoreError::NoMemory) }
    }
}
