//! The segment's page as a file in the folder of the option `stats_dir` (docs/live.md), and beside
//! it copies of the heap profile.
//!
//! **State.** The file's page lies under [`SEGMENT`](crate::statics::SEGMENT). In its name,
//! `PID-SINCE.stats`, `SINCE` keeps apart the images of an `exec` and the processes of several
//! containers.
//! ```text
//! no folder ──set, before main──► folder ──begin──► shared ──exit──► file removed
//!                                   ▲                 │
//!                                   └──fork, in child─┘   shared again at its first slow request
//! ```
//!
//! **The profile** is copied at a sample: when live bytes have doubled, each second in which they
//! change by an eighth, and each minute. A comparison and exchange decides which of two samples
//! writes.
//!
//! **Unsafe.** Maps over the segment's page; the folder's text is plain memory.

use crate::observe::segment::{EXITED, Segment};
use crate::observe::text::Text;
use crate::observe::trace::PATH_MAX;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::{Line, file_map, precise_ns, process, shared_page, thp};
use craton_tables::options::RUN_FOLDER;

const NAME_MOST: usize = 48;
const PATH_MOST: usize = PATH_MAX + NAME_MOST;

const STEP: u64 = 256 << 10;

/// Live bytes that a first copy of the profile is worth.
const PROFILED: u64 = 4 << 20;
const SECOND_NS: u64 = 1_000_000_000;

pub(crate) struct Shared {
    folder: UnsafeCell<[u8; PATH_MAX]>,
    len: AtomicUsize,
    /// The process has started: the folder stays.
    closed: AtomicBool,
    is_shared: AtomicBool,
    /// When the classes are copied again; all ones for never.
    next_bytes: AtomicU64,
    /// Of the profile's last copy: live bytes, 0 without one, and when it was due.
    profiled_bytes: AtomicU64,
    profiled_ns: AtomicU64,
}

