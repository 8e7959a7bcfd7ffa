//! What lies under a buffer, and where its redzones are.
//!
//! **State.**
//! ```text
//! object of the heap: | redzone: 16 bytes, or its alignment | buffer | redzone: up to 64 bytes, at least 16 |
//! pages:              closed page | redzone | buffer | redzone up to the alignment | closed page
//! ```
//! On pages a buffer lies as far behind as its alignment lets it, so that what is read or written behind it fails at once.
//!
//! **Unsafe.** Writes to memory that is handed out.

use super::guard;
use super::setting::{GUARD, REDZONE, SAMPLED};
use super::table::{Buffer, Kind};
use crate::size_class::{self, MAX_CLASSED};
use crate::statics::HEAP;
use craton_slab::debug::pattern::{self, Wrong};

/// Bytes before a buffer, at least, and alignment of what has no other.
const UNIT: usize = 16;
/// Bytes behind a buffer that are looked at, at most, and at least.
const TAIL: usize = 64;
const LEAST_TAIL: usize = 16;

/// Memory for one buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) under: usize,
    pub(super) address: usize,
    pub(super) kind: Kind,
}

/// Bytes before and behind the object of a buffer on the heap, by what was asked for; `None` for what no object can be.
fn around(size: usize, align: usize) -> Option<(usize, usize)> {
    let front = align.max(UNIT);
    let total = front.checked_add(size)?.checked_add(LEAST_TAIL).filter(|total| *total <= isize::MAX as usize)?;
    let tail = match class_for(total, align) {
        Some(class) => (size_class::size_of_class(class) - front - size).min(TAIL),
        None => LEAST_TAIL,
    };
    Some((front, tail))
}

fn class_for(total: usize, align: usize) -> Option<usize> {
    if align <= UNIT {
        return (total <= MAX_CLASSED).then(|| size_class::class_of(total));
    }
    size_class::class_of_aligned(total, align)
}

impl Area {
    /// Takes memory for a buffer; `None` without memory.
    pub(super) fn take(size: usize, align: usize, checks: u8) -> Option<Self> {
        if checks & (GUARD | SAMPLED) != 0
            && let Some(area) = guard::take(size, align.max(UNIT))
        {
            return Some(area);
        }
        if checks & SAMPLED != 0 {
            return None;
        }
        let (front, tail) = around(size, align)?;
        let total = front + size + tail;
        let under = match class_for(front + size + LEAST_TAIL, align) {
            Some(class) => HEAP.take_one(class),
            None => HEAP.allocate_large(total, align, false),
        };
        (!under.is_null()).then(|| Self { under: under as usize, address: under as usize + front, kind: Kind::Heap })
    }
}

/// Where a buffer's redzones are: address and bytes of each.
pub(super) fn redzones(buffer: &Buffer) -> [(usize, usize); 2] {
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

/// Writes a buffer's redzones.
///
/// # Safety
/// The buffer's memory is the caller's.
pub(super) unsafe fn draw(buffer: &Buffer) {
    if buffer.checks & (REDZONE | SAMPLED) != 0 {
        for (at, bytes) in redzones(buffer) {
            // SAFETY: by the contract.
            unsafe { pattern::fill_redzone(at as *mut u8, bytes) };
        }
    }
}

/// The first byte of a redzone that somebody has written, as an offset from the buffer's start.
///
/// # Safety
/// The buffer's memory can be read.
pub(super) unsafe fn check(buffer: &Buffer) -> Option<(isize, Wrong)> {
    if buffer.checks & (REDZONE | SAMPLED) == 0 {
        return None;
    }
    let [front, tail] = redzones(buffer);
    // Behind it first, where it is more likely.
    [tail, front].into_iter().find_map(|(at, bytes)| {
        // SAFETY: by the contract.
        let wrong = unsafe { pattern::check_redzone(at as *const u8, bytes) }?;
        Some(((at + wrong.offset) as isize - buffer.address as isize, wrong))
    })
}
