//! Requests beyond the size classes, and resizes in place (TEMERAIRE §3).
//!
//! From 32 MiB, or when the region is full, an object is a separate mapping.
//!
//! **Unsafe.** Clears newly allocated memory.

use crate::find::Found;
use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::huge::HUGE_MIN;
use crate::size_class::{self, MAX_CLASSED};
use core::ptr::null_mut;
use craton_base::{Bytes, Clock, HUGEPAGE_SIZE, Pages, Platform};

/// Sparsely touched objects of this size get separate mappings.
const SPARSE_MIN: usize = 4 << 20;

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// For more than [`MAX_CLASSED`] bytes, or an alignment of no class. Null without memory.
    pub fn allocate_large(&self, size: usize, align: usize, zero: bool) -> *mut u8 {
        if align > HUGEPAGE_SIZE {
            // The region is aligned to a hugepage only.
            return self.allocate_huge(size, align, zero);
        }
        if size >= HUGE_MIN {
            // An address-space limit may refuse the mapping.
            let object = self.allocate_huge(size, align, zero);
            return if object.is_null() { self.allocate_span(size, align, zero) } else { object };
        }
        if self.is_lonely(size, align) {
            let object = self.allocate_huge(size, align, zero);
            if !object.is_null() {
                return object;
            }
        }
        if size >= SPARSE_MIN && self.is_better_apart(size) {
            let object = self.allocate_sparse(size, align);
            if !object.is_null() {
                return object;
            }
        }
        let object = self.allocate_span(size, align, zero);
        if object.is_null() { self.allocate_huge(size, align, zero) } else { object }
    }

    fn allocate_span(&self, size: usize, align: usize, zero: bool) -> *mut u8 {
        let align_pages = Bytes(align).pages_up().filter(|p| p.0.is_power_of_two()).unwrap_or(Pages(1));
        let Some(pages) = Bytes(size).pages_up() else { return null_mut() };
        let Ok(span) = self.take_large(Pages(pages.0.max(1)), align_pages) else { return null_mut() };
        let object = self.address(span.range.first);
        if zero && !span.zeroed {
            // SAFETY: the span is ours and holds `size` bytes.
            unsafe { object.write_bytes(0, size) };
        }
        object
    }

    /// `None`: the caller must copy. Not for private heaps' objects.
    pub fn resize(&self, pointer: *mut u8, found: Found, size: usize) -> Option<*mut u8> {
        match found {
            Found::Small { class } | Found::Old { class } => small_stays(class, size).then_some(pointer),
            Found::Large { first, pages } => {
                let new = Bytes(size).pages_up()?;
                if new == pages {
                    return Some(pointer);
                }
                if size <= MAX_CLASSED / 2 {
                    return None;
                }
                if size < HUGE_MIN && self.resize_large(first, new).is_ok() {
                    return Some(pointer);
                }
                if new > pages { self.move_out(first, pages, size) } else { None }
            }
            Found::Huge(entry) => self.resize_huge(entry, size),
            Found::Owned(_) | Found::Bad(_) => None,
        }
    }
}

/// Only a shrink by half pays for a copy.
pub fn small_stays(class: usize, size: usize) -> bool {
    let old = size_class::size_of_class(class);
    size <= old && size > old / 2 || size <= MAX_CLASSED && size_class::class_of(size) == class
}
