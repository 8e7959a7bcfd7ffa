//! SQLite as a [`Durable`] (sqlite.org/c3ref, sqlite.org/wal.html): each commit flushes the
//! write-ahead log; the one that brings it to 1,000 pages makes a checkpoint, as by default.
//!
//! **Unsafe.** Calls the library's functions by their documented types.

use super::{BYTES, Durable, Record, c_path};
use libloading::os::unix::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

const LIBRARY: &str = "libsqlite3.so.0";
const DONE: c_int = 101;

type Db = c_void;
type Statement = c_void;
type Callback = Option<unsafe extern "C" fn(*mut c_void) -> c_int>;

struct Functions {
    open: unsafe extern "C" fn(*const c_char, *mut *mut Db) -> c_int,
    close: unsafe extern "C" fn(*mut Db) -> c_int,
    exec: unsafe extern "C" fn(*mut Db, *const c_char, Callback, *mut c_void, *mut *mut c_char) -> c_int,
    prepare: unsafe extern "C" fn(*mut Db, *const c_char, c_int, *mut *mut Statement, *mut *const c_char) -> c_int,
    bind_int: unsafe extern "C" fn(*mut Statement, c_int, i64) -> c_int,
    bind_blob: unsafe extern "C" fn(*mut Statement, c_int, *const c_void, c_int, Callback) -> c_int,
    step: unsafe extern "C" fn(*mut Statement) -> c_int,
    reset: unsafe extern "C" fn(*mut Statement) -> c_int,
    finalize: unsafe extern "C" fn(*mut Statement) -> c_int,
    message: unsafe extern "C" fn(*mut Db) -> *const c_char,
}

impl Functions {
    fn find(library: &Library) -> Result<Self, String> {
        /// # Safety
        /// The function of that name has this type.
        unsafe fn find<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: the caller's promise.
            let found = unsafe { library.get::<T>(format!("sqlite3_{name}").as_bytes()) };
            found.map(|found| *found).map_err(|_| format!("{LIBRARY} has no function sqlite3_{name}"))
        }
        // SAFETY: the types of sqlite3.h, which the library's number fixes.
        unsafe {
            Ok(Self {
                open: find(library, "open")?,
                close: find(library, "close")?,
                exec: find(library, "exec")?,
                prepare: find(library, "prepare_v2")?,
                bind_int: find(library, "bind_int64")?,
                bind_blob: find(library, "bind_blob")?,
                step: find(library, "step")?,
                reset: find(library, "reset")?,
                finalize: find(library, "finalize")?,
                message: find(library, "errmsg")?,
            })
        }
    }
}

pub struct Sqlite {
    functions: Functions,
    db: *mut Db,
    statement: *mut Statement,
    _library: Library,
}

impl Sqlite {
    pub fn new(path: &Path) -> Result<Self, String> {
        // SAFETY: the system's library is trusted.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|_| format!("{LIBRARY} is not here; Debian's package libsqlite3-0 has it"))?;
        let functions = Functions::find(&library)?;
        let (mut db, name) = (null_mut(), c_path(path)?);
        // SAFETY: the path ends by 0; the library stores a connection, also after an error.
        let opened = unsafe { (functions.open)(name.as_ptr(), &raw mut db) };
        let mut sqlite = Self { functions, db, statement: null_mut(), _library: library };
        sqlite.check("open", opened)?;
        sqlite.execute("pragma journal_mode=wal; pragma synchronous=full")?;
        sqlite.execute("create table pages (id integer primary key, bytes blob)")?;
        let (text, mut statement) = (c"insert or replace into pages values (?, ?)", null_mut());
        // SAFETY: the text ends by 0; the library stores a statement.
        let prepared = unsafe { (sqlite.functions.prepare)(db, text.as_ptr(), -1, &raw mut statement, null_mut()) };
        sqlite.check("prepare", prepared)?;
        sqlite.statement = statement;
        Ok(sqlite)
    }

    fn check(&self, what: &str, result: c_int) -> Result<(), String> {
        if result == 0 || result == DONE {
            return Ok(());
        }
        // SAFETY: the library returns a string, also for null.
        let message = unsafe { CStr::from_ptr((self.functions.message)(self.db)) };
        Err(format!("SQLite, {what}: {}", message.to_string_lossy()))
    }

    fn execute(&self, text: &str) -> Result<(), String> {
        let text_c = CString::new(text).map_err(|e| e.to_string())?;
        // SAFETY: the text ends by 0.
        let done = unsafe { (self.functions.exec)(self.db, text_c.as_ptr(), None, null_mut(), null_mut()) };
        self.check(text, done)
    }

    fn put(&self, record: u32, value: &Record) -> Result<(), String> {
        let (functions, statement) = (&self.functions, self.statement);
        // SAFETY: a prepared statement with two places.
        self.check("bind", unsafe { (functions.bind_int)(statement, 1, record.into()) })?;
        // SAFETY: as above; the value outlives the step.
        self.check("bind", unsafe {
            (functions.bind_blob)(statement, 2, value.as_ptr().cast(), BYTES as c_int, None)
        })?;
        // SAFETY: all places are bound.
        self.check("insert", unsafe { (functions.step)(statement) })?;
        // SAFETY: a statement.
        self.check("reset", unsafe { (functions.reset)(statement) })
    }
}

impl Durable for Sqlite {
    fn change(&mut self, records: &[u32], value: &Record) -> Result<(), String> {
        self.execute("begin")?;
        records.iter().try_for_each(|record| self.put(*record, value))
    }

    fn commit(&mut self) -> Result<(), String> {
        self.execute("commit")
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // SAFETY: statement and connection, each the last time.
        unsafe {
            (self.functions.finalize)(self.statement);
            (self.functions.close)(self.db);
        }
    }
}
