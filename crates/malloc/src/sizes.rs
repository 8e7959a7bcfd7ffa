//! Sizes that requests really get, and whether a size that the program gives back with an object can be its own.
//!
//! **What.** A request of a size with a class gets the class's size; a larger one whole pages. An object that `realloc` made smaller
//! may have stayed where it was. [`check`] tells which sizes an object can have been asked for with.
//!
//! **Cost.** Off the fast path: there the class of the size is compared with the one that the page map names.
//!
//! **Unsafe.** Takes objects from callers.

use crate::cpu_cache::thread::ThreadCache;
use crate::debug;
use crate::front;
use crate::route::{Found, Misuse};
use crate::size_class::{self, LARGE};
use crate::tls;
use craton_base::{HUGEPAGE_SIZE, PAGE_SIZE};
use craton_heap::owned::Owned;

/// No process has more address space than this: 128 TiB.
const MOST: usize = (1 << 47) - HUGEPAGE_SIZE;

/// Bytes that may be used of an object that is asked for with `size` bytes at a multiple of `align` (a power of two); 0 if there can be no such
/// object.
pub fn good_size(size: usize, align: usize) -> usize {
    let class = if align <= 16 {
        (size <= size_class::MAX_CLASSED).then(|| size_class::class_of(size))
    } else {
        size_class::class_of_aligned(size, align)
    };
    match class {
        Some(class) => size_class::size_of_class(class),
        None if size > MOST || align > MOST => 0,
        None => size.max(1).next_multiple_of(PAGE_SIZE),
    }
}

/// An object of at least `size` bytes, and how many may be used.
#[inline]
pub fn alloc_at_least(size: usize, align: usize) -> (*mut u8, usize) {
    let object = front::aligned(align, size);
    match debug::size_of("malloc_usable_size", object) {
        Some(bytes) => (object, bytes),
        None => (object, if object.is_null() { 0 } else { good_size(size, align) }),
    }
}

/// What the program says of an object that it frees.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its size.
    pub size: Option<usize>,
    /// Its alignment; 1 where none was asked for.
    pub align: usize,
    /// Whether it may have been resized since it was allocated.
    pub resized: bool,
}

/// What is wrong with a claim. A pointer that is no object is not judged here: to free it tells what it is.
pub fn check(pointer: *mut u8, claim: Claim) -> Result<(), Misuse> {
    if debug::check_claim(pointer, claim.size, claim.align) {
        return Ok(());
    }
    if !claim.align.is_power_of_two() || !(pointer as usize).is_multiple_of(claim.align) {
        return Err(Misuse::WrongAlign { given: claim.align });
    }
    let (Some(given), true) = (claim.size, !pointer.is_null() && front::is_ready()) else { return Ok(()) };
    // Behind the size that is asked for there is less than a page, or a hugepage where a heap lies apart.
    let (class, bytes, unit) = match front::find(pointer).unwrap_or(Found::Bad(Misuse::Foreign)) {
        Found::Small { class } | Found::Old { class } => (Some(class), size_class::size_of_class(class), 0),
        Found::Owned(Owned { class, bytes, .. }) if class != usize::from(LARGE) => (Some(class), bytes, 0),
        Found::Owned(Owned { bytes, .. }) if bytes.is_multiple_of(HUGEPAGE_SIZE) => (None, bytes, HUGEPAGE_SIZE),
        Found::Owned(Owned { bytes, .. }) => (None, bytes, PAGE_SIZE),
        Found::Large { pages, .. } => (None, pages.bytes().0, PAGE_SIZE),
        // One that has grown has room to grow on.
        Found::Huge(entry) => (None, entry.bytes, (entry.bytes / 2).max(PAGE_SIZE)),
        Found::Bad(_) => return Ok(()),
    };
    let right = match class {
        Some(_) if good_size(given, 1) == bytes && good_size(given, claim.align) != bytes => {
            return Err(Misuse::WrongAlign { given: claim.align });
        }
        Some(_) => good_size(given, claim.align) == bytes || claim.resized && given <= bytes && given > bytes / 2,
        // Also a small size can have whole pages, by `calloc` or for its alignment.
        None => given <= bytes && bytes - given.max(1) < unit,
    };
    if right { Ok(()) } else { Err(Misuse::WrongSize { given, size: bytes }) }
}

