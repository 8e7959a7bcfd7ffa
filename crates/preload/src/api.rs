//! Craton's own functions (`craton.h`).
//!
//! **Unsafe.** Takes pointers from C.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use craton_malloc::govern::limits::LimitCallback;
use craton_malloc::segment::WORDS;
use craton_malloc::stats::counted;
use craton_malloc::text::Text;
use craton_malloc::{Misuse, debug, front, govern, json, options, profile_file};
use craton_os::process;

#[unsafe(no_mangle)]
pub extern "C" fn craton_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Of the segment before [`craton_stats_sized`].
const FIRST_WORDS: usize = 22;

/// # Safety
/// `into` points at a `struct craton_segment` of any version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_stats(into: *mut u64) {
    // SAFETY: every version begins with these words.
    unsafe { craton_stats_sized(into, FIRST_WORDS * size_of::<u64>()) };
}

/// # Safety
/// `into` points at `size` bytes, aligned as words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_stats_sized(into: *mut u64, size: usize) -> usize {
    let words = counted().words();
    let most = (size / size_of::<u64>()).min(WORDS);
    // SAFETY: by the contract.
    unsafe { into.copy_from_nonoverlapping(words.as_ptr(), most) };
    WORDS * size_of::<u64>()
}

/// # Safety
/// C strings, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_option_set(key: *const c_char, value: *const c_char) -> c_int {
    if key.is_null() || value.is_null() {
        process::set_errno(process::EINVAL);
        return -1;
    }
    // SAFETY: by the contract.
    let (key, value) = unsafe { (CStr::from_ptr(key), CStr::from_ptr(value)) };
    if options::set_by_program(key.to_bytes(), value.to_bytes()) {
        return 0;
    }
    process::set_errno(process::EINVAL);
    -1
}

/// # Safety
/// A C string or null; `buffer` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_option_get(key: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    if key.is_null() {
        process::set_errno(process::EINVAL);
        return -1;
    }
    // SAFETY: by the contract.
    let (key, buffer) = unsafe { (CStr::from_ptr(key), buffer_of(buffer, size)) };
    let mut text = Text::new(buffer);
    if options::get(key.to_bytes(), &mut text) {
        return text.end() as isize;
    }
    process::set_errno(process::EINVAL);
    -1
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_option_name(i: usize) -> *const c_char {
    options::name(i).map_or(core::ptr::null(), CStr::as_ptr)
}

/// # Safety
/// `buffer` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_stats_json(buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: by the contract.
    json::write(unsafe { buffer_of(buffer, size) })
}

/// # Safety
/// As [`craton_stats_json`], while the result is used.
unsafe fn buffer_of<'a>(buffer: *mut c_char, size: usize) -> &'a mut [u8] {
    if size == 0 || buffer.is_null() {
        return &mut [];
    }
    // SAFETY: by the contract; a text only writes.
    unsafe { slice::from_raw_parts_mut(buffer.cast(), size) }
}

/// Also if freed since.
///
/// # Safety
/// Any pointer; no free at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_owns(pointer: *const c_void) -> c_int {
    // SAFETY: by the contract.
    let found = unsafe { front::usable_size(pointer.cast_mut().cast()) };
    c_int::from(!pointer.is_null() && found != Err(Misuse::Foreign))
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_release() -> usize {
    front::release() as usize
}

/// # Safety
/// The function may be called until another is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_set_limit_callback(callback: Option<LimitCallback>, argument: *mut c_void) {
    // SAFETY: by the contract.
    unsafe { govern::set_callback(callback, argument) };
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_background_actions() -> c_int {
    govern::actions().into()
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_debug_check() -> usize {
    debug::check()
}

/// # Safety
/// `path` is null, or ends by 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_profile_write(path: *const c_char) -> c_int {
    // SAFETY: by the contract.
    let path = if path.is_null() { &[][..] } else { unsafe { CStr::from_ptr(path) }.to_bytes() };
    match profile_file::write_by_call(path) {
        Ok(()) => 0,
        Err(error) => {
            process::set_errno(error);
            -1
        }
    }
}
