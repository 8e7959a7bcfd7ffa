//! An object in real memory, written at the [`places`] of its size and read at death. Tags are
//! unique, so overlapping objects change the sum.
//!
//! **Unsafe.** Calls the allocator itself: a `Vec` holds only what was written.

use craton_lab::rng::mix;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const LINE: usize = 64;
const SMALL_PAGE: usize = 4096;
const WORD: usize = size_of::<u64>();

/// Freed by [`Object::end`].
pub(crate) struct Object(NonNull<u8>);

// SAFETY: an object owns its memory.
unsafe impl Send for Object {}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 1).expect("sizes of a profile are far below the largest of a layout")
}

/// The last is at the end of `size`, and may overlap.
fn places(size: usize) -> impl Iterator<Item = usize> {
    let step = if size <= SMALL_PAGE { LINE } else { SMALL_PAGE };
    let last = size - WORD;
    (0..last).step_by(step).chain([last])
}

fn word(tag: u64, at: usize) -> u64 {
    tag.wrapping_add(at as u64)
}

impl Object {
    /// `size` is at least 1.
    pub fn new(size: u64, tag: u64) -> Self {
        let layout = layout(size as usize);
        // SAFETY: not of size 0.
        let memory = unsafe { alloc(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        if layout.size() < WORD {
            // SAFETY: the memory has these bytes.
            unsafe { memory.copy_from_nonoverlapping(NonNull::from(&tag.to_le_bytes()).cast(), layout.size()) };
        } else {
            for at in places(layout.size()) {
                // SAFETY: `places` lie within the memory.
                unsafe { memory.add(at).cast::<u64>().write_unaligned(word(tag, at)) };
            }
        }
        Self(memory)
    }

    pub fn end(self, size: u64) -> u64 {
        let layout = layout(size as usize);
        let mut sum = size;
        if layout.size() < WORD {
            let mut bytes = [0; WORD];
            // SAFETY: `new` wrote these bytes.
            unsafe { self.0.copy_to_nonoverlapping(NonNull::from(&mut bytes).cast(), layout.size()) };
            sum = sum.wrapping_add(u64::from_le_bytes(bytes));
        } else {
            for at in places(layout.size()) {
                // SAFETY: `new` wrote a word there.
                sum = sum.wrapping_add(unsafe { self.0.add(at).cast::<u64>().read_unaligned() });
            }
        }
        // SAFETY: `alloc` gave it with this layout; consumed.
        unsafe { dealloc(self.0.as_ptr(), layout) };
        mix(sum)
    }
}

#[cfg(test)]
mod tests;
