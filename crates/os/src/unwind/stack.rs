//! Words of a stack, read only where there is one.
//!
//! **What.** [`Stack::word`] reads a word of a page that is known to be readable (`U1`): the one that the walk began on, those that earlier
//! walks of the same thread met, and those that the kernel says can be read. So a frame that lies about its caller ends the walk, and not
//! the process.
//!
//! **State.** A table from (thread, 64 KiB of addresses) to a word whose lower 16 bits say which of the sixteen pages are readable. It
//! outlives threads: a new one at the same place has its own stack there again. What was met after a guess ([`Stack::distrust`]) is not
//! kept; of what was kept, that is believed which lies between the caller and its stack's known end, since nobody can have unmapped it.
//!
//! **Cost.** A comparison a word; a system call, a fifth of a microsecond, for each page met for the first time.
//!
//! **Unsafe.** Reads words of pages that are known to be readable.

use super::table::Table;
use crate::{process, thp, thread};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The least page there is; larger ones count as several.
const PAGE_BITS: u32 = 12;
/// What one entry speaks of: sixteen pages.
const GRANULE_BITS: u32 = PAGE_BITS + 4;
/// Above the pages of an entry, so that it is never 0.
const KNOWN: u64 = 1 << 63;

static PAGES: Table<1024> = Table::new();

/// See the module. Passed on by value where it is needed rarely, so that it can stay in registers.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    thread: usize,
    /// Which 64 KiB `pages` speaks of.
    granule: usize,
    pages: u64,
    trusts: bool,
}

impl Stack {
    /// Of the calling thread.
    pub(super) fn new() -> Self {
        Self { thread: thread::pointer(), granule: usize::MAX, pages: 0, trusts: true }
    }

    /// From now on the way may be wrong: nothing is remembered, and of what was, only what surely is this thread's stack counts.
    pub(super) fn distrust(&mut self) {
        *self = Self { granule: usize::MAX, pages: 0, trusts: false, ..*self };
    }

    /// The word at an address, or `None` when there is none to be read.
    #[inline(always)]
    pub(super) fn word(&mut self, at: usize) -> Option<usize> {
        // A word that is aligned lies in one page.
        if !at.is_multiple_of(size_of::<usize>()) {
            return None;
        }
        if at >> GRANULE_BITS != self.granule || !self.has(at) {
            *self = self.with_page_of(at)?;
        }
        // SAFETY: the page can be read, and a word that is aligned lies in it. It belongs to whatever function, which is not running, or
        // is what a wrong guess led to: so its value may be anything, and is only ever compared.
        Some(unsafe { (at as *const usize).read_volatile() })
    }

    #[inline(always)]
    fn has(self, at: usize) -> bool {
        self.pages >> (at >> PAGE_BITS & 15) & 1 != 0
    }

    /// Finds out about a page that this walk has not met; `None` if it cannot be read.
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

/// Bytes above the stack pointer that surely are this thread's stack where its thread pointer or the process's first stack's end is not
/// farther: less than any usual stack has.
const SURELY: usize = 256 << 10;

/// Whether eight bytes at an address can be read, by the kernel's word. Where it may not be asked: what lies between here and the
/// stack's known end.
pub(super) fn is_readable(at: usize) -> bool {
    if !thp::may_ask() {
        return is_surely_stack(at);
    }
    process::can_read(at)
}

/// Whether an address lies between here and the end of the stack that this thread, or the process, began with, if that end is near.
fn is_surely_stack(at: usize) -> bool {
    let here = &raw const at as usize;
    static FIRST: AtomicUsize = AtomicUsize::new(0);
    let mut first = FIRST.load(Relaxed);
    if first == 0 {
        // SAFETY: no preconditions; the kernel puts these bytes above the first stack.
        first = unsafe { libc::getauxval(libc::AT_RANDOM) as usize };
        FIRST.store(first, Relaxed);
    }
    [first, thread::pointer()].iter().any(|end| (here..*end).contains(&at) && end - here < SURELY)
}

/// Forgets which pages were met.
pub(super) fn forget() {
    PAGES.clear();
}
