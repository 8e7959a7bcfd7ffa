use super::*;
use family::Family;
use std::ffi::{c_int, c_void};

fn bound() -> Family {
    Family::bound().unwrap()
}

fn fault(change: impl FnOnce(&mut Family)) -> String {
    let mut family = bound();
    change(&mut family);
    checks::all(&family).unwrap_err()
}

#[test]
fn the_c_library_serves_the_whole_family_and_passes() {
    let server = probe(None).unwrap();
    assert!(server.to_str().unwrap().contains("libc.so"), "{server:?}");
}

#[test]
fn another_library_than_the_one_expected_is_an_error_that_names_both() {
    let error = probe(Some(Path::new("/usr/lib/other.so"))).unwrap_err();
    assert!(error.contains("libc.so") && error.contains("/usr/lib/other.so"), "{error}");
}

#[test]
fn one_name_from_another_object_is_an_error_that_names_it() {
    let of = |name: &str| Ok(PathBuf::from(if name == "pvalloc" { "libc.so.6" } else { "peer.so" }));
    assert_eq!(family::server(of).unwrap_err(), "malloc comes from peer.so, but pvalloc from libc.so.6");
    assert_eq!(family::server(|_| Ok("peer.so".into())).unwrap(), Path::new("peer.so"));
}

#[test]
fn null_is_found() {
    extern "C" fn none(_: usize) -> *mut c_void {
        std::ptr::null_mut()
    }
    assert_eq!(fault(|f| f.malloc = none), "malloc(0) gave null");
    assert_eq!(fault(|f| f.pvalloc = none), "pvalloc(1) gave null");
}

#[test]
fn calloc_without_zeroes_is_found() {
    extern "C" fn dirty(count: usize, size: usize) -> *mut c_void {
        // SAFETY: only requested bytes are written.
        unsafe {
            let object = libc::malloc(count * size);
            object.cast::<u8>().write_bytes(7, count * size);
            object
        }
    }
    assert_eq!(fault(|f| f.calloc = dirty), "calloc(1, 1): byte 0 is 7, not 0");
}

#[test]
fn a_wrong_alignment_is_found() {
    extern "C" fn unaligned(align: usize, size: usize) -> *mut c_void {
        // Correct for 8, with which the object is freed. SAFETY: powers of two; the offset is
        // inside.
        unsafe { if align == 8 { libc::memalign(8, size) } else { libc::memalign(1 << 17, size + 8).byte_add(8) } }
    }
    assert!(fault(|f| f.memalign = unaligned).starts_with("memalign(16, 1) gave 0x"));
}

#[test]
fn a_refused_alignment_is_found() {
    extern "C" fn refused(_: *mut *mut c_void, _: usize, _: usize) -> c_int {
        libc::ENOMEM
    }
    assert_eq!(fault(|f| f.posix_memalign = refused), "posix_memalign(8, 1) gave 12");
}

#[test]
fn realloc_that_loses_contents_is_found() {
    extern "C" fn fresh(_: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: calloc takes any size.
        unsafe { libc::calloc(1, size) }
    }
    assert_eq!(fault(|f| f.realloc = fresh), "realloc(malloc(1), 1): byte 0 is 0, not 60");
}

#[test]
fn pvalloc_that_gives_less_than_whole_pages_is_found() {
    extern "C" fn short(size: usize) -> *mut c_void {
        // SAFETY: a power of two.
        unsafe { libc::memalign(4096, size) }
    }
    assert!(fault(|f| f.pvalloc = short).starts_with("pvalloc(1) gave an object whose malloc_usable_size is "));
}
