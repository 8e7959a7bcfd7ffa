//! Real sizes of requests, and checks of the size that a program passes to free.
//!
//! **What.** A request gets its class's size, or whole pages. An object that `realloc` shrank may
//! have stayed in place; [`check`] allows for that.
//!
//! **Cost.** Off the fast path, which compares the size's class with the page map's.
//!
//! **Unsafe.** Takes objects from callers.

use crate::debug;
use crate::front;
use crate::statics::LENT;
use crate::thread::tls;
use craton_base::{Bytes, HUGEPAGE_SIZE, PAGE_SIZE, Pages};
use craton_heap::owned::Owned;
use craton_heap::size_class::{self, LARGE};
use craton_heap::thread_cache::ThreadCache;
use craton_heap::{Found, Misuse};
use craton_pages::LargeCache;

/// Most address space of a process: 128 TiB.
const MOST: usize = (1 << 47) - HUGEPAGE_SIZE;

/// The program frees by the size that it asked for or by none, and each free looks at the object's
/// page: larger classes may serve smaller sizes from now on.
pub fn let_classes_lend() {
    LENT.begin();
}

/// Least usable bytes of `size` bytes at a multiple of `align` (a power of two); 0 if impossible.
pub fn good_size(size: usize, align: usize) -> usize {
    let class = if align <= 16 {
        (size <= front::MAX_SLABBED).then(|| size_class::class_of(size))
    } else {
        size_class::class_of_aligned(size, align)
    };
    match class {
        Some(class) => size_class::size_of_class(class),
        None if size > MOST || align > MOST => 0,
        None => size.max(1).next_multiple_of(PAGE_SIZE),
    }
}

/// An object of at least `size` bytes, and its usable bytes.
#[inline]
pub fn alloc_at_least(size: usize, align: usize) -> (*mut u8, usize) {
    let object = front::aligned(align, size);
    // SAFETY: the object is new, and no other code has its address.
    (object, unsafe { usable(object, size, align) })
}

/// Usable bytes of an object that has just been allocated for `size` and `align`; 0 for null.
///
/// # Safety
/// The object is not freed during the call.
pub unsafe fn usable(object: *mut u8, size: usize, align: usize) -> usize {
    // A larger class can have lent the object, and a buffer of the kit has just its size.
    // SAFETY: by the contract.
    match unsafe { front::usable_size(object) } {
        Ok(0) if !object.is_null() => good_size(size, align),
        Ok(bytes) => bytes,
        Err(_) => good_size(size, align),
    }
}

/// The program's claim about an object that it frees.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub size: Option<usize>,
    /// Its alignment; 1 if none was requested.
    pub align: usize,
    /// Whether it may have been resized since it was allocated.
    pub resized: bool,
}

/// Checks a claim. A pointer that is no object passes: the free reports it.
pub fn check(pointer: *mut u8, claim: Claim) -> Result<(), Misuse> {
    if debug::check_claim(pointer, claim.size, claim.align) {
        return Ok(());
    }
    if !claim.align.is_power_of_two() || !(pointer as usize).is_multiple_of(claim.align) {
        return Err(Misuse::WrongAlign { given: claim.align });
    }
    let (Some(given), true) = (claim.size, !pointer.is_null() && front::is_ready()) else { return Ok(()) };
    // The slack above the requested size is below a page, or a hugepage in a separate heap.
    let found = front::find(pointer).unwrap_or(Found::Bad(Misuse::Foreign));
    let is_large = matches!(found, Found::Large { .. });
    let (class, bytes, unit) = match found {
        Found::Small { class } | Found::Old { class } => (Some(class), size_class::size_of_class(class), 0),
        Found::Owned(Owned { class, bytes, .. }) if class != usize::from(LARGE) => (Some(class), bytes, 0),
        Found::Owned(Owned { bytes, .. }) if bytes.is_multiple_of(HUGEPAGE_SIZE) => (None, bytes, HUGEPAGE_SIZE),
        Found::Owned(Owned { bytes, .. }) => (None, bytes, PAGE_SIZE),
        Found::Large { pages, .. } => (None, pages.bytes().0, PAGE_SIZE),
        // A grown object has reserved room.
        Found::Huge(entry) => (None, entry.bytes, (entry.bytes / 2).max(PAGE_SIZE)),
        Found::Bad(_) => return Ok(()),
    };
    let right = match class {
        Some(_) if good_size(given, 1) == bytes && good_size(given, claim.align) != bytes => {
            return Err(Misuse::WrongAlign { given: claim.align });
        }
        Some(class) => {
            good_size(given, claim.align) == bytes
                || claim.resized && given <= bytes && given > bytes / 2
                || is_lent(class, given, claim.align)
        }
        // A span that was longer by a little can have served the object.
        None if is_large => {
            let least = Bytes(given.max(1)).pages_up();
            let has = Pages((bytes / PAGE_SIZE) as u32);
            least.is_some_and(|least| (least..=LargeCache::most_for(least).max(least)).contains(&has))
        }
        // `calloc` or an alignment can give small sizes whole pages.
        None => given <= bytes && bytes - given.max(1) < unit,
    };
    if right { Ok(()) } else { Err(Misuse::WrongSize { given, size: bytes }) }
}

/// Frees on the fast path; on `false`, also for a doubtful size, call [`free`].
///
/// # Safety
/// As [`front::try_free`].
#[inline(always)]
pub unsafe fn try_free(pointer: *mut u8, size: usize) -> bool {
    // SAFETY: as in `try_free`.
    size <= size_class::MAX_CLASSED && unsafe { ThreadCache::push_sized(tls::get(), pointer, size) }
}

/// As [`try_free`], for an object allocated with an alignment.
///
/// # Safety
/// As [`front::try_free`].
#[inline(always)]
pub unsafe fn try_free_aligned(pointer: *mut u8, size: usize, align: usize) -> bool {
    // The larger of size and alignment nearly always has the object's class.
    // SAFETY: as in `try_free`.
    align.is_power_of_two()
        && pointer as usize & (align - 1) == 0
        && unsafe { try_free(pointer, if size > align { size } else { align }) }
}

/// As [`front::free_by_turn`] and [`front::free_on_morphed`], for an object of this size without an
/// alignment.
///
/// # Safety
/// As there.
#[inline(always)]
pub unsafe fn free_in_cache(pointer: *mut u8, claim: Claim) -> bool {
    let Claim { size: Some(size @ 0..=size_class::MAX_TABLED), align: 1, .. } = claim else { return false };
    let is_right = |class| class == size_class::class_of_tabled(size);
    // SAFETY: by the contract.
    unsafe { front::free_by_turn_if(pointer, is_right) || front::free_on_morphed_if(pointer, is_right) }
}

/// Frees an object if the claim holds.
///
/// # Safety
/// As [`front::free`].
pub unsafe fn free(pointer: *mut u8, claim: Claim) -> Result<(), Misuse> {
    check(pointer, claim)?;
    // SAFETY: by the contract.
    unsafe { front::free(pointer) }
}

/// Whether an object of `class` can have been lent to a request of `size` bytes.
fn is_lent(class: usize, size: usize, align: usize) -> bool {
    align <= 16 && size <= size_class::MAX_CLASSED && LENT.has(size_class::class_of(size), class)
}

#[cfg(test)]
mod tests;
