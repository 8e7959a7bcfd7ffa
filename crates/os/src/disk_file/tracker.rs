//! Which pages of a private file mapping the process has written to.
//!
//! **From.** userfaultfd(2): Linux 6.7 records writes by asynchronous write protection. Else all
//! pages ever written to are listed, and the caller compares checks.
//! **Cost.** A scan of 256 MiB: 0.1 to 0.3 ms. The first write to a protected page: 0.7 µs.
//! **Unsafe.** Calls `userfaultfd` and its `ioctl`s on the heap's mapping.

use crate::call;
use crate::pagemap::Pagemap;
use crate::persistent_file::FileError;
use crate::process::errno;
use crate::small_file::{File, PathText};
use core::ops::Range;

pub(super) struct Tracker {
    /// -1: not recording.
    uffd: i32,
    scan: Option<Pagemap>,
    pagemap: File,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tracking {
    Recorded,
    Compared,
}

const UFFD_USER_MODE_ONLY: i32 = 1;
const UFFD_API: u64 = 0xaa;
const FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const REGISTER_WP: u64 = 1 << 1;
/// `_IOWR(0xaa, 0x3f, struct uffdio_api)` and `_IOWR(0xaa, 0x00, struct uffdio_register)`.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;

impl Tracker {
    pub(super) fn new(range: Range<usize>, tracking: Tracking) -> Result<Self, FileError> {
        let pagemap = PathText::new(b"/proc/self/pagemap").and_then(|path| File::open(&path).ok());
        let pagemap = pagemap.ok_or_else(|| FileError::of("pagemap", errno()))?;
        let mut tracker = Self { uffd: -1, scan: Pagemap::open(), pagemap };
        if tracking == Tracking::Recorded && tracker.scan.is_some() {
            tracker.uffd = record_writes(&range).unwrap_or(-1);
        }
        // The system may know only one of the calls.
        let first = range.start..range.start + crate::process::page_size();
        if tracker.uffd >= 0 && tracker.drain_written(first, |_| {}).is_none() {
            tracker.stop();
        }
        Ok(tracker)
    }

    pub(super) fn tracking(&self) -> Tracking {
        if self.uffd >= 0 { Tracking::Recorded } else { Tracking::Compared }
    }

    fn stop(&mut self) {
        if self.uffd >= 0 {
            // SAFETY: ours.
            unsafe { call::close(self.uffd) };
        }
        self.uffd = -1;
    }

    /// `false`: pages may be lost.
    pub(super) fn begin(&self, range: Range<usize>) -> bool {
        self.uffd < 0 || self.drain_written(range, |_| {}).is_some()
    }

    /// At the first call, absent ones too. `None`: some may be lost; compare all private ones.
    pub(super) fn drain_written(&self, range: Range<usize>, f: impl FnMut(Range<usize>)) -> Option<()> {
        self.scan.as_ref()?.drain_written(range, f)
    }

    pub(super) fn unwritten(&self, range: Range<usize>, f: impl FnMut(Range<usize>)) -> Option<()> {
        self.scan.as_ref()?.unwritten(range, f)
    }

    pub(super) fn private(&self, range: Range<usize>, mut f: impl FnMut(Range<usize>)) -> Result<(), FileError> {
        if let Some(scan) = &self.scan
            && scan.private(range.clone(), &mut f).is_some()
        {
            return Ok(());
        }
        let page = crate::process::page_size();
        let mut bytes = [0; 4096];
        for group in range.clone().step_by(page * bytes.len() / 8) {
            let pages = ((range.end - group) / page).min(bytes.len() / 8);
            let entries = &mut bytes[..8 * pages];
            let read = self.pagemap.read_at((group / page * 8) as u64, entries);
            read.ok_or(FileError::System("pagemap", errno()))?;
            for (at, entry) in (group..).step_by(page).zip(entries.as_chunks::<8>().0) {
                let entry = u64::from_le_bytes(*entry);
                if entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0 {
                    f(at..at + page);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.stop();
    }
}

fn record_writes(range: &Range<usize>) -> Option<i32> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY;
    // SAFETY: touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as i32;
    if fd < 0 {
        return None;
    }
    let mut api = [UFFD_API, FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC, 0];
    let mut register = [range.start as u64, range.len() as u64, REGISTER_WP, 0];
    // SAFETY: both structures have these words; the kernel answers the mapping's faults.
    let is_recording = unsafe {
        libc::ioctl(fd, UFFDIO_API, api.as_mut_ptr()) == 0
            && libc::ioctl(fd, UFFDIO_REGISTER, register.as_mut_ptr()) == 0
    };
    if !is_recording {
        // SAFETY: ours.
        unsafe { call::close(fd) };
    }
    is_recording.then_some(fd)
}

#[cfg(all(test, not(loom)))]
mod tests;
