//! Copies of memory that skip untouched pages.
//!
//! A plain copy of a hardly touched large object would touch all of it, twice. **Cost.** Four
//! system calls, 3 µs, and one for each skipped part where the target has contents.
//! **Unsafe.** Copies the caller's memory.

use crate::pagemap::Pagemap;
use crate::process;
use core::ops::Range;
use core::ptr::{copy_nonoverlapping, write_bytes};

/// Skips pages without contents, where the system reports them. Keeps `errno`.
///
/// # Safety
/// Both are live and do not overlap; no other thread uses the target, nor writes to the source.
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    let mut done = 0;
    if let Some(pagemap) = Pagemap::open() {
        let fresh = is_fresh(&pagemap, to, bytes);
        let mut known = true;
        let walked = pagemap.touched(whole_pages(from, bytes), |part| {
            for page in part.step_by(process::page_size()) {
                let page = clip(page..page + process::page_size(), from, bytes);
                // SAFETY: parts of the contract's memory.
                unsafe {
                    if is_zero(from.add(page.start), page.len()) {
                        continue;
                    }
                    known = known && (fresh || done == page.start || clear(&pagemap, to.add(done), page.start - done));
                    if known {
                        copy_nonoverlapping(from.add(page.start), to.add(page.start), page.len());
                        done = page.end;
                    }
                }
            }
        });
        // SAFETY: the rest, without contents if the walk came to its end.
        if walked.is_some() && known && (fresh || unsafe { clear(&pagemap, to.add(done), bytes - done) }) {
            return;
        }
    }
    // SAFETY: by the contract.
    unsafe { copy_nonoverlapping(from.add(done), to.add(done), bytes - done) };
}

/// # Safety
/// The memory is live.
unsafe fn is_zero(at: *const u8, bytes: usize) -> bool {
    // SAFETY: by the contract.
    let (start, words, end) = unsafe { core::slice::from_raw_parts(at, bytes).align_to::<u64>() };
    start.iter().chain(end).all(|b| *b == 0) && words.chunks(8).all(|line| line.iter().fold(0, |all, w| all | w) == 0)
}

fn is_fresh(pagemap: &Pagemap, at: *mut u8, bytes: usize) -> bool {
    let mut fresh = true;
    pagemap.touched(whole_pages(at, bytes), |_| fresh = false).is_some() && fresh
}

/// # Safety
/// The memory is the caller's.
unsafe fn clear(pagemap: &Pagemap, at: *mut u8, bytes: usize) -> bool {
    let touched = pagemap.touched(whole_pages(at, bytes), |part| {
        let part = clip(part, at, bytes);
        // SAFETY: a part of the caller's memory.
        unsafe { write_bytes(at.add(part.start), 0, part.len()) };
    });
    touched.is_some()
}

fn whole_pages(at: *const u8, bytes: usize) -> Range<usize> {
    let page = process::page_size();
    at as usize / page * page..(at as usize + bytes).next_multiple_of(page)
}

fn clip(part: Range<usize>, at: *const u8, bytes: usize) -> Range<usize> {
    let at = at as usize;
    part.start.max(at) - at..part.end.min(at + bytes) - at
}

#[cfg(all(test, not(loom)))]
mod tests;