/// Frees an object of which the program says the size on the fast path; `false` when that could not be done, also because the size does not
/// look right, and [`free`] must.
///
/// # Safety
/// As [`front::try_free`].
#[inline(always)]
pub unsafe fn try_free(pointer: *mut u8, size: usize) -> bool {
    // SAFETY: as in `try_free`.
    size <= size_class::MAX_CLASSED && unsafe { ThreadCache::push_sized(tls::get(), pointer, size) }
}

/// As [`try_free`], of an object that was asked for with an alignment.
///
/// # Safety
/// As [`front::try_free`].
#[inline(always)]
pub unsafe fn try_free_aligned(pointer: *mut u8, size: usize, align: usize) -> bool {
    // An object lies at a multiple of its alignment, and its class is seldom another than that of the larger number.
    // SAFETY: as in `try_free`.
    align.is_power_of_two()
        && pointer as usize & (align - 1) == 0
        && unsafe { try_free(pointer, if size > align { size } else { align }) }
}

/// Frees an object that is what the program says.
///
/// # Safety
/// As [`front::free`].
pub unsafe fn free(pointer: *mut u8, claim: Claim) -> Result<(), Misuse> {
    check(pointer, claim)?;
    // SAFETY: by the contract.
    unsafe { front::free(pointer) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_class::{CLASSES, MAX_CLASSED};

    #[test]
    fn a_good_size_is_its_own_good_size() {
        for size in (0..70_000).chain([MAX_CLASSED - 1, MAX_CLASSED, MAX_CLASSED + 1, 1 << 20, (1 << 30) + 5]) {
            let good = good_size(size, 1);
            assert!(good >= size && good_size(good, 1) == good, "{size} gives {good}");
        }
        assert_eq!(good_size(0, 1), 16);
        assert_eq!(good_size(usize::MAX, 1), 0);
        assert!((1..=CLASSES).all(|c| good_size(size_class::size_of_class(c), 1) == size_class::size_of_class(c)));
    }

    #[test]
    fn a_good_size_with_an_alignment_is_what_an_object_gets() {
        for align in (0..=21).map(|n| 1usize << n) {
            for size in [0, 1, 17, 100, 1000, 5000, 40_000, 300_000] {
                let (object, bytes) = alloc_at_least(size, align);
                assert!(!object.is_null() && bytes == good_size(size, align));
                // SAFETY: the object is ours, and given up once.
                unsafe {
                    object.write_bytes(1, bytes);
                    assert_eq!(front::usable_size(object), Ok(bytes), "{size} at {align}");
                    front::free(object).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_size_is_right_if_such_a_request_can_have_got_the_object() {
        let claim = |size, resized| Claim { size: Some(size), align: 1, resized };
        let object = front::malloc(100);
        assert_eq!(check(object, claim(112, false)), Ok(()));
        assert_eq!(check(object, claim(96, false)), Err(Misuse::WrongSize { given: 96, size: 112 }));
        assert_eq!(check(object, claim(113, true)), Err(Misuse::WrongSize { given: 113, size: 112 }));
        assert_eq!(check(object, claim(60, true)), Ok(()), "a shrunk object stays");
        assert_eq!(check(object, claim(56, true)), Err(Misuse::WrongSize { given: 56, size: 112 }));
        let wrong = Claim { size: None, align: 64, resized: false };
        let at_64 = (object as usize).is_multiple_of(64);
        assert_eq!(check(object, wrong).is_ok(), at_64);
        // By its place alone it could have been aligned so, but then it would be of another size.
        assert_eq!(check(object, Claim { size: Some(100), ..wrong }), Err(Misuse::WrongAlign { given: 64 }));
        assert_eq!(check(object, Claim { align: 3, ..wrong }), Err(Misuse::WrongAlign { given: 3 }));
        // SAFETY: the object is ours.
        unsafe { free(object, claim(101, false)).unwrap() };
    }

    #[test]
    fn zeroed_and_large_objects_have_whole_pages() {
        let claim = |size| Claim { size: Some(size), align: 1, resized: false };
        for size in [33_000, 41_000, 300_000, 1 << 20, 33 << 20] {
            for object in [front::calloc(size), front::malloc(size)] {
                assert_eq!(check(object, claim(size)), Ok(()), "{size}");
                assert!(check(object, claim(size / 2)).is_err() && check(object, claim(size * 2)).is_err());
                // SAFETY: the object is ours.
                unsafe { free(object, claim(size)).unwrap() };
            }
        }
    }
}
