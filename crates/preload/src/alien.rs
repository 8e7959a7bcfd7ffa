//! A library that `dlmopen` opens gets a second C library without preloads, or links a second
//! Craton. [`owner`] finds its objects' allocator:
//!
//! | allocator                  | the pointer is its object if                                    |
//! |----------------------------|-----------------------------------------------------------------|
//! | a second Craton            | its `craton_owns` confirms it                                   |
//! | another namespace's glibc  | its size leads to a next object, in an unnamed mapping          |
//! | our namespace's glibc      | likewise, in the process's break, which only it uses            |
//!
//! If several C libraries' main heaps may have the object, `free` leaves it allocated, and
//! `realloc` copies it into ours. The kernel finds the pointer's mapping, in 5 to 100 µs.
//!
//! **Unsafe.** Calls functions by the linker's addresses; reads the words around an object that may
//! be glibc's.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use craton_os::loaded::{self, Object};
use craton_os::maps;

/// Glibc makes no more namespaces.
const MOST: usize = 16;
const GLIBC: &CStr = c"libc.so.6";
/// Low bits of glibc's size word: the object before is in use; has a mapping; not of the main heap.
const PREVIOUS_USED: usize = 1;
const MAPPED: usize = 2;
const OF_THREADS: usize = 4;
const LOW: usize = 15;
const WORD: usize = size_of::<usize>();

#[derive(Clone, Copy)]
pub(crate) struct Allocator {
    free: usize,
    realloc: usize,
    owner: Owner,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Craton { owns: usize, usable: usize },
    Glibc,
    OneOfGlibc,
    OwnGlibc,
}

impl Allocator {
    /// # Safety
    /// The pointer is this allocator's, given up.
    pub(crate) unsafe fn free(&self, pointer: *mut c_void) {
        if self.owner != Owner::OneOfGlibc {
            // SAFETY: the allocator's `free`; the contract.
            unsafe { transmute::<usize, unsafe extern "C" fn(*mut c_void)>(self.free)(pointer) }
        }
    }

    /// # Safety
    /// As [`Self::free`], if the result is not null.
    pub(crate) unsafe fn realloc(&self, pointer: *mut c_void, size: usize) -> *mut c_void {
        type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
        if self.owner == Owner::OneOfGlibc {
            let new = crate::c::malloc(size);
            if !new.is_null() {
                // SAFETY: separate objects of these bytes.
                unsafe { new.copy_from_nonoverlapping(pointer, size.min(self.usable_size(pointer))) };
            }
            return new;
        }
        // SAFETY: the allocator's `realloc`; the contract.
        unsafe { transmute::<usize, Realloc>(self.realloc)(pointer, size) }
    }

    /// # Safety
    /// The pointer is this allocator's.
    pub(crate) unsafe fn usable_size(&self, pointer: *mut c_void) -> usize {
        if let Owner::Craton { usable, .. } = self.owner {
            // SAFETY: the allocator's `malloc_usable_size`; the contract.
            return unsafe { transmute::<usize, unsafe extern "C" fn(*mut c_void) -> usize>(usable)(pointer) };
        }
        // SAFETY: `owner` has read the size.
        let size = unsafe { *pointer.cast::<usize>().sub(1) };
        (size & !LOW) - if size & MAPPED != 0 { 2 * WORD } else { WORD }
    }

    fn of(object: Object) -> Option<Self> {
        let (free, realloc) = (object.function(c"free"), object.function(c"realloc"));
        let (owns, usable) = (object.function(c"craton_owns"), object.function(c"malloc_usable_size"));
        let owner = match owns {
            0 if object.has_name(GLIBC) => Owner::Glibc,
            0 => return None,
            _ => Owner::Craton { owns, usable },
        };
        (realloc != 0).then_some(Self { free, realloc, owner })
    }

