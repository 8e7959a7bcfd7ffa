//! The object caches of a preloaded library: `craton.h`, found by name, since the lab does not link
//! the library.
//!
//! **Unsafe.** Calls functions that the dynamic linker found.

use super::source::Memory;
use super::types::{NOTHING, Type};
use libloading::os::unix::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};

#[repr(C)]
struct Options {
    size: usize,
    name: *const c_char,
    object_size: usize,
    align: usize,
    constructor: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
    destructor: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    reclaim: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    limit_objects: usize,
    limit_bytes: usize,
    working_set_ms: c_uint,
    flags: c_uint,
}

type Create = unsafe extern "C" fn(*const Options) -> *mut c_void;
type Alloc = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *mut c_void);
type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;

pub(super) struct Cached {
    cache: *mut c_void,
    pub(super) of: &'static Type,
    alloc: Alloc,
    free: Free,
    destroy: Destroy,
}

/// # Safety
/// The function of this name has this type.
unsafe fn find<T: Copy>(name: &str) -> Result<T, String> {
    // SAFETY: by the contract.
    let found = unsafe { Library::this().get::<T>(name.as_bytes()) };
    found.map(|found| *found).map_err(|_| format!("this process has no {name}; preload libcraton.so"))
}

/// # Safety
/// `of` is a [`Type`], and the object memory of its size.
unsafe extern "C" fn construct(object: *mut c_void, of: *mut c_void) -> c_int {
    // SAFETY: by the contract.
    let made = unsafe { ((*of.cast::<Type>()).construct)(object.cast()) };
    c_int::from(!made)
}

/// # Safety
/// As for [`construct`], which made the object.
unsafe extern "C" fn destroy(object: *mut c_void, of: *mut c_void) {
    // SAFETY: by the contract.
    unsafe { ((*of.cast::<Type>()).destroy)(object.cast()) }
}

impl Cached {
    /// Without a constructor.
    pub fn of_bytes(bytes: usize) -> Result<Self, String> {
        Self::new(bytes, &NOTHING, false)
    }

    pub fn of_type(of: &'static Type) -> Result<Self, String> {
        Self::new(of.bytes, of, true)
    }

    fn new(bytes: usize, of: &'static Type, constructed: bool) -> Result<Self, String> {
        // SAFETY: the types of craton.h.
        let (create, alloc, free, end) = unsafe {
            let create: Create = find("craton_cache_create")?;
            (create, find("craton_cache_alloc")?, find("craton_cache_free")?, find("craton_cache_destroy")?)
        };
        let options = Options {
            size: size_of::<Options>(),
            name: c"lab".as_ptr(),
            object_size: bytes,
            align: 0,
            constructor: constructed.then_some(construct as _),
            destructor: constructed.then_some(destroy as _),
            reclaim: None,
            argument: std::ptr::from_ref(of).cast_mut().cast(),
            limit_objects: 0,
            limit_bytes: 0,
            working_set_ms: 0,
            flags: 0,
        };
        // SAFETY: the options outlive the call.
        let cache = unsafe { create(&raw const options) };
        if cache.is_null() {
            return Err(format!("no cache for {bytes} bytes: {}", std::io::Error::last_os_error()));
        }
        Ok(Self { cache, of, alloc, free, destroy: end })
    }
}

impl Memory for Cached {
    #[inline(always)]
    fn get(&mut self) -> *mut u8 {
        // SAFETY: the cache lives.
        unsafe { (self.alloc)(self.cache).cast() }
    }

    #[inline(always)]
    unsafe fn put(&mut self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe { (self.free)(self.cache, object.cast()) }
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        // SAFETY: owned; the cache stays while objects are in use.
        unsafe { (self.destroy)(self.cache) };
    }
}
