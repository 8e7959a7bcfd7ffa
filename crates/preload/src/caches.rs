//! `craton_cache_*`.
//!
//! **Failure.** A bad handle or pointer aborts with call and address.
//!
//! **Unsafe.** Takes pointers and functions from C.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use craton_malloc::caches::{CacheStats, Constructor, Destructor, Fault, Options, Reclaim, Refused, api};
use craton_malloc::front;
use craton_os::process;

#[repr(C)]
pub struct CratonCacheOptions {
    size: usize,
    name: *const c_char,
    object_size: usize,
    align: usize,
    constructor: Option<Constructor>,
    destructor: Option<Destructor>,
    reclaim: Option<Reclaim>,
    argument: *mut c_void,
    limit_objects: usize,
    limit_bytes: usize,
    working_set_ms: c_uint,
    flags: c_uint,
}

#[repr(C)]
pub struct CratonCacheStats {
    version: u64,
    counts: CacheStats,
}

#[cold]
#[inline(never)]
fn fault(call: &'static str, pointer: *mut c_void, fault: Fault) -> c_int {
    process::set_errno(match fault {
        Fault::Misuse(misuse) => front::die(call, pointer.cast(), misuse),
        Fault::NoMemory => process::ENOMEM,
        Fault::TimedOut => process::ETIMEDOUT,
        Fault::Recursive => process::EDEADLK,
        Fault::Constructor => process::ECANCELED,
    });
    -1
}

/// # Safety
/// `options` is as `craton.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_cache_create(options: *const CratonCacheOptions) -> *mut c_void {
    // SAFETY: by the contract; the first field is in every version.
    if options.is_null() || unsafe { (&raw const (*options).size).read() } < size_of::<CratonCacheOptions>() {
        return crate::c::invalid();
    }
    // SAFETY: at least as long as ours.
    let o = unsafe { &*options };
    // SAFETY: a C string.
    let name = if o.name.is_null() { b"" } else { unsafe { CStr::from_ptr(o.name) }.to_bytes() };
    let made = api::create(&Options {
        name,
        size: o.object_size,
        align: o.align,
        constructor: o.constructor,
        destructor: o.destructor,
        reclaim: o.reclaim,
        argument: o.argument,
        limit_objects: o.limit_objects,
        limit_bytes: o.limit_bytes,
        working_set_ms: o.working_set_ms,
        flags: o.flags,
    });
    match made {
        Ok(cache) => cache as *mut c_void,
        Err(Refused::NoMemory) => crate::c::no_memory(),
        Err(_) => crate::c::invalid(),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_cache_destroy(cache: *mut c_void) -> c_int {
    if cache.is_null() {
        return 0;
    }
    match api::destroy(cache as usize) {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => {
            process::set_errno(process::EBUSY);
            -1
        }
        Err(f) => fault("craton_cache_destroy", cache, f),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_cache_alloc(cache: *mut c_void) -> *mut c_void {
    let object = api::alloc_quick(cache as usize);
    if object.is_null() { alloc_slowly(cache) } else { object.cast() }
}

#[cold]
#[inline(never)]
fn alloc_slowly(cache: *mut c_void) -> *mut c_void {
    match api::alloc_slowly(cache as usize, None) {
        Ok(object) => object.cast(),
        Err(f) => refused("craton_cache_alloc", cache, f),
    }
}

#[cold]
#[inline(never)]
fn refused(call: &'static str, cache: *mut c_void, why: Fault) -> *mut c_void {
    fault(call, cache, why);
    null_mut()
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_cache_alloc_wait(cache: *mut c_void, timeout_ms: u64) -> *mut c_void {
    match api::alloc_wait(cache as usize, timeout_ms.saturating_mul(1_000_000)) {
        Ok(object) => object.cast(),
        Err(f) => refused("craton_cache_alloc_wait", cache, f),
    }
}

/// # Safety
/// The object is given up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_cache_free(cache: *mut c_void, object: *mut c_void) {
    // SAFETY: by the contract.
    unsafe {
        if !api::free_quick(cache as usize, object.cast()) {
            free_slowly(cache, object);
        }
    }
}

/// # Safety
/// As [`craton_cache_free`].
#[cold]
#[inline(never)]
unsafe fn free_slowly(cache: *mut c_void, object: *mut c_void) {
    // SAFETY: by the contract.
    if let Err(misuse) = unsafe { api::free_slowly(cache as usize, object.cast()) } {
        bad_free(cache, object, misuse);
    }
}

#[cold]
#[inline(never)]
fn bad_free(cache: *mut c_void, object: *mut c_void, misuse: craton_malloc::Misuse) -> ! {
    use craton_malloc::Misuse::{CacheDestroyed, NoCache};
    let culprit = if matches!(misuse, NoCache | CacheDestroyed) { cache } else { object };
    front::die("craton_cache_free", culprit.cast(), misuse)
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_cache_prefill(cache: *mut c_void, objects: usize) -> c_int {
    match api::prefill(cache as usize, objects) {
        Ok(()) => 0,
        Err(f) => fault("craton_cache_prefill", cache, f),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_cache_reap(cache: *mut c_void) -> usize {
    match api::reap(cache as usize) {
        Ok(bytes) => bytes,
        Err(f) => {
            fault("craton_cache_reap", cache, f);
            0
        }
    }
}

/// # Safety
/// `into` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_cache_stats(cache: *mut c_void, into: *mut CratonCacheStats, size: usize) -> c_int {
    let counts = match api::stats(cache as usize) {
        Ok(counts) => counts,
        Err(misuse) => front::die("craton_cache_stats", cache.cast(), misuse),
    };
    // SAFETY: by the contract.
    unsafe { crate::c::write_counts(into, size, CratonCacheStats { version: 1, counts }) }
}
