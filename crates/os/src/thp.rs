//! Transparent hugepages.
//!
//! **Failure.** Unknown facts (a container may hide `/sys` and `/proc`) count as the better case,
//! or are `None`. **Cost.** Three system calls a question.
//! **Unsafe.** Calls `prctl`, `madvise` and `mincore`.

use crate::CoarseClock;
use crate::pagemap::Pagemap;
use crate::process;
use crate::small_file::{PathText, read_start};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use craton_base::{Clock, CollapseError, NoMemory};

const MODE: &[u8] = b"/sys/kernel/mm/transparent_hugepage/enabled";

static LAST: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const NEVER: u8 = 1;
const ON_ADVICE: u8 = 2;
const UNASKED: u8 = 3;

/// When asked, and how long it counts.
static ASKED_NS: AtomicU64 = AtomicU64::new(0);
const LASTS_NS: u64 = 1_000_000_000;

static KEPT: AtomicBool = AtomicBool::new(false);

/// A system call could kill the process.
pub fn keep_answer() {
    KEPT.store(true, Relaxed);
}

/// Whether system calls about memory are allowed.
pub fn may_query() -> bool {
    !KEPT.load(Relaxed)
}

/// Neither `never` nor disabled by `prctl`. Up to a second old.
pub fn is_on() -> bool {
    let now = CoarseClock.now_ns();
    let is_old = now.wrapping_sub(ASKED_NS.load(Relaxed)) >= LASTS_NS || LAST.load(Relaxed) == UNKNOWN;
    if is_old && may_query() {
        ASKED_NS.store(now, Relaxed);
        LAST.store(query(), Relaxed);
    }
    LAST.load(Relaxed) != NEVER
}

/// Memory without advice gets hugepages, by the last answer.
pub fn is_always() -> bool {
    if LAST.load(Relaxed) == UNKNOWN {
        is_on();
    }
    LAST.load(Relaxed) == UNASKED
}

fn query() -> u8 {
    // SAFETY: a query.
    if unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) } == 1 {
        return NEVER;
    }
    let mut text = [0u8; 64];
    let saved = process::errno();
    let mode = PathText::new(MODE).and_then(|path| read_start(&path, &mut text).ok());
    let has = |word: &[u8]| mode.is_some_and(|mode| mode.windows(word.len()).any(|w| w == word));
    process::set_errno(saved);
    match () {
        () if has(b"[never]") => NEVER,
        () if has(b"[always]") => UNASKED,
        () => ON_ADVICE,
    }
}

/// `MADV_COLLAPSE`, Linux 6.1. Contents survive.
pub fn collapse(at: usize, len: usize) -> Result<(), CollapseError> {
    let saved = process::errno();
    // SAFETY: moves memory to other frames; unmapped ranges are refused.
    let refused = unsafe { libc::madvise(at as *mut _, len, MADV_COLLAPSE) } != 0;
    let why = process::errno();
    process::set_errno(saved);
    match why {
        _ if !refused => Ok(()),
        libc::ENOMEM => Err(CollapseError::NoMemory),
        libc::EBUSY => Err(CollapseError::Busy),
        libc::EAGAIN | libc::EINTR => Err(CollapseError::Again),
        _ => Err(CollapseError::Unsupported),
    }
}

/// Linux 5.14. *Refused:* a part may be backed.
pub fn populate(at: usize, len: usize) -> Result<(), NoMemory> {
    let saved = process::errno();
    // SAFETY: contents survive; unmapped ranges are refused.
    let refused = unsafe { libc::madvise(at as *mut _, len, libc::MADV_POPULATE_WRITE) } != 0;
    process::set_errno(saved);
    if refused { Err(NoMemory) } else { Ok(()) }
}

const MADV_COLLAPSE: i32 = 25;

/// Of whole mapped pages; 0: unknown.
pub fn resident_bytes(at: usize, len: usize) -> usize {
    if !may_query() {
        return 0;
    }
    let page = process::page_size();
    let mut resident = 0;
    let mut seen = [0u8; 512];
    for start in (0..len).step_by(seen.len() * page) {
        let step = (len - start).min(seen.len() * page);
        // SAFETY: a query; `seen` has a byte for each machine page of the step.
        let answered = unsafe { libc::mincore((at + start) as *mut _, step, seen.as_mut_ptr().cast()) } == 0;
        if answered {
            resident += seen[..step.div_ceil(page)].iter().filter(|b| **b & 1 == 1).count() * page;
        }
    }
    resident
}

/// Of whole pages; `None`: unknown, as before Linux 6.7.
pub fn huge_bytes(at: usize, len: usize) -> Option<usize> {
    Pagemap::open()?.huge_bytes(at..at + len)
}

/// Of whole pages: in memory, and on hugepages; `None` as [`huge_bytes`].
pub fn mapped_bytes(at: usize, len: usize) -> Option<(usize, usize)> {
    Pagemap::open()?.mapped_bytes(at..at + len)
}
