//! Limits on the process's memory.
//!
//! **What.** Above the *soft limit* free memory goes back to the system; if that is too little,
//! threads flush their caches, then the callback runs. The heap refuses requests above the *hard
//! limit* once free memory has gone back. Bytes in use: memory from the system, metadata, huge
//! objects, touched or not.
//!
//! **Cost.** Two compares in each use of the page heap; above the soft limit a check once a second
//! and after each step of growth.

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
pub(crate) use setting::Setting;

/// The rest of the control group's limit is for code, stacks and the like.
const SOFT_PERCENT: u8 = 90;
const FIRST_LOOK: u64 = background::FROM.bytes().0 as u64;
const READ_EVERY_NS: u64 = 10_000_000_000;
const PRESSURE_EVERY_NS: u64 = 5_000_000_000;
const PRESSURE_FROM: Pages = Pages(128);
/// An idle process wakes for these each 10 s.
const PRESSURE_WAKES_FROM: Pages = Pages(2048);
const PRESSURE_BYTES: u64 = 256 << 20;
const PRESSURE_PERCENT: u32 = 10;
const BY_OPTION: u64 = 4;

pub(crate) trait Limited {
    fn gate(&self) -> &Gate;
    fn used(&self) -> u64;
    /// Returns the bytes in use, and the pages released.
    fn relieve(&self, most: u64) -> (u64, u64);
    fn releasable(&self) -> Pages;
    fn shrink(&self, whose: Whose);
    fn passed(&self, _soft: u64, _used: u64) {}
    /// Clears requests for a check.
    fn looked(&self);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    Own,
    /// Each in its thread's next slow path.
    Others,
}

pub(crate) trait System {
    /// System calls beyond memory and locks.
    fn may_query(&self) -> bool;
    fn group(&self) -> cgroup::Limits;
    /// In 1/100 percent of time; `None` if the system reports none.
    fn pressure(&self) -> Option<u32>;
    /// Physical bytes; 0 if unknown.
    fn memory(&self) -> u64;
    fn is_stack_deep(&self) -> bool;
    /// Returns the CPUs that the process may use.
    fn set_quota(&self, thousandths: Option<u64>) -> usize;
}

pub(crate) struct Limits<C, S> {
    clock: C,
    system: S,
    segment: &'static Segment,
    soft: Kept,
    hard: Kept,
    memory: Kept,
    pressure: AtomicU32,
    changes: Changes,
    /// 0: none.
    group: AtomicU64,
    source: AtomicU64,
    read: AtomicBool,
    next_read_ns: AtomicU64,
    next_pressure_ns: AtomicU64,
    /// The system reports none.
    no_pressure: AtomicBool,
    at_work: AtomicBool,
    /// For the soft and the hard limit's line.
    pub(crate) next_lines_ns: [AtomicU64; 2],
    pub(crate) callback: Callback,
}

impl<C: Clock, S: System> Limits<C, S> {
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
            next_lines_ns: [const { AtomicU64::new(0) }; 2],
            callback: Callback::new(),
        }
    }

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

    /// Soft limits follow it; percentages refer to it.
    fn memory_limit(&self) -> Option<u64> {
        self.memory.get().bytes(|| None, Some(self.group.load(Relaxed)).filter(|bytes| *bytes > 0))
    }

    fn amount(&self, setting: Setting) -> Option<u64> {
        let whole = || self.memory_limit().or_else(|| Some(self.system.memory()).filter(|bytes| *bytes > 0));
        setting.bytes(whole, None)
    }

    /// Without locks; keeps `errno`.
    #[cold]
    pub(crate) fn act(&self, heap: &impl Limited) {
        let saved = process::errno();
        if let Some((soft, used)) = self.check(true, heap) {
            self.callback.call(soft, used);
        }
        process::set_errno(saved);
    }

    /// Returns a soft limit that it could not keep, and the use.
    fn check(&self, in_program: bool, heap: &impl Limited) -> Option<(u64, u64)> {
        // ORDERING: pairs with the Release below.
        if self.at_work.swap(true, Ordering::Acquire) {
            return None;
        }
        // On a small stack the library's or main thread reads it later.
        if !self.read.load(Relaxed) && self.system.is_stack_deep() {
            self.read_group();
            self.apply(heap);
        }
        if !self.read.load(Relaxed) {
            heap.gate().look_from(heap.used() + FIRST_LOOK);
        }
        let passed = heap.gate().soft().and_then(|soft| self.keep_soft(soft, in_program, heap));
        // Our own steps passed the limit, too.
        heap.looked();
        // ORDERING: pairs with the Acquire above.
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
        heap.passed(soft, used);
        Some((soft, used))
    }

    /// Returns the pages released. Reads files only on a `deep` stack.
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
            self.check(false, heap);
            // The next slow request checks, flushes and calls the callback.
            heap.gate().rearm();
            kept = before.saturating_sub(heap.used()) >> PAGE_SHIFT;
        }
        let relieved = if deep { self.relieve_pressure(now, heap) } else { 0 };
        process::set_errno(saved);
        kept + relieved
    }

    fn read_group(&self) {
        self.next_read_ns.store(self.clock.now_ns() + READ_EVERY_NS, Relaxed);
        if !self.system.may_query() {
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
        self.changes.record();
    }

    fn relieve_pressure(&self, now: u64, heap: &impl Limited) -> u64 {
        let threshold = self.pressure.load(Relaxed) * 100;
        if threshold == 0
            || now < self.next_pressure_ns.load(Relaxed)
            || self.no_pressure.load(Relaxed)
            || !self.system.may_query()
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

    pub(crate) fn reads_pressure(&self, heap: &impl Limited) -> bool {
        self.pressure.load(Relaxed) > 0 && !self.no_pressure.load(Relaxed) && heap.releasable() >= PRESSURE_WAKES_FROM
    }

    #[cold]
    pub(crate) fn make_room(&self, heap: &impl Limited) -> bool {
        if heap.gate().hard().is_none() {
            return false;
        }
        heap.shrink(Whose::Others);
        heap.shrink(Whose::Own);
        true
    }

    #[cold]
    pub(crate) fn count_refusal(&self) {
        segment::add(&self.segment.hard_limit_refused, 1);
    }

    pub(crate) fn forked(&self) {
        self.at_work.store(false, Relaxed);
        self.callback.forked();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
