//! Transparent hugepages: whether the system provides them, and where some are.
//!
//! **Failure.** Unknown facts (a container may hide `/sys` and `/proc`) count as the better case,
//! or are `None`. **Cost.** Three system calls a question. **State.** The last answer to [`is_on`],
//! final after [`keep_answer`].
//! **Unsafe.** Calls `open`, `read`, `ioctl` and `prctl`; no allocation.

use crate::process;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use craton_base::{CollapseError, NoMemory};

const MODE: &CStr = c"/sys/kernel/mm/transparent_hugepage/enabled";
const PAGEMAP: &CStr = c"/proc/self/pagemap";

static LAST: AtomicBool = AtomicBool::new(true);
static KEPT: AtomicBool = AtomicBool::new(false);

/// Freezes the answers: no system call from now on, which could kill the process.
pub fn keep_answer() {
    KEPT.store(true, Relaxed);
}

/// Whether the system may still be asked about memory.
pub fn may_ask() -> bool {
    !KEPT.load(Relaxed)
}

/// Whether the process gets hugepages: the mode is not `never`, nor has `prctl` disabled them.
pub fn is_on() -> bool {
    if may_ask() {
        LAST.store(ask(), Relaxed);
    }
    LAST.load(Relaxed)
}

fn ask() -> bool {
    // SAFETY: a query without side effects.
    if unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) } == 1 {
        return false;
    }
    let mut text = [0u8; 64];
    let Some(file) = File::open(MODE) else { return true };
    // SAFETY: the buffer is live and has the stated length.
    let read = unsafe { libc::read(file.0, text.as_mut_ptr().cast(), text.len()) };
    !text[..read.max(0) as usize].windows(7).any(|w| w == b"[never]")
}

/// `MADV_COLLAPSE`, Linux 6.1 on: makes whole resident hugepages physically huge. Contents survive.
pub fn collapse(at: usize, len: usize) -> Result<(), CollapseError> {
    let saved = process::errno();
    // SAFETY: moves memory to other frames, whatever its owner; unmapped ranges are refused.
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

/// Backs a range of the caller's whole pages now, from Linux 5.14 on. *Refused:* a part may be.
pub fn populate(at: usize, len: usize) -> Result<(), NoMemory> {
    let saved = process::errno();
    // SAFETY: contents survive, whatever the memory's owner; unmapped ranges are refused.
    let refused = unsafe { libc::madvise(at as *mut _, len, libc::MADV_POPULATE_WRITE) } != 0;
    process::set_errno(saved);
    if refused { Err(NoMemory) } else { Ok(()) }
}

const MADV_COLLAPSE: i32 = 25;

/// A readable file, without the standard library.
struct File(i32);

impl File {
    fn open(path: &CStr) -> Option<Self> {
        // SAFETY: the path is a C string.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (fd >= 0).then_some(Self(fd))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: this owns the descriptor.
        unsafe { libc::close(self.0) };
    }
}

/// `struct pm_scan_arg` of Linux 6.7 on.
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

const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_HUGE: u64 = 1 << 6;
/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::c_ulong =
    0xc000_0000 | (size_of::<Scan>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;

/// Bytes of a mapped range of whole pages that have memory; 0 if unknown.
pub fn resident_bytes(at: usize, len: usize) -> usize {
    if !may_ask() {
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

/// Bytes of a range of whole pages on hugepages; `None` if unknown, as before Linux 6.7.
pub fn huge_bytes(at: usize, len: usize) -> Option<usize> {
    scan(at, len, PAGE_IS_PRESENT | PAGE_IS_HUGE).map(|(_, huge)| huge)
}

/// Bytes of a range of whole pages that are mapped to memory, and of these on hugepages, by a
/// walk over the page tables; `None` if unknown, as before Linux 6.7.
pub fn mapped_bytes(at: usize, len: usize) -> Option<(usize, usize)> {
    if !may_ask() {
        return None;
    }
    let saved = process::errno();
    let mapped = scan(at, len, PAGE_IS_PRESENT);
    process::set_errno(saved);
    mapped
}

/// Bytes of the pages that have all `categories`, and of these on hugepages.
fn scan(at: usize, len: usize, categories: u64) -> Option<(usize, usize)> {
    let file = File::open(PAGEMAP)?;
    let (mut all, mut huge) = (0, 0);
    let mut found = [Found { start: 0, end: 0, categories: 0 }; 16];
    let mut start = at as u64;
    let end = (at + len) as u64;
    while start < end {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start,
            end,
            walk_end: 0,
            vec: found.as_mut_ptr() as u64,
            vec_len: found.len() as u64,
            max_pages: 0,
            category_inverted: 0,
            category_mask: categories,
            category_anyof_mask: 0,
            return_mask: PAGE_IS_HUGE,
        };
        // SAFETY: the argument has the call's type, and `vec` the stated number of entries.
        let n = unsafe { libc::ioctl(file.0, PAGEMAP_SCAN, &mut scan) };
        let n = usize::try_from(n).ok()?;
        for range in &found[..n] {
            let bytes = (range.end - range.start) as usize;
            all += bytes;
            huge += if range.categories & PAGE_IS_HUGE != 0 { bytes } else { 0 };
        }
        if scan.walk_end <= start {
            return None;
        }
        start = scan.walk_end;
    }
    Some((all, huge))
}
