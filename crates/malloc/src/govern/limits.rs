//! Limits on the memory of the process, and what happens when they are reached.
//!
//! **What.** Above the *soft limit* free memory goes back to the system, as far as needed; if that is not enough, threads
//! give up what their caches hold; then the program is called back. The *hard limit* refuses what would pass it, after free
//! memory has gone back (the heap does that itself). The control group's limit gives the soft limit if the program sets
//! none. When the whole system is short of memory (its *pressure*), free memory goes back, too.
//!
//! **Units.** Bytes in use: what the heap has got from the system and not given back, its metadata, and huge objects with
//! all their bytes, touched or not.
//!
//! **Threads.** One thread at a time looks; others go on. A thread that is asked to gives its cache up in its next slow
//! request.
//!
//! **Failure.** Limits that cannot be read are none. Nothing here ends the process.
//!
//! **Cost.** Two compares in each use of the page heap. A program that stays above its soft limit is looked at once a second
//! and whenever it has grown by a part of the limit, not in each request.
//!
//! **Not here.** The heap ([`Limited`]), the system ([`System`]) and the time are arguments, so that tests run under virtual
//! time. `govern.rs` has the process's.

mod callback;
mod changes;
mod options;
mod setting;

use crate::govern::background;
use crate::observe::segment::{self, Segment};
use callback::Callback;
use changes::Changes;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};
use craton_base::{Clock, PAGE_SHIFT, Pages};
use craton_os::{cgroup, process};
use setting::{Kept, part};

pub use callback::LimitCallback;
use craton_heap::gate::Gate;
pub(crate) use setting::{Setting, size};

/// The part of a control group's limit that is the soft limit by default, in percent: the rest is for code, stacks and what
/// else the process has.
const SOFT_PERCENT: u8 = 90;
/// Memory in use from which on the control group is read: a small program does without.
const FIRST_LOOK: u64 = background::FROM.bytes().0 as u64;
/// No limit is less: the heap's own tables take a third of that before the first object.
const LEAST: u64 = 1 << 20;
/// Between two readings of the control group.
const READ_EVERY_NS: u64 = 10_000_000_000;
/// Between two readings of the pressure, and free pages from which on it is read.
const PRESSURE_EVERY_NS: u64 = 5_000_000_000;
const PRESSURE_FROM: Pages = Pages(128);
/// Free pages for which an idle process is woken each ten seconds to read the pressure: 16 MiB.
const PRESSURE_WAKES_FROM: Pages = Pages(2048);
/// Bytes that go back at most when the pressure is high.
const PRESSURE_BYTES: u64 = 256 << 20;
/// The default of the option `pressure`: the share of the last ten seconds that some task waited for memory, in percent.
const PRESSURE_PERCENT: u32 = 10;
/// `memory_limit_source` of the statistics where the option says what the limit is.
const BY_OPTION: u64 = 4;

/// The heap, as the limits see it.
pub(crate) trait Limited {
    /// The watermarks that the heap compares its use with.
    fn gate(&self) -> &Gate;
    /// Bytes in use.
    fn used(&self) -> u64;
    /// Releases free memory until at most so many bytes are in use: the bytes then in use, and the pages that went.
    fn relieve(&self, most: u64) -> (u64, u64);
    /// Free pages that could go back.
    fn releasable(&self) -> Pages;
    /// Empties caches in front of the heap.
    fn shrink(&self, whose: Whose);
    /// The limits were looked at: earlier wishes that they be are met.
    fn looked(&self);
}

/// Whose caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// Those that the calling thread may empty.
    Own,
    /// Those of other threads, each in its thread's next slow request.
    Others,
}

/// The system, as the limits ask it.
pub(crate) trait System {
    /// Whether the process may still make system calls beyond those for memory and locks.
    fn may_ask(&self) -> bool;
    /// What the control groups allow.
    fn group(&self) -> cgroup::Limits;
    /// Hundredths of a percent of time that tasks waited for memory; `None` where the system does not say.
    fn pressure(&self) -> Option<u32>;
    /// Bytes of the machine's memory; 0 if unknown.
    fn memory(&self) -> u64;
    /// Whether the calling thread's stack has room for reading files.
    fn is_stack_deep(&self) -> bool;
    /// Sets the processors that the control group allows; returns how many the process may use.
    fn set_quota(&self, thousandths: Option<u64>) -> usize;
}