// SAFETY: the only thread writes the folder, before `len`; readers load `len` first.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) const fn new() -> Self {
        Self {
            folder: UnsafeCell::new([0; PATH_MAX]),
            len: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            next_bytes: AtomicU64::new(u64::MAX),
            profiled_bytes: AtomicU64::new(0),
            profiled_ns: AtomicU64::new(0),
        }
    }

    fn folder(&self) -> &[u8] {
        // ORDERING: pairs with the Release in `set`.
        let len = self.len.load(Ordering::Acquire);
        // SAFETY: not written after `len`.
        unsafe { &(&*self.folder.get())[..len] }
    }

    /// `false` for another folder once the process has started.
    pub(crate) fn set(&self, folder: &[u8]) -> bool {
        if folder == self.folder() {
            return true;
        }
        if self.closed.load(Relaxed) || folder.len() >= PATH_MAX || folder.contains(&0) {
            return false;
        }
        // SAFETY: the process starts: no other thread reads it.
        unsafe { (&mut *self.folder.get())[..folder.len()].copy_from_slice(folder) };
        // ORDERING: pairs with the Acquire in `folder`.
        self.len.store(folder.len(), Ordering::Release);
        true
    }

    pub(crate) fn show(&self, into: &mut Text<'_>) {
        into.bytes(self.folder());
    }

    pub(crate) fn start(&self, segment: &'static Segment) {
        self.closed.store(true, Relaxed);
        describe(segment);
        if self.folder().is_empty() {
            return;
        }
        if let Err(problem) = self.share(segment)
            && !is_of_ended_run(self.folder(), problem)
        {
            let line = Line::new().text("craton: stats_dir: cannot create a file in ").bytes(self.folder());
            match file_map::reason(problem) {
                Some(why) => line.text(": ").text(why),
                None => line.text(": error ").number(problem as u64),
            }
            .text("; statistics go with a process that is killed")
            .print();
        }
    }

    pub(crate) fn is_shared_or_begins(&self, segment: &'static Segment) -> bool {
        if self.is_shared() {
            return true;
        }
        self.next_bytes.store(u64::MAX, Relaxed);
        if self.folder().is_empty() || !thp::may_query() {
            return false;
        }
        describe(segment);
        self.share(segment).is_ok()
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared.load(Relaxed)
    }

    fn share(&self, segment: &'static Segment) -> Result<(), i32> {
        let path = self.path(segment, ".stats");
        // SAFETY: a static page of atomics.
        unsafe { shared_page::share(ptr::from_ref(segment).cast_mut().cast(), &path)? };
        self.is_shared.store(true, Relaxed);
        self.next_bytes.store(0, Relaxed);
        Ok(())
    }

    /// Of the profile's copy.
    pub(crate) fn profile_path(&self, segment: &Segment) -> [u8; PATH_MOST] {
        self.path(segment, ".profile")
    }

    fn path(&self, segment: &Segment, end: &str) -> [u8; PATH_MOST] {
        let mut path = [0; PATH_MOST];
        let mut text = Text::new(&mut path);
        text.bytes(self.folder()).text("/").number(segment.pid.load(Relaxed)).text("-");
        let since = segment.rest.since_ns.load(Relaxed);
        let digits = (64 - since.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            text.bytes(&[b"0123456789abcdef"[(since >> (4 * digit)) as usize % 16]]);
        }
        text.text(end);
        text.end();
        path
    }

    #[inline(always)]
    pub(crate) fn wants_copy(&self, in_use_bytes: u64) -> bool {
        in_use_bytes >= self.next_bytes.load(Relaxed)
    }

    pub(crate) fn copied(&self, in_use_bytes: u64) {
        if !self.is_shared() {
            return;
        }
        self.next_bytes.store(in_use_bytes + in_use_bytes / 16 + STEP, Relaxed);
    }

    /// Whether the caller is to copy the profile. `live`: bytes by all samples.
    #[inline]
    pub(crate) fn wants_profile(&self, now_ns: u64, live: impl FnOnce() -> u64) -> bool {
        if !self.is_shared() {
            return false;
        }
        let (live, had) = (live(), self.profiled_bytes.load(Relaxed));
        let then_ns = self.profiled_ns.load(Relaxed);
        let age_ns = now_ns.saturating_sub(then_ns);
        let is_due = live >= 2 * had + PROFILED
            || had > 0 && age_ns >= SECOND_NS && live.abs_diff(had) >= had / 8
            || had > 0 && age_ns >= 60 * SECOND_NS;
        if !is_due || self.profiled_ns.compare_exchange(then_ns, now_ns, Relaxed, Relaxed).is_err() {
            return false;
        }
        self.profiled_bytes.store(live.max(1), Relaxed);
        true
    }

    /// `calls`: the child's first slow request has something to publish without a folder, too.
    pub(crate) fn forked(&self, segment: &'static Segment, calls: bool) {
        if self.is_shared.swap(false, Relaxed) {
            // SAFETY: shared, and this is the only thread.
            unsafe { shared_page::unshare(ptr::from_ref(segment).cast_mut().cast()) };
        }
        let next = if self.folder().is_empty() && !calls { u64::MAX } else { 0 };
        self.next_bytes.store(next, Relaxed);
        self.profiled_bytes.store(0, Relaxed);
    }

    /// A child made past the C library leaves its parent's file.
    pub(crate) fn end(&self, segment: &'static Segment) {
        if self.is_shared.load(Relaxed) && segment.pid.load(Relaxed) == u64::from(process::id()) {
            segment.rest.state.store(EXITED, Relaxed);
            shared_page::remove(&self.path(segment, ".stats"));
            if self.profiled_bytes.load(Relaxed) > 0 {
                shared_page::remove(&self.profile_path(segment));
            }
        }
    }
}

/// Whether `craton run` made the folder in the path and has ended since, as it does before a daemon
/// that it started; it has reported then which processes still ran.
pub(crate) fn is_of_ended_run(path: &[u8], problem: i32) -> bool {
    let mut folders = path.split(|byte| *byte == b'/');
    problem == file_map::NO_FOLDER && folders.any(|folder| folder.starts_with(RUN_FOLDER.as_bytes()))
}

fn describe(segment: &Segment) {
    let mut exe = [0; 16];
    let len = process::name(&mut exe);
    exe[len..].fill(0);
    segment.rest.begin(exe, precise_ns());
}

#[cfg(all(test, not(loom)))]
mod tests;
