//! memcpy, memmove, memset and memcmp, which compiled code calls.
//!
//! Copies here are tens of bytes long, where string instructions start slowly. Volatile, or the
//! compiler would turn the loops into calls of themselves.
//!
//! **Unsafe.** Pointers as in C.

/// At any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Word(u64);

const WORD: usize = size_of::<Word>();

/// # Safety
/// Readable at the source, writable at the target.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    let words = bytes / WORD;
    // SAFETY: the caller's promise.
    unsafe {
        for at in 0..words {
            to.cast::<Word>().add(at).write_volatile(from.cast::<Word>().add(at).read_volatile());
        }
        for at in words * WORD..bytes {
            to.add(at).write_volatile(from.add(at).read_volatile());
        }
    }
    to
}

/// # Safety
/// As for [`memcpy`]; the places may overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // Whole words are read before they are written: forwards is right unless the copy is behind.
    let words = bytes / WORD;
    // SAFETY: the caller's promise.
    unsafe {
        if (to as usize).wrapping_sub(from as usize) >= bytes {
            return memcpy(to, from, bytes);
        }
        for at in (words * WORD..bytes).rev() {
            to.add(at).write_volatile(from.add(at).read_volatile());
        }
        for at in (0..words).rev() {
            to.cast::<Word>().add(at).write_volatile(from.cast::<Word>().add(at).read_volatile());
        }
    }
    to
}

/// # Safety
/// The bytes are writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    let (byte, words) = (byte as u8, bytes / WORD);
    // SAFETY: the caller's promise.
    unsafe {
        for at in 0..words {
            to.cast::<Word>().add(at).write_volatile(Word(u64::from_ne_bytes([byte; WORD])));
        }
        for at in words * WORD..bytes {
            to.add(at).write_volatile(byte);
        }
    }
    to
}

/// # Safety
/// The bytes are readable at both places.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    for at in 0..bytes {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}
