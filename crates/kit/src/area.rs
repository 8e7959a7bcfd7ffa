//! The memory under a buffer, and its redzones.
//!
//! ```text
//! object of the heap: | redzone: 16 bytes or the alignment | buffer | redzone: 16 to 64 bytes |
//! pages:              closed page | redzone | buffer | redzone up to the alignment | closed page
//! ```
//! **Unsafe.** Writes to memory that is handed out.

use crate::guard;
use crate::pattern::{self, Wrong};
use crate::setting::{REDZONE, SAMPLED};
use crate::table::{Buffer, Kind};
use craton_heap::size_class::{self, MAX_CLASSED};

/// The least alignment, and redzone before a buffer.
pub(crate) const UNIT: usize = 16;
const TAIL: usize = 64;
const LEAST_TAIL: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) under: usize,
    pub(crate) address: usize,
    pub(crate) kind: Kind,
}

pub(crate) fn around(size: usize, align: usize) -> Option<(usize, usize)> {
    let front = align.max(UNIT);
    let total = front.checked_add(size)?.checked_add(LEAST_TAIL).filter(|total| *total <= isize::MAX as usize)?;
    let tail = match class_for(total, align) {
        Some(class) => (size_class::size_of_class(class) - front - size).min(TAIL),
        None => LEAST_TAIL,
    };
    Some((front, tail))
}

pub(crate) fn class_for(total: usize, align: usize) -> Option<usize> {
    if align <= UNIT {
        return (total <= MAX_CLASSED).then(|| size_class::class_of(total));
    }
    size_class::class_of_aligned(total, align)
}

pub(crate) fn redzones(buffer: &Buffer) -> [(usize, usize); 2] {
    let (front, tail) = match buffer.kind {
        Kind::Heap => around(buffer.size, 1 << buffer.align).unwrap_or((0, 0)),
        Kind::Slot | Kind::Mapped => {
            let end = guard::end_of(buffer);
            let front = buffer.address - buffer.under;
            (front.min(TAIL), end - (buffer.address + buffer.size))
        }
    };
    [(buffer.address - front, front), (buffer.address + buffer.size, tail)]
}

/// # Safety
/// The buffer's memory is the caller's.
pub(crate) unsafe fn write_redzones(buffer: &Buffer, secret: u64) {
    if buffer.checks & (REDZONE | SAMPLED) != 0 {
        for (at, bytes) in redzones(buffer) {
            // SAFETY: by the contract.
            unsafe { pattern::fill_redzone(at as *mut u8, bytes, secret) };
        }
    }
}

/// Offset from the buffer's start.
/// # Safety
/// The buffer's memory can be read.
pub(crate) unsafe fn check_redzones(buffer: &Buffer, secret: u64) -> Option<(isize, Wrong)> {
    if buffer.checks & (REDZONE | SAMPLED) == 0 {
        return None;
    }
    let [front, tail] = redzones(buffer);
    [tail, front].into_iter().find_map(|(at, bytes)| {
        // SAFETY: by the contract.
        let wrong = unsafe { pattern::check_redzone(at as *const u8, bytes, secret) }?;
        Some(((at + wrong.offset) as isize - buffer.address as isize, wrong))
    })
}

pub(crate) fn object_for(size: usize, align: usize, (front, tail): (usize, usize)) -> (Option<usize>, usize) {
    (class_for(front + size + LEAST_TAIL, align), front + size + tail)
}

#[cfg(all(test, not(loom)))]
mod tests;
