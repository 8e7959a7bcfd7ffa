//! The state of pages (`PAGEMAP_SCAN`, Linux 6.7 on); keeps `errno`.
//!
//! **Cost.** Three system calls, one more for each 32 ranges found.
//! **Unsafe.** Calls `ioctl`.

use crate::small_file::{File, PathText};
use crate::{process, thp};
use core::ops::Range;

const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const HUGE: u64 = 1 << 6;
/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::c_ulong =
    0xc000_0000 | (size_of::<Scan>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;

/// Fails unless writes to the pages are recorded.
const PROTECT: u64 = 1 << 0 | 1 << 1;

/// Pages with all of some, none of others, and one of a third set unless empty.
#[derive(Clone, Copy, Default)]
struct Filter {
    all: u64,
    none: u64,
    any: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Found {
    start: u64,
    end: u64,
    categories: u64,
}

pub(crate) struct Pagemap(File);

impl Pagemap {
    /// Or not to be asked ([`thp::may_query`]).
    pub(crate) fn open() -> Option<Self> {
        if !thp::may_query() {
            return None;
        }
        let saved = process::errno();
        let file = PathText::new(b"/proc/self/pagemap").and_then(|path| File::open(&path).ok());
        process::set_errno(saved);
        file.map(Self)
    }

    /// Whole pages: mapped to memory, and on hugepages.
    pub(crate) fn mapped_bytes(&self, range: Range<usize>) -> Option<(usize, usize)> {
        let (mut all, mut huge) = (0, 0);
        self.walk(range, Filter { all: PRESENT, ..Filter::default() }, 0, |found, categories| {
            all += found.len();
            huge += if categories & HUGE != 0 { found.len() } else { 0 };
        })?;
        Some((all, huge))
    }

    pub(crate) fn huge_bytes(&self, range: Range<usize>) -> Option<usize> {
        let mut huge = 0;
        self.walk(range, Filter { all: PRESENT | HUGE, ..Filter::default() }, 0, |found, _| huge += found.len())?;
        Some(huge)
    }

    /// In memory or swapped. Other private memory reads as zeros.
    pub(crate) fn touched(&self, range: Range<usize>, mut f: impl FnMut(Range<usize>)) -> Option<()> {
        self.walk(range, Filter { any: PRESENT | SWAPPED, ..Filter::default() }, 0, |found, _| f(found))
    }

    /// Whether a part of a file is as in the file: no debugger wrote there.
    pub(crate) fn is_unchanged(&self, range: Range<usize>) -> Option<bool> {
        let mut is_unchanged = true;
        self.walk(range, Filter { any: PRESENT | SWAPPED, ..Filter::default() }, 0, |_, categories| {
            is_unchanged &= categories & FILE != 0
        })?;
        Some(is_unchanged)
    }

    /// Of a private file mapping: may differ from the file.
    pub(crate) fn private(&self, range: Range<usize>, mut f: impl FnMut(Range<usize>)) -> Option<()> {
        self.walk(range, Filter { none: FILE, any: PRESENT | SWAPPED, all: 0 }, 0, |found, _| f(found))
    }

    /// Of it, not written to since [`drain_written`](Self::drain_written).
    pub(crate) fn unwritten(&self, range: Range<usize>, mut f: impl FnMut(Range<usize>)) -> Option<()> {
        self.walk(range, Filter { all: PRESENT, none: FILE | WRITTEN, any: 0 }, 0, |found, _| f(found))
    }

    /// Since the last call; at the first, absent too. `None`: some may be lost.
    pub(crate) fn drain_written(&self, range: Range<usize>, mut f: impl FnMut(Range<usize>)) -> Option<()> {
        // Asked for nothing else, the kernel is five times as fast.
        self.walk(range, Filter { all: WRITTEN, ..Filter::default() }, PROTECT, |found, _| f(found))
    }

    fn walk(
        &self,
        range: Range<usize>,
        filter: Filter,
        flags: u64,
        mut f: impl FnMut(Range<usize>, u64),
    ) -> Option<()> {
        let saved = process::errno();
        let mut found = [Found { start: 0, end: 0, categories: 0 }; 32];
        let mut start = range.start as u64;
        while start < range.end as u64 {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags,
                start,
                end: range.end as u64,
                walk_end: 0,
                vec: found.as_mut_ptr() as u64,
                vec_len: found.len() as u64,
                max_pages: 0,
                category_inverted: filter.none,
                category_mask: filter.all | filter.none,
                category_anyof_mask: filter.any,
                return_mask: if filter.all == WRITTEN { WRITTEN } else { HUGE | FILE },
            };
            // SAFETY: the call's structure, and `vec` has its entries.
            let answer = unsafe { self.0.ioctl(PAGEMAP_SCAN, (&raw mut scan) as usize) };
            let Ok(n) = usize::try_from(answer) else {
                process::set_errno(saved);
                return None;
            };
            for range in &found[..n] {
                f(range.start as usize..range.end as usize, range.categories);
            }
            if scan.walk_end <= start {
                return None;
            }
            start = scan.walk_end;
        }
        Some(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
