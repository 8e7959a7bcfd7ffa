//! Craton's own functions (`craton.h`).
//!
//! **Unsafe.** Takes pointers from C.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use craton_malloc::govern::limits::LimitCallback;
use craton_malloc::segment::WORDS;
use craton_malloc::stats::counted;
use craton_malloc::text::Text;
use craton_malloc::{Misuse, debug, front, govern, json, options};
use craton_os::process;

/// The library's version.
#[unsafe(no_mangle)]
pub extern "C" fn craton_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Words that `craton_stats` fills: the first form of the segment, for programs from before
/// [`craton_stats_sized`].
const FIRST_WORDS: usize = 22;

/// Copies the statistics of a segment of the first form.
///
/// # Safety
/// `into` points at a `struct craton_segment` of any version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_stats(into: *mut u64) {
    // SAFETY: every version of the struct begins with these words.
    unsafe { craton_stats_sized(into, FIRST_WORDS * size_of::<u64>()) };
}

/// Copies the process's statistics, up to `size` bytes; returns the bytes of all.
///
/// # Safety
/// `into` points at `size` bytes, aligned as words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_stats_sized(into: *mut u64, size: usize) -> usize {
    let words = counted().words();
    let most = (size / size_of::<u64>()).min(WORDS);
    // SAFETY: by the contract there is room; the array is ours.
    unsafe { into.copy_from_nonoverlapping(words.as_ptr(), most) };
    WORDS * size_of::<u64>()
}

/// Sets an option; 0, or -1 with `EINVAL` for an unknown key or bad value, or null.
///
/// # Safety
/// Both are C strings, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_option_set(key: *const c_char, value: *const c_char) -> c_int {
    if key.is_null() || value.is_null() {
        process::set_errno(process::EINVAL);
        return -1;
    }
    // SAFETY: the program's strings.
    let (key, value) = unsafe { (CStr::from_ptr(key), CStr::from_ptr(value)) };
    if options::set_by_program(key.to_bytes(), value.to_bytes()) {
        return 0;
    }
    process::set_errno(process::EINVAL);
    -1
}

/// Writes an option's value, as `snprintf` does; returns the length, or -1 with `EINVAL`: no key.
///
/// # Safety
/// `key` is a C string or null; `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_option_get(key: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    if key.is_null() {
        process::set_errno(process::EINVAL);
        return -1;
    }
    // SAFETY: the program's string and buffer.
    let (key, buffer) = unsafe { (CStr::from_ptr(key), buffer_of(buffer, size)) };
    let mut text = Text::new(buffer);
    if options::get(key.to_bytes(), &mut text) {
        return text.end() as isize;
    }
    process::set_errno(process::EINVAL);
    -1
}

/// Key of the `i`-th option, by the alphabet; null behind the last.
#[unsafe(no_mangle)]
pub extern "C" fn craton_option_name(i: usize) -> *const c_char {
    options::name(i).map_or(core::ptr::null(), CStr::as_ptr)
}

/// Writes all statistics as JSON, as `snprintf` does; returns the length.
///
/// # Safety
/// `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_stats_json(buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: the program's buffer.
    json::write(unsafe { buffer_of(buffer, size) })
}

/// # Safety
/// `buffer` has room for `size` bytes, for as long as the result is used.
unsafe fn buffer_of<'a>(buffer: *mut c_char, size: usize) -> &'a mut [u8] {
    if size == 0 || buffer.is_null() {
        return &mut [];
    }
    // SAFETY: by the contract; a text is only written to it.
    unsafe { slice::from_raw_parts_mut(buffer.cast(), size) }
}

/// Whether this copy of the library allocated the pointer, now or earlier: only its `free` accepts
/// it.
///
/// # Safety
/// Any pointer is allowed; an object must not be freed at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_owns(pointer: *const c_void) -> c_int {
    // SAFETY: by the contract.
    let found = unsafe { front::usable_size(pointer.cast_mut().cast()) };
    c_int::from(!pointer.is_null() && found != Err(Misuse::Foreign))
}

/// Releases all free memory to the system; returns the bytes.
#[unsafe(no_mangle)]
pub extern "C" fn craton_release() -> usize {
    front::release() as usize
}

/// Sets the callback for a soft limit still passed after memory was released; null for none.
///
/// # Safety
/// The function may be called with the argument until another one is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_set_limit_callback(callback: Option<LimitCallback>, argument: *mut c_void) {
    // SAFETY: by the contract.
    unsafe { govern::set_callback(callback, argument) };
}

/// Does one second of the library thread's work; 1 if there was any, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn craton_background_actions() -> c_int {
    govern::actions().into()
}

/// Looks at every buffer of the debugging kit; returns how many there are.
#[unsafe(no_mangle)]
pub extern "C" fn craton_debug_check() -> usize {
    debug::check()
}
