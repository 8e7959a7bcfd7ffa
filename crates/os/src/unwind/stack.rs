//! Words of a stack, read only where they are readable.
//!
//! **State.** A table from (thread, 64 KiB of addresses) to a word whose lower 16 bits mark pages
//! known to be readable (U1). A kept page counts between the caller and its stack's known end:
//! nothing can have unmapped it.
//! **Cost.** A system call, 0.2 µs, for each new page.
//! **Unsafe.** Reads words of readable pages.

use super::table::Table;
use crate::{process, thp, thread};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Larger pages count as several.
const PAGE_BITS: u32 = 12;
const GRANULE_BITS: u32 = PAGE_BITS + 4;
/// Keeps an entry from being 0.
const KNOWN: u64 = 1 << 63;

static PAGES: Table<1024> = Table::new();

/// By value: stays in registers.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    thread: usize,
    granule: usize,
    pages: u64,
    trusts: bool,
}

impl Stack {
    pub(super) fn new() -> Self {
        Self { thread: thread::pointer(), granule: usize::MAX, pages: 0, trusts: true }
    }

    /// Remembers nothing; only pages surely of this stack count.
    pub(super) fn distrust(&mut self) {
        *self = Self { granule: usize::MAX, pages: 0, trusts: false, ..*self };
    }

    #[inline(always)]
    pub(super) fn word(&mut self, at: usize) -> Option<usize> {
        if !at.is_multiple_of(size_of::<usize>()) {
            return None;
        }
        if at >> GRANULE_BITS != self.granule || !self.has(at) {
            *self = self.with_page_of(at)?;
        }
        // SAFETY: readable and aligned. The word belongs to a suspended function, or a wrong guess:
        // it is only compared.
        Some(unsafe { (at as *const usize).read_volatile() })
    }

    #[inline(always)]
    fn has(self, at: usize) -> bool {
        self.pages >> (at >> PAGE_BITS & 15) & 1 != 0
    }

    /// `None`: cannot be read.
    #[cold]
    #[inline(never)]
    fn with_page_of(mut self, at: usize) -> Option<Self> {
        let key = (self.thread ^ (at >> GRANULE_BITS << GRANULE_BITS).rotate_left(32)) as u64;
        if at >> GRANULE_BITS != self.granule {
            self.granule = at >> GRANULE_BITS;
            self.pages = if self.trusts || is_surely_stack(at) { PAGES.get(key) } else { 0 };
        }
        if !self.has(at) {
            if !is_readable(at) {
                return None;
            }
            self.pages |= 1 << (at >> PAGE_BITS & 15);
            if self.trusts {
                PAGES.put(key, self.pages | KNOWN);
            }
        }
        Some(self)
    }
}

/// Less than any usual stack.
const SURELY: usize = 256 << 10;

/// Without the kernel, true up to the stack's end.
pub(super) fn is_readable(at: usize) -> bool {
    if !thp::may_query() {
        return is_surely_stack(at);
    }
    process::can_read(at)
}

fn is_surely_stack(at: usize) -> bool {
    let here = &raw const at as usize;
    static FIRST: AtomicUsize = AtomicUsize::new(0);
    let mut first = FIRST.load(Relaxed);
    if first == 0 {
        // SAFETY: no preconditions. The kernel puts these bytes above the first stack.
        first = unsafe { libc::getauxval(libc::AT_RANDOM) as usize };
        FIRST.store(first, Relaxed);
    }
    [first, thread::pointer()].iter().any(|end| (here..*end).contains(&at) && end - here < SURELY)
}

pub(super) fn forget() {
    PAGES.clear();
}
