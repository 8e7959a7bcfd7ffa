//! The debugging kit: checks of what an unmodified program does with its objects.
//!
//! Under `debug=CHECKS[:TARGETS]` objects become *buffers* with a record; under `guard_sample=N`
//! one object in N.
//!
//! | check | what it does |
//! |---|---|
//! | `audit` | records who allocated and freed a buffer |
//! | `redzone` | puts bytes around it that the program may not write |
//! | `poison` | fills it with patterns while it is new or free |
//! | `guard` | puts it on separate pages between closed ones |
//! | `unmap` | closes those pages when it is freed |
//! | `verify` | checks every address that is freed |
//! | `leak` | at the exit, searches for unreachable buffers |
//! | `mismatch` | compares the function that frees with the one that allocated |
//!
//! **From.** Bonwick94 §6; GWP-ASan (arXiv 2311.09394). Unlike Bonwick's it can be turned on in a
//! running program, for one class too.
//!
//! ```text
//!  pointer ─► table (record) ─► area: object of the heap, slot of the arena, or mapping (guard)
//!              │    └─► stacks (who, from where) ─► log (setting)
//!              └─ freed ─► quarantine, or the arena's ring ─► memory serves again
//! ```
//! **Invariants.** *D1* a buffer's pointer is never the start of an object of the heap, so that no
//! fast path takes it; *D2* a record is `Live` from before the pointer goes out until it is freed;
//! *D3* lists of a checked class are empty and have no room, so that its requests come here.
//!
//! **Threads.** Locks: quarantine, pages, records; under a records' lock none is taken.
//!
//! Without memory a buffer has fewer checks, or the request is refused.
//!
//! **Unsafe.** Releases locks that a fork took.
#![no_std]

mod area;
pub mod audit;
mod audited;
mod buffers;
pub mod family;
mod fault;
#[cfg(all(test, not(loom)))]
#[allow(dead_code)]
#[path = "../../heap/src/tests/ground.rs"]
mod ground;
mod guard;
mod leak;
mod leaks;
mod out;
mod pattern;
mod quarantine;
mod report;
mod sample;
mod setting;
mod shape;
mod stacks;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;
mod watch;

#[cfg(test)]
extern crate std;

pub use audited::{Audited, Sum};
pub use buffers::Target;
pub use report::{Finding, Mistake};
pub use sample::{AUTO, geometric, uniform};
pub use setting::{Wrong, is_check};
pub use shape::SHAPE;
pub use table::Buffer;

use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use craton_objects::caches::NAME_MAX;
use craton_os::OutFile;
use guard::Guards;
use quarantine::Quarantine;
use report::Reports;
use sample::Sample;
use setting::Setting;
use stacks::Stacks;
use table::{State, Table};
use watch::Watches;

pub trait Process: 'static {
    fn thread_id() -> u32 {
        craton_os::process::thread_id()
    }

    /// Whether the C library has loaded what stacks need.
    fn may_unwind() -> bool {
        true
    }

    fn count_served() {}

    fn cache_name(id: u16) -> Option<[u8; NAME_MAX + 1]> {
        let _ = id;
        None
    }

    /// The file of reports of a process with this number, if it has one. Perhaps in a copy of the
    /// process, or in a signal handler.
    fn open_reports(pid: u32) -> Option<OutFile> {
        let _ = pid;
        None
    }
}

/// Zeros at first: a static takes no room in the file.
pub struct Kit<P: Process> {
    in_use: AtomicBool,
    /// A forked copy of a process that had buffers.
    is_copy: AtomicBool,
    setting: Setting,
    sample: Sample,
    table: Table,
    stacks: Stacks,
    quarantine: Quarantine,
    guards: Guards,
    watches: Watches,
    reports: Reports,
    secret: AtomicU64,
    process: PhantomData<fn() -> P>,
}

craton_tables::count_struct! { kit,
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Counts {}
}

impl<P: Process> Kit<P> {
    pub const fn new() -> Self {
        Self {
            in_use: AtomicBool::new(false),
            is_copy: AtomicBool::new(false),
            secret: AtomicU64::new(0),
            setting: Setting::new(),
            sample: Sample::new(),
            table: Table::new(),
            stacks: Stacks::new(),
            quarantine: Quarantine::new(),
            guards: Guards::new(),
            watches: Watches::new(),
            reports: Reports::new(),
            process: PhantomData,
        }
    }

    #[inline(always)]
    pub fn in_use(&self) -> bool {
        self.in_use.load(Relaxed)
    }

    #[inline]
    fn secret(&self) -> u64 {
        self.secret.load(Relaxed)
    }

    /// Whether a slow request may become a buffer.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.setting.ever_checks() || self.sample.is_busy()
    }

    #[inline]
    pub fn sees_large(&self) -> bool {
        self.setting.ever_checks() || self.sample.is_asked()
    }

    /// `counts_buffers`: walks all records.
    pub fn counts(&self, counts_buffers: bool) -> Counts {
        let mut counts =
            Counts { samples: self.sample.taken(), targets_unmet: self.setting.unmet(), ..Default::default() };
        if let Some(log) = self.setting.log() {
            (counts.transactions, counts.transactions_kept) = (log.count(), log.kept());
        }
        if counts_buffers && self.in_use() {
            self.table.each(|b| match b.state {
                State::Live => {
                    (counts.buffers, counts.buffer_bytes) = (counts.buffers + 1, counts.buffer_bytes + b.size as u64);
                }
                _ => counts.waiting += 1,
            });
        }
        counts
    }

    /// Also searches for leaks. `made_caches`: there were caches.
    pub fn at_exit(&self, made_caches: bool) -> Result<(), Finding> {
        if self.is_copy.load(Relaxed) {
            self.check_own("exit")?;
        } else {
            self.check_all("exit")?;
        }
        self.leaks_at_exit();
        if made_caches {
            self.setting.print_unmet();
        }
        Ok(())
    }

    /// The kit's mappings, which are no roots.
    fn own_ranges(&self, each: &mut impl FnMut(usize, usize)) {
        self.table.ranges(each);
        for (at, bytes) in [self.quarantine.range(), self.guards.range(), self.stacks.range(), self.setting.log_range()]
        {
            each(at, bytes);
        }
    }

    pub fn lock_for_fork(&self, nested: bool) {
        self.quarantine.lock_for_fork(nested);
        self.guards.lock_for_fork(nested);
        self.table.lock_for_fork(nested);
        self.setting.lock_for_fork(nested);
    }

    /// In a forked child.
    /// # Safety
    /// All locks are held for a fork.
    pub unsafe fn forked(&self) {
        if self.in_use() {
            self.is_copy.store(true, Relaxed);
            self.watches.forget();
            // SAFETY: by the contract.
            unsafe { self.quarantine.forked() };
        }
    }

    /// # Safety
    /// As [`craton_os::Mutex::release_after_fork`].
    pub unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe {
            self.setting.release_after_fork();
            self.table.release_after_fork();
            self.guards.release_after_fork();
            self.quarantine.release_after_fork();
        }
    }
}
