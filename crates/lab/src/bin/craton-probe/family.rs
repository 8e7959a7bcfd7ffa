//! **Unsafe.** Resolves functions by name, with C's types.

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub const NAMES: [&str; 10] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
];

pub type OneSize = unsafe extern "C" fn(usize) -> *mut c_void;
pub type TwoSizes = unsafe extern "C" fn(usize, usize) -> *mut c_void;

/// Called through addresses, so that the compiler removes no pair of calls.
#[derive(Clone, Copy)]
pub struct Family {
    pub malloc: OneSize,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub calloc: TwoSizes,
    pub realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub memalign: TwoSizes,
    pub posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int,
    pub aligned_alloc: TwoSizes,
    pub valloc: OneSize,
    pub pvalloc: OneSize,
    pub usable_size: unsafe extern "C" fn(*mut c_void) -> usize,
}

impl Family {
    pub fn bound() -> Result<Self, String> {
        // SAFETY: C's and glibc's types for these names.
        unsafe {
            Ok(Self {
                malloc: transmute::<*mut c_void, OneSize>(address("malloc")?),
                free: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(address("free")?),
                calloc: transmute::<*mut c_void, TwoSizes>(address("calloc")?),
                realloc: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>(address(
                    "realloc",
                )?),
                memalign: transmute::<*mut c_void, TwoSizes>(address("memalign")?),
                posix_memalign: transmute::<*mut c_void, unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int>(
                    address("posix_memalign")?,
                ),
                aligned_alloc: transmute::<*mut c_void, TwoSizes>(address("aligned_alloc")?),
                valloc: transmute::<*mut c_void, OneSize>(address("valloc")?),
                pvalloc: transmute::<*mut c_void, OneSize>(address("pvalloc")?),
                usable_size: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> usize>(address(
                    "malloc_usable_size",
                )?),
            })
        }
    }
}

fn address(name: &str) -> Result<*mut c_void, String> {
    let text = CString::new(name).map_err(|_| format!("`{name}` has a zero byte in it"))?;
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, text.as_ptr()) };
    if found.is_null() { Err(format!("no loaded library has `{name}`")) } else { Ok(found) }
}

pub fn object_of_name(name: &str) -> Result<PathBuf, String> {
    let address = address(name)?;
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: any address is allowed; `info` is live.
    let found = unsafe { libc::dladdr(address, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return Err(format!("`{name}` is in no file"));
    }
    // SAFETY: the linker's string; nothing unloads a module.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    Ok(Path::new(OsStr::from_bytes(file.to_bytes())).to_owned())
}

pub fn server(object_of: impl Fn(&str) -> Result<PathBuf, String>) -> Result<PathBuf, String> {
    let server = object_of(NAMES[0])?;
    for name in &NAMES[1..] {
        let object = object_of(name)?;
        if object != server {
            let (server, object) = (server.display(), object.display());
            return Err(format!("malloc comes from {server}, but {name} from {object}"));
        }
    }
    Ok(server)
}
