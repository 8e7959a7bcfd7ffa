//! Real sizes of requests, and checks of sizes passed to free.
//!
//! **What.** A request gets its class's size, or whole pages. `realloc` may have shrunk an object
//! in place, which [`check`] allows.
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

/// Of a process: 128 TiB.
const MOST: usize = (1 << 47) - HUGEPAGE_SIZE;

/// Larger classes may serve smaller sizes from now on: the program frees by the requested size or
/// by none, and each free looks at the object's page.
pub fn let_classes_lend() {
    LENT.begin();
}

/// Returns the least usable bytes for `size` and `align` (a power of two); 0 if impossible.
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

/// Allocates at least `size` bytes; returns the usable ones, too.
#[inline]
pub fn alloc_at_least(size: usize, align: usize) -> (*mut u8, usize) {
    let object = front::aligned(align, size);
    // SAFETY: a new object, known only here.
    (object, unsafe { usable(object, size, align) })
}

/// Usable bytes of an object just allocated for `size` and `align`; 0 for null.
///
/// # Safety
/// The object stays live during the call.
pub unsafe fn usable(object: *mut u8, size: usize, align: usize) -> usize {
    // SAFETY: by the contract. A larger class can have lent the object; a kit's buffer has just its
    // size.
    match unsafe { front::usable_size(object) } {
        Ok(0) if !object.is_null() => good_size(size, align),
        Ok(bytes) => bytes,
        Err(_) => good_size(size, align),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub size: Option<usize>,
    /// The alignment; 1 if none was requested.
    pub align: usize,
    pub resized: bool,
}

/// A pointer that is no object passes: the free reports it.
pub fn check(pointer: *mut u8, claim: Claim) -> Result<(), Misuse> {
    if debug::check_claim(pointer, claim.size, claim.align) {
        return Ok(());
    }
    if !claim.align.is_power_of_two() || !(pointer as usize).is_multiple_of(claim.align) {
        return Err(Misuse::WrongAlign { given: claim.align });
    }
    let (Some(given), true) = (claim.size, !pointer.is_null() && front::is_ready()) else { return Ok(()) };
    // The slack is below a page, or a hugepage in a separate heap.
    let found = front::find(pointer).unwrap_or(Found::Bad(Misuse::Foreign));
    let is_large = matches!(found, Found::Large { .. });
    let (class, bytes, unit) = match found {
        Found::Small { class } | Found::Old { class } => (Some(class), size_class::size_of_class(class), 0),
        Found::Owned(Owned { class, bytes, .. }) if class != usize::from(LARGE) => (Some(class), bytes, 0),
        Found::Owned(Owned { bytes, .. }) if bytes.is_multiple_of(HUGEPAGE_SIZE) => (None, bytes, HUGEPAGE_SIZE),
        Found::Owned(Owned { bytes, .. }) => (None, bytes, PAGE_SIZE),
        Found::Large { pages, .. } => (None, pages.bytes().0, PAGE_SIZE),
        // Grown objects have reserved room.
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
        // A slightly longer span can have served it.
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

/// Frees on the fast path; after `false`, as for a doubtful size, call [`free`].
///
/// # Safety
/// As [`front::try_free`].
#[inline(always)]
pub unsafe fn try_free(pointer: *mut u8, size: usize) -> bool {
    // SAFETY: as in `try_free`.
    size <= size_class::MAX_CLASSED && unsafe { ThreadCache::push_sized(tls::get(), pointer, size) }
}

/// As [`try_free`], for an aligned object.
///
/// # Safety
/// As [`front::try_free`].
#[inline(always)]
pub unsafe fn try_free_aligned(pointer: *mut u8, size: usize, align: usize) -> bool {
    // SAFETY: as in `try_free`. The larger of size and alignment nearly always has the object's
    // class.
    align.is_power_of_two()
        && pointer as usize & (align - 1) == 0
        && unsafe { try_free(pointer, if size > align { size } else { align }) }
}

/// As [`front::free_by_turn`] and [`front::free_on_morphed`], for an unaligned object of this size.
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

fn is_lent(class: usize, size: usize, align: usize) -> bool {
    align <= 16 && size <= size_class::MAX_CLASSED && LENT.has(size_class::class_of(size), class)
}

#[cfg(test)]
mod tests;