/// The limits of a process.
pub(crate) struct Limits<C, S> {
    clock: C,
    system: S,
    segment: &'static Segment,
    /// The options `soft_limit`, `hard_limit`, `memory_limit` and `pressure`.
    soft: Kept,
    hard: Kept,
    memory: Kept,
    pressure: AtomicU32,
    /// Of these options, and of the control group's limit.
    changes: Changes,
    /// The control group's limit as last read, 0 for none; where it is from, as in the statistics; whether it ever was
    /// read, and when it is to be read again.
    group: AtomicU64,
    source: AtomicU64,
    read: AtomicBool,
    next_read_ns: AtomicU64,
    next_pressure_ns: AtomicU64,
    /// The system says nothing about pressure: it is not asked again.
    no_pressure: AtomicBool,
    /// A thread looks at the limits.
    at_work: AtomicBool,
    pub(crate) callback: Callback,
}

impl<C: Clock, S: System> Limits<C, S> {
    /// None, until options or the control group say so. Numbers for the statistics go to `segment`.
    pub(crate) const fn new(clock: C, system: S, segment: &'static Segment) -> Self {
        Self {
            clock,
            system,
            segment,
            soft: Kept::auto(),
            hard: Kept::auto(),
            memory: Kept::auto(),
            pressure: AtomicU32::new(PRESSURE_PERCENT),
            changes: Changes::new(),
            group: AtomicU64::new(0),
            source: AtomicU64::new(0),
            read: AtomicBool::new(false),
            next_read_ns: AtomicU64::new(0),
            next_pressure_ns: AtomicU64::new(0),
            no_pressure: AtomicBool::new(false),
            at_work: AtomicBool::new(false),
            callback: Callback::new(),
        }
    }

    /// Puts the limits that follow from the options and the control group in force.
    pub(crate) fn apply(&self, heap: &impl Limited) {
        self.changes.until_settled(|| self.apply_once(heap.gate()));
    }

    fn apply_once(&self, gate: &Gate) {
        let memory = self.memory_limit();
        let soft = match self.soft.get() {
            Setting::Auto => memory.map(|bytes| part(bytes, SOFT_PERCENT)),
            setting => self.amount(setting),
        };
        let hard = self.amount(self.hard.get());
        gate.set(soft, hard);
        let follows_group = self.memory.get() == Setting::Auto;
        if follows_group && !self.read.load(Relaxed) {
            gate.look_from(FIRST_LOOK.min(gate.high()));
        }
        let source = if follows_group { self.source.load(Relaxed) } else { BY_OPTION };
        self.segment.memory_limit_bytes.store(memory.unwrap_or(0), Relaxed);
        self.segment.memory_limit_source.store(source, Relaxed);
        self.segment.soft_limit_bytes.store(soft.unwrap_or(0), Relaxed);
        self.segment.hard_limit_bytes.store(hard.unwrap_or(0), Relaxed);
    }

    /// What soft limits follow and percentages are of, if anything limits the process.
    fn memory_limit(&self) -> Option<u64> {
        self.memory.get().bytes(|| None, Some(self.group.load(Relaxed)).filter(|bytes| *bytes > 0))
    }

    /// The bytes that a setting comes to, if it says how many.
    fn amount(&self, setting: Setting) -> Option<u64> {
        let whole = || self.memory_limit().or_else(|| Some(self.system.memory()).filter(|bytes| *bytes > 0));
        setting.bytes(whole, None)
    }

    /// Looks at the limits because a watermark was passed. For a thread of the program that holds no lock; keeps `errno`.
    #[cold]
    pub(crate) fn act(&self, heap: &impl Limited) {
        let saved = process::errno();
        if let Some((soft, used)) = self.look(true, heap) {
            self.callback.call(soft, used);
        }
        process::set_errno(saved);
    }

    /// Reads the control group's limit if that was never done, and keeps the soft limit. If it could not be kept: the limit
    /// and the bytes in use.
    fn look(&self, in_program: bool, heap: &impl Limited) -> Option<(u64, u64)> {
        // ORDERING: Acquire pairs with the Release below.
        if self.at_work.swap(true, Ordering::Acquire) {
            return None;
        }
        // On a small stack the reading is left to the library's thread, or to the main one.
        if !self.read.load(Relaxed) && self.system.is_stack_deep() {
            self.read_group();
            self.apply(heap);
        }
        if !self.read.load(Relaxed) {
            heap.gate().look_from(heap.used() + FIRST_LOOK);
        }
        let passed = heap.gate().soft().and_then(|soft| self.keep_soft(soft, in_program, heap));
        // Our own steps have seen the limit passed, too.
        heap.looked();
        // ORDERING: Release pairs with the Acquire above.
        self.at_work.store(false, Ordering::Release);
        passed
    }

