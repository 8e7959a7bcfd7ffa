//! **Unsafe.** Takes pointers from C.

use crate::call::{on, run};
use crate::code::Failure;
use crate::handle::Pheap;
use craton_persistent::raw::RawHeap;
use craton_persistent::{Durability, HeapOptions, Model, Promise, Report};
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CratonPheapOptions {
    size: usize,
    limit: u64,
    most: u64,
    durability: c_int,
    model: c_int,
    lanes: c_uint,
    stripes: c_uint,
}

/// # Safety
/// `options` is null, or points at a struct whose `size` is right.
unsafe fn read_options(options: *const CratonPheapOptions) -> Result<HeapOptions, Failure> {
    let mut wanted = HeapOptions::new();
    if options.is_null() {
        return Ok(wanted);
    }
    // SAFETY: the first field is in every version.
    if unsafe { (&raw const (*options).size).read() } < size_of::<CratonPheapOptions>() {
        return Err(Failure::Argument("options.size", "is not the size of the struct"));
    }
    // SAFETY: at least as long as ours.
    let CratonPheapOptions { limit, most, durability, model, lanes, stripes, .. } = unsafe { *options };
    wanted = wanted.most(most).durability(match durability {
        0 => Durability::Auto,
        1 => Durability::Flush,
        2 => Durability::NoFlush,
        3 => Durability::SyncPoints,
        _ => return Err(Failure::Argument("options.durability", "is none of CRATON_PHEAP_…")),
    });
    wanted = wanted.model(match model {
        0 => Model::Log,
        1 => Model::Gc,
        2 => Model::Frames,
        _ => return Err(Failure::Argument("options.model", "is none of CRATON_PHEAP_…")),
    });
    if limit != 0 {
        wanted = wanted.limit(limit);
    }
    if lanes != 0 {
        wanted = wanted.lanes(lanes);
    }
    if stripes != 0 {
        wanted = wanted.stripes(stripes);
    }
    Ok(wanted)
}

type Opener = fn(&Path, &HeapOptions) -> Result<(RawHeap, Report), craton_persistent::Error>;

/// # Safety
/// `path` is null or a string, `options` as in [`read_options`], `heap` is null or writable.
unsafe fn open(
    call: &str,
    path: *const c_char,
    options: *const CratonPheapOptions,
    heap: *mut *mut Pheap,
    f: Opener,
) -> c_int {
    // SAFETY: by the contract.
    let bytes = if path.is_null() { b"" } else { unsafe { CStr::from_ptr(path) }.to_bytes() };
    let path = Path::new(OsStr::from_bytes(bytes));
    let name = path.to_string_lossy();
    run(call, &name, || {
        if bytes.is_empty() {
            return Err(Failure::Argument("the path", "is null or empty"));
        }
        if heap.is_null() {
            return Err(Failure::Argument("the place for the heap", "is null"));
        }
        // SAFETY: by the contract.
        let options = unsafe { read_options(options) }?;
        let (raw, report) = f(path, &options)?;
        let opened = Box::into_raw(Box::new(Pheap::new(raw, report, name.clone().into_owned())));
        // SAFETY: by the contract.
        unsafe { heap.write(opened) };
        Ok(())
    })
}

/// # Safety
/// As `craton_pheap.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_create(
    path: *const c_char,
    options: *const CratonPheapOptions,
    heap: *mut *mut Pheap,
) -> c_int {
    // SAFETY: by the contract.
    unsafe { open("craton_pheap_create", path, options, heap, RawHeap::create) }
}

/// # Safety
/// As `craton_pheap.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_open(
    path: *const c_char,
    options: *const CratonPheapOptions,
    heap: *mut *mut Pheap,
) -> c_int {
    // SAFETY: by the contract.
    unsafe { open("craton_pheap_open", path, options, heap, RawHeap::open) }
}

/// # Safety
/// As `craton_pheap.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_open_or_create(
    path: *const c_char,
    options: *const CratonPheapOptions,
    heap: *mut *mut Pheap,
) -> c_int {
    // SAFETY: by the contract.
    unsafe { open("craton_pheap_open_or_create", path, options, heap, RawHeap::open_or_create) }
}

/// # Safety
/// `heap` is null or open, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_close(heap: *mut Pheap) -> c_int {
    if heap.is_null() {
        return 0;
    }
    // SAFETY: by the contract.
    let Some(open) = (unsafe { Pheap::of(heap) }) else {
        return run("craton_pheap_close", "", || Err(Failure::Argument("the heap", "was closed")));
    };
    let transactions = open.transactions.load(Ordering::Relaxed);
    if transactions > 0 {
        return run("craton_pheap_close", open.path(), || Err(Failure::Busy(transactions)));
    }
    open.mark_closed();
    // SAFETY: made by `Box::into_raw`, and no longer used by the program.
    let open = unsafe { Box::from_raw(heap) };
    let path = open.path().to_owned();
    run("craton_pheap_close", &path, || {
        let reserved = std::mem::take(&mut *open.reserved());
        if open.is_unsound() {
            // The next opening repairs it, and frees the objects.
            std::mem::forget(reserved);
            return Err(Failure::Panicked("in an earlier call".to_owned()));
        }
        drop(reserved);
        Ok(open.raw.close()?)
    })
}

/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_sync(heap: *const Pheap) -> c_int {
    // SAFETY: by the contract.
    unsafe { on("craton_pheap_sync", heap, |heap| Ok(heap.raw.sync()?)) }
}

/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_maintain(heap: *const Pheap) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_maintain", heap, |heap| {
            heap.raw.maintain();
            Ok(heap.raw.check_process()?)
        })
    }
}

/// One of `enum craton_pheap_promise`, or 0 for a bad heap.
///
/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_promise(heap: *const Pheap) -> c_int {
    // SAFETY: by the contract.
    let heap = unsafe { Pheap::of(heap) };
    heap.map_or(0, |heap| match heap.raw.promise() {
        Promise::ProcessCrash => 1,
        Promise::PowerFailureAtSync => 2,
        Promise::PowerFailure => 3,
    })
}
