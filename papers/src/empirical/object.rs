//! An object in real memory.
//!
//! **What.** Written at birth at the [`places`] of its size, and read back at death. Words depend
//! on a tag that is unique among live objects, so overlapping objects change the sum.
//!
//! **Cost.** Up to 4 KiB a word in each cache line; beyond, a word in each page, so that memory is
//! backed and large objects do not dominate the time.
//!
//! **Unsafe.** Calls the allocator itself: a `Vec` holds only what was written.

use craton_lab::rng::mix;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Bytes in a cache line, and in a small page of the machine.
const LINE: usize = 64;
const SMALL_PAGE: usize = 4096;
const WORD: usize = size_of::<u64>();

/// Memory from the allocator, freed by [`Object::end`]; its size is kept elsewhere.
pub(crate) struct Object(NonNull<u8>);

// SAFETY: an object owns its memory, which any thread may use and free.
unsafe impl Send for Object {}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 1).expect("sizes of a profile are far below the largest of a layout")
}

/// The offsets of the words of an object of `size` bytes, at least [`WORD`]; the last word is at
/// its end, and may overlap the one before.
fn places(size: usize) -> impl Iterator<Item = usize> {
    let step = if size <= SMALL_PAGE { LINE } else { SMALL_PAGE };
    let last = size - WORD;
    (0..last).step_by(step).chain([last])
}

fn word(tag: u64, at: usize) -> u64 {
    tag.wrapping_add(at as u64)
}

impl Object {
    /// Takes `size` bytes, at least 1, and writes to them.
    pub fn new(size: u64, tag: u64) -> Self {
        let layout = layout(size as usize);
        // SAFETY: the size is not 0.
        let memory = unsafe { alloc(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        if layout.size() < WORD {
            // SAFETY: the memory has as many bytes.
            unsafe { memory.copy_from_nonoverlapping(NonNull::from(&tag.to_le_bytes()).cast(), layout.size()) };
        } else {
            for at in places(layout.size()) {
                // SAFETY: the word lies within the memory, as `places` says.
                unsafe { memory.add(at).cast::<u64>().write_unaligned(word(tag, at)) };
            }
        }
        Self(memory)
    }

    /// Reads the words, frees the memory, and returns a checksum.
    pub fn end(self, size: u64) -> u64 {
        let layout = layout(size as usize);
        let mut sum = size;
        if layout.size() < WORD {
            let mut bytes = [0; WORD];
            // SAFETY: `new` wrote as many bytes, and the array has room for them.
            unsafe { self.0.copy_to_nonoverlapping(NonNull::from(&mut bytes).cast(), layout.size()) };
            sum = sum.wrapping_add(u64::from_le_bytes(bytes));
        } else {
            for at in places(layout.size()) {
                // SAFETY: `new` wrote a word there.
                sum = sum.wrapping_add(unsafe { self.0.add(at).cast::<u64>().read_unaligned() });
            }
        }
        // SAFETY: the memory came from `alloc` with this layout, and `self` is consumed.
        unsafe { dealloc(self.0.as_ptr(), layout) };
        mix(sum)
    }
}

#[cfg(test)]
mod tests;