    fn past_us(object: Object) -> Option<Self> {
        let (free, realloc) = (object.function(c"__libc_free"), object.function(c"__libc_realloc"));
        (object.has_name(GLIBC) && free != 0 && realloc != 0).then_some(Self { free, realloc, owner: Owner::OwnGlibc })
    }
}

/// `ours` is this library's `free`.
#[cold]
pub(crate) fn owner(pointer: *mut c_void, ours: usize) -> Option<Allocator> {
    let (mut found, mut count) = ([None; MOST + 1], 0);
    let (mut last, mut is_own, mut is_done) = (usize::MAX, false, false);
    loaded::in_namespaces(|number, object| {
        if number != last {
            (last, is_own, is_done) = (number, false, false);
        }
        let free = object.function(c"free");
        is_own |= free == ours;
        let allocator = match free {
            0 => None,
            _ if is_done => None,
            _ if is_own => Allocator::past_us(object),
            _ => Allocator::of(object),
        };
        // The first with a `free` serves its namespace.
        is_done |= free != 0 && !is_own || allocator.is_some();
        if let (Some(_), Some(place)) = (allocator, found.get_mut(count)) {
            *place = allocator;
            count += 1;
        }
        false
    });
    let found = found.iter().flatten();
    let owns = |allocator: &&Allocator| match allocator.owner {
        // SAFETY: its type; it takes any pointer.
        Owner::Craton { owns, .. } => unsafe {
            transmute::<usize, unsafe extern "C" fn(*const c_void) -> c_int>(owns)(pointer) != 0
        },
        _ => false,
    };
    if let Some(allocator) = found.clone().find(owns) {
        return Some(*allocator);
    }
    let place = place(pointer as usize)?;
    let mut of_glibc = found.copied().filter(|allocator| match allocator.owner {
        Owner::Glibc => place != Place::Break,
        Owner::OwnGlibc => place == Place::Break,
        Owner::OneOfGlibc | Owner::Craton { .. } => false,
    });
    let first = of_glibc.next()?;
    let is_sure = place != Place::MainHeap || of_glibc.next().is_none();
    Some(if is_sure { first } else { Allocator { owner: Owner::OneOfGlibc, ..first } })
}

#[derive(PartialEq, Eq)]
enum Place {
    /// Only glibc's first copy uses it.
    Break,
    /// A copy's main heap, in mappings.
    MainHeap,
    /// A separate mapping, or a thread heap: any copy's.
    Any,
}

/// `None`: no glibc object.
fn place(at: usize) -> Option<Place> {
    if !at.is_multiple_of(2 * WORD) {
        return None;
    }
    maps::at(at - 2 * WORD, |mapping| {
        let place = match mapping.name {
            b"[heap]" => Place::Break,
            name if name.is_empty() || name.starts_with(b"[anon:") => Place::MainHeap,
            _ => return None,
        };
        let word = |at: usize| {
            let is_there = mapping.readable && mapping.start <= at && at < mapping.end - WORD;
            // SAFETY: the word lies in a readable mapping.
            is_there.then(|| unsafe { *core::ptr::with_exposed_provenance::<usize>(at) })
        };
        let size = word(at - WORD).filter(|_| mapping.writable)?;
        let (bytes, chunk) = (size & !LOW, at - 2 * WORD);
        if size & MAPPED != 0 {
            let before = word(chunk)?;
            let page = craton_os::process::page_size();
            let is_mapping = (chunk.wrapping_sub(before) | bytes.wrapping_add(before)) & (page - 1) == 0;
            return (is_mapping && bytes >= 4 * WORD && size & PREVIOUS_USED == 0).then_some(Place::Any);
        }
        let next = word(chunk.checked_add(bytes)?.checked_add(WORD)?)?;
        let place = if size & OF_THREADS != 0 { Place::Any } else { place };
        (bytes >= 4 * WORD && next & PREVIOUS_USED != 0 && next & !LOW != 0).then_some(place)
    })?
}