    fn keep_soft(&self, soft: u64, in_program: bool, heap: &impl Limited) -> Option<(u64, u64)> {
        let gate = heap.gate();
        if heap.used() <= soft {
            gate.rearm();
            return None;
        }
        segment::add(&self.segment.soft_limit_passed, in_program.into());
        let (mut used, _) = heap.relieve(gate.target());
        if used > soft {
            heap.shrink(Whose::Others);
            if in_program {
                heap.shrink(Whose::Own);
                used = heap.relieve(gate.target()).0;
            }
        }
        if used <= soft {
            gate.rearm();
            return None;
        }
        gate.rearm_above(used);
        Some((soft, used))
    }

    /// A second's work: limits may have changed, memory may be short, and what could not be released before may be now.
    /// Returns the pages that went back. Without a `deep` stack no files are read.
    pub(crate) fn round(&self, deep: bool, heap: &impl Limited) -> u64 {
        let saved = process::errno();
        let now = self.clock.now_ns();
        if deep && now >= self.next_read_ns.load(Relaxed) {
            self.read_group();
            let before = heap.gate().hard();
            self.apply(heap);
            self.report_hard(before, heap);
        }
        let before = heap.used();
        let mut kept = 0;
        if heap.gate().soft().is_some_and(|soft| before > soft) {
            self.look(false, heap);
            // The program itself looks at its next slow request, gives up its cache, and is called back.
            heap.gate().rearm();
            kept = before.saturating_sub(heap.used()) >> PAGE_SHIFT;
        }
        let relieved = if deep { self.relieve_pressure(now, heap) } else { 0 };
        process::set_errno(saved);
        kept + relieved
    }

    /// Reads the control group's limits, unless the process may no longer ask.
    fn read_group(&self) {
        self.next_read_ns.store(self.clock.now_ns() + READ_EVERY_NS, Relaxed);
        if !self.system.may_ask() {
            return;
        }
        let limits = self.system.group();
        if limits.is_partial && self.read.load(Relaxed) {
            return;
        }
        self.segment.usable_cpus.store(self.system.set_quota(limits.cpu_thousandths) as u64, Relaxed);
        self.group.store(limits.memory_bytes.unwrap_or(0), Relaxed);
        let source = match limits.memory_source {
            cgroup::Source::Nowhere => 1,
            cgroup::Source::V1 => 2,
            cgroup::Source::V2 => 3,
        };
        self.source.store(source, Relaxed);
        self.read.store(true, Relaxed);
        self.changes.note();
    }

    /// Releases free memory if others wait for memory; returns how many pages.
    fn relieve_pressure(&self, now: u64, heap: &impl Limited) -> u64 {
        let threshold = self.pressure.load(Relaxed) * 100;
        if threshold == 0
            || now < self.next_pressure_ns.load(Relaxed)
            || self.no_pressure.load(Relaxed)
            || !self.system.may_ask()
            || heap.releasable() < PRESSURE_FROM
        {
            return 0;
        }
        self.next_pressure_ns.store(now + PRESSURE_EVERY_NS, Relaxed);
        match self.system.pressure() {
            None => self.no_pressure.store(true, Relaxed),
            Some(pressure) if pressure >= threshold => {
                segment::add(&self.segment.pressure_releases, 1);
                return heap.relieve(heap.used().saturating_sub(PRESSURE_BYTES)).1;
            }
            Some(_) => {}
        }
        0
    }

    /// Whether pressure could release so much that an idle process is to wake for it.
    pub(crate) fn heeds_pressure(&self, heap: &impl Limited) -> bool {
        self.pressure.load(Relaxed) > 0 && !self.no_pressure.load(Relaxed) && heap.releasable() >= PRESSURE_WAKES_FROM
    }

    /// After a refusal: empties the calling thread's caches under a hard limit, so that another try is worth it; others
    /// give theirs up later.
    #[cold]
    pub(crate) fn make_room(&self, heap: &impl Limited) -> bool {
        if heap.gate().hard().is_none() {
            return false;
        }
        heap.shrink(Whose::Others);
        heap.shrink(Whose::Own);
        true
    }

    /// Counts a request that the hard limit refused.
    #[cold]
    pub(crate) fn count_refusal(&self) {
        segment::add(&self.segment.hard_limit_refused, 1);
    }

    /// In a forked child no other thread looks any more.
    pub(crate) fn forked(&self) {
        self.at_work.store(false, Relaxed);
        self.callback.forked();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
