//! LMDB as a [`Durable`] (lmdb.h of version 0.9).
//!
//! **Unsafe.** Calls the library's functions by their documented types.

use super::{BYTES, Durable, RECORDS, Record, c_path};
use libloading::os::unix::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

const LIBRARY: &str = "liblmdb.so.0";
/// `MDB_NOSUBDIR`: the path is a file.
const NO_FOLDER: c_uint = 0x4000;
/// `MDB_INTEGERKEY`.
const INTEGER_KEYS: c_uint = 0x08;
/// Old pages stay until no transaction needs them.
const MAP_BYTES: usize = 4 * BYTES.next_multiple_of(4096) * RECORDS as usize;

type Env = c_void;
type Txn = c_void;

/// `MDB_val`.
#[repr(C)]
struct Value {
    bytes: usize,
    at: *mut c_void,
}

struct Functions {
    create: unsafe extern "C" fn(*mut *mut Env) -> c_int,
    set_mapsize: unsafe extern "C" fn(*mut Env, usize) -> c_int,
    open: unsafe extern "C" fn(*mut Env, *const c_char, c_uint, libc::mode_t) -> c_int,
    close: unsafe extern "C" fn(*mut Env),
    begin: unsafe extern "C" fn(*mut Env, *mut Txn, c_uint, *mut *mut Txn) -> c_int,
    table: unsafe extern "C" fn(*mut Txn, *const c_char, c_uint, *mut c_uint) -> c_int,
    put: unsafe extern "C" fn(*mut Txn, c_uint, *mut Value, *mut Value, c_uint) -> c_int,
    commit: unsafe extern "C" fn(*mut Txn) -> c_int,
    abort: unsafe extern "C" fn(*mut Txn),
    message: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Functions {
    fn find(library: &Library) -> Result<Self, String> {
        /// # Safety
        /// The function of that name has this type.
        unsafe fn find<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: the caller's promise.
            let found = unsafe { library.get::<T>(format!("mdb_{name}").as_bytes()) };
            found.map(|found| *found).map_err(|_| format!("{LIBRARY} has no function mdb_{name}"))
        }
        // SAFETY: the types of lmdb.h, which the library's number fixes.
        unsafe {
            Ok(Self {
                create: find(library, "env_create")?,
                set_mapsize: find(library, "env_set_mapsize")?,
                open: find(library, "env_open")?,
                close: find(library, "env_close")?,
                begin: find(library, "txn_begin")?,
                table: find(library, "dbi_open")?,
                put: find(library, "put")?,
                commit: find(library, "txn_commit")?,
                abort: find(library, "txn_abort")?,
                message: find(library, "strerror")?,
            })
        }
    }

    fn check(&self, what: &str, error: c_int) -> Result<(), String> {
        if error == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a string for any number.
        let message = unsafe { CStr::from_ptr((self.message)(error)) };
        Err(format!("LMDB, {what}: {}", message.to_string_lossy()))
    }
}

pub struct Lmdb {
    functions: Functions,
    env: *mut Env,
    /// Or null.
    txn: *mut Txn,
    table: c_uint,
    _library: Library,
}

impl Lmdb {
    pub fn new(path: &Path) -> Result<Self, String> {
        // SAFETY: the system's library is trusted.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|_| format!("{LIBRARY} is not here; Debian's package liblmdb0 has it"))?;
        let functions = Functions::find(&library)?;
        let mut env = null_mut();
        // SAFETY: the library stores an environment.
        functions.check("environment", unsafe { (functions.create)(&raw mut env) })?;
        let mut lmdb = Self { functions, env, txn: null_mut(), table: 0, _library: library };
        let (functions, name) = (&lmdb.functions, c_path(path)?);
        // SAFETY: an environment not yet open; the path ends by 0.
        functions.check("size", unsafe { (functions.set_mapsize)(env, MAP_BYTES) })?;
        // SAFETY: as above.
        functions.check("open", unsafe { (functions.open)(env, name.as_ptr(), NO_FOLDER, 0o600) })?;
        lmdb.begin()?;
        let (mut table, functions) = (0, &lmdb.functions);
        // SAFETY: a running transaction.
        functions.check("table", unsafe { (functions.table)(lmdb.txn, null(), INTEGER_KEYS, &raw mut table) })?;
        lmdb.table = table;
        lmdb.commit()?;
        Ok(lmdb)
    }

    fn begin(&mut self) -> Result<(), String> {
        // SAFETY: an open environment.
        let begun = unsafe { (self.functions.begin)(self.env, null_mut(), 0, &raw mut self.txn) };
        self.functions.check("begin", begun)
    }
}

impl Durable for Lmdb {
    fn change(&mut self, records: &[u32], value: &Record) -> Result<(), String> {
        self.begin()?;
        records.iter().try_for_each(|record| {
            let mut key = *record;
            let mut key = Value { bytes: size_of::<u32>(), at: (&raw mut key).cast() };
            let mut value = Value { bytes: BYTES, at: value.as_ptr().cast_mut().cast() };
            // SAFETY: a running transaction; the library copies both.
            let put = unsafe { (self.functions.put)(self.txn, self.table, &raw mut key, &raw mut value, 0) };
            self.functions.check("put", put)
        })
    }

    fn commit(&mut self) -> Result<(), String> {
        let txn = std::mem::replace(&mut self.txn, null_mut());
        // SAFETY: a running transaction, which ends here.
        self.functions.check("commit", unsafe { (self.functions.commit)(txn) })
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: transaction and environment, each the last time.
        unsafe {
            if !self.txn.is_null() {
                (self.functions.abort)(self.txn);
            }
            (self.functions.close)(self.env);
        }
    }
}
