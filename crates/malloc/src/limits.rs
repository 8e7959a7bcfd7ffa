//! Limits on the memory of the process, and what is done when they are reached.
//!
//! **What.** A *soft limit*: when more is in use, free memory goes back to the system, as far as needed; if that is not enough, threads
//! give up what their caches hold, and then the program is called back. A *hard limit*: what would pass it is refused, after free memory
//! has gone back ([`crate::heap`], `limited.rs`). The control group's limit gives the soft limit if the program sets none.
//! Short memory of the whole system (its *pressure*) sends free memory back, too.
//!
//! **Units.** Bytes of memory in use: what the heap has got from the system and not given back, its metadata, and huge objects with
//! all their bytes, touched or not.
//!
//! **Threads.** One thread at a time looks; others go on. A thread gives its cache up in its next slow request: it finds that the
//! number [`GENERATION`] has changed. Who cannot wait for that has frees fail on all caches ([`ask_for_caches`]).
//!
//! **Failure.** Limits that cannot be read are none. Nothing here ends the process.
//!
//! **Cost.** Two compares in each use of the page heap. A program that stays above its soft limit is looked at once a second and
//! whenever it has grown by a part of the limit, not in each request.
//!
//! **Unsafe.** Empties the calling thread's cache, and takes its locks over a fork.

mod callback;
mod changes;
mod options;
mod setting;

use crate::background;
use crate::cpu_cache::thread::ThreadCache;
use crate::debug;
use crate::front::{HEAP, LEAST_CACHE_BYTES, OBJECT_CACHES, PROCESSOR_CACHES, THREAD_CACHE_BYTES};
use crate::segment::{self, SEGMENT};
use changes::Changes;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, Ordering::Relaxed, fence};
use craton_base::{Clock, PAGE_SHIFT, Pages};
use craton_os::{CoarseClock, cgroup, cpus, process, thp, thread};
use setting::{Kept, part};

pub use callback::{LimitCallback, set_callback};
pub(crate) use options::{set_option, show_option, why_not};
pub(crate) use setting::{Setting, size};

/// Of a control group's limit so much is the soft limit, in percent, if the program says nothing: the rest is for code, stacks
/// and what else the process has.
const SOFT_PERCENT: u8 = 90;
/// Memory in use from which on the control group is looked at: a small program does without.
const FIRST_LOOK: u64 = background::FROM.bytes().0 as u64;
/// No limit is less: the heap's own tables take a third of that before the first object.
const LEAST: u64 = 1 << 20;
/// Between two looks at the control group.
const READ_EVERY_NS: u64 = 10_000_000_000;
/// Between two looks at the pressure, and free pages from which on it is looked at.
const PRESSURE_EVERY_NS: u64 = 5_000_000_000;
const PRESSURE_FROM: Pages = Pages(128);
/// Free pages for which an idle process is woken each ten seconds to look at the pressure: 16 MiB.
const PRESSURE_WAKES_FROM: Pages = Pages(2048);
/// Bytes that a look under pressure sends back at most.
const PRESSURE_BYTES: u64 = 256 << 20;
/// The option `pressure` unless it is set: so much of the last ten seconds, in percent, somebody waited for memory.
const PRESSURE_PERCENT: u32 = 10;

/// The options `soft_limit`, `hard_limit`, `memory_limit` and `pressure`.
static SOFT: Kept = Kept::auto();
static HARD: Kept = Kept::auto();
static MEMORY: Kept = Kept::auto();
static PRESSURE: AtomicU32 = AtomicU32::new(PRESSURE_PERCENT);

/// Of these options, and of the control group's limit.
static CHANGES: Changes = Changes::new();

/// The control group's limit as last read, 0 for none; whether it ever was, and when it is to be read again.
static GROUP: AtomicU64 = AtomicU64::new(0);
/// Where it is from: `memory_limit_source` of the statistics.
static SOURCE: AtomicU64 = AtomicU64::new(0);
/// That number where the option says what the limit is.
const BY_OPTION: u64 = 4;
static READ: AtomicBool = AtomicBool::new(false);
static NEXT_READ_NS: AtomicU64 = AtomicU64::new(0);
static NEXT_PRESSURE_NS: AtomicU64 = AtomicU64::new(0);
/// The system says nothing about pressure: it is not asked again.
static NO_PRESSURE: AtomicBool = AtomicBool::new(false);

/// Somebody looks at the limits now.
static AT_WORK: AtomicBool = AtomicBool::new(false);
/// Changes when threads are to give up what their caches hold.
static GENERATION: &AtomicU32 = &HEAP.flush_requests;

/// To be called when the heap is set up, before it is used.
pub(crate) fn begin() {
    apply();
}

/// Makes the limits count that follow from the options and the control group.
fn apply() {
    CHANGES.until_settled(apply_once);
}

fn apply_once() {
    let memory = memory_limit();
    let soft = match SOFT.get() {
        Setting::Auto => memory.map(|bytes| part(bytes, SOFT_PERCENT)),
        setting => amount(setting),
    };
    let hard = amount(HARD.get());
    HEAP.gate.set(soft, hard);
    if MEMORY.get() == Setting::Auto && !READ.load(Relaxed) {
        HEAP.gate.look_from(FIRST_LOOK.min(HEAP.gate.high()));
    }
    SEGMENT.memory_limit_bytes.store(memory.unwrap_or(0), Relaxed);
    let source = if MEMORY.get() == Setting::Auto { SOURCE.load(Relaxed) } else { BY_OPTION };
    SEGMENT.memory_limit_source.store(source, Relaxed);
    SEGMENT.soft_limit_bytes.store(soft.unwrap_or(0), Relaxed);
    SEGMENT.hard_limit_bytes.store(hard.unwrap_or(0), Relaxed);
}

/// What soft limits follow and percentages are of, if anything limits the process.
fn memory_limit() -> Option<u64> {
    MEMORY.get().bytes(|| None, Some(GROUP.load(Relaxed)).filter(|bytes| *bytes > 0))
}

/// The bytes that a setting comes to, if it says how many.
fn amount(setting: Setting) -> Option<u64> {
    let whole = || memory_limit().or_else(|| Some(process::physical_memory() as u64).filter(|bytes| *bytes > 0));
    setting.bytes(whole, None)
}

/// Looks at the limits because much memory is in use. To be called by a thread of the program that holds no lock; keeps `errno`.
#[cold]
pub(crate) fn act() {
    let saved = process::errno();
    if let Some((soft, used)) = look(true) {
        callback::call(soft, used);
    }
    process::set_errno(saved);
}

/// Reads the control group's limit if nobody has, and keeps the soft limit as far as that is possible: else it and what is in use are returned.
fn look(in_program: bool) -> Option<(u64, u64)> {
    // ORDERING: Acquire pairs with the Release below.
    if AT_WORK.swap(true, Ordering::Acquire) {
        return None;
    }
    // On a small stack it is left to the heap's own thread, or to the main one.
    if !READ.load(Relaxed) && thread::on_main_stack() {
        read_group();
        apply();
    }
    if !READ.load(Relaxed) {
        HEAP.gate.look_from(HEAP.used() + FIRST_LOOK);
    }
    let passed = HEAP.gate.soft().and_then(|soft| keep_soft(soft, in_program));
    // Our own steps have seen the limit passed, too.
    background::forget_limits();
    // ORDERING: Release pairs with the Acquire above.
    AT_WORK.store(false, Ordering::Release);
    passed
}

/// Returns free memory until no more than `most` bytes are in use, that of object caches too; as [`crate::heap::Heap::relieve`].
fn relieve(most: u64) -> (u64, u64) {
    if HEAP.used() > most {
        OBJECT_CACHES.relieve(&HEAP);
    }
    HEAP.relieve(most)
}

fn keep_soft(soft: u64, in_program: bool) -> Option<(u64, u64)> {
    if HEAP.used() <= soft {
        HEAP.gate.rearm();
        return None;
    }
    segment::add(&SEGMENT.soft_limit_passed, in_program.into());
    let (mut used, _) = relieve(HEAP.gate.target());
    if used > soft {
        GENERATION.fetch_add(1, Relaxed);
        if in_program {
            shrink_own();
            used = relieve(HEAP.gate.target()).0;
        }
    }
    if used <= soft {
        HEAP.gate.rearm();
        return None;
    }
    HEAP.gate.rearm_above(used);
    Some((soft, used))
}

/// What is to be done each second: limits may have changed, memory may be short, and what could not be had before may be had now.
/// Returns the pages that went back. Without a `deep` stack no files are read.
pub(crate) fn round(deep: bool) -> u64 {
    let saved = process::errno();
    let now = CoarseClock.now_ns();
    if deep && now >= NEXT_READ_NS.load(Relaxed) {
        read_group();
        let before = HEAP.gate.hard();
        apply();
        options::tell_of_hard(before);
    }
    let before = HEAP.used();
    let mut kept = 0;
    if HEAP.gate.soft().is_some_and(|soft| before > soft) {
        look(false);
        // The program itself looks at its next slow request, gives up its cache, and is called back.
        HEAP.gate.rearm();
        kept = before.saturating_sub(HEAP.used()) >> PAGE_SHIFT;
    }
    let relieved = if deep { relieve_pressure(now) } else { 0 };
    process::set_errno(saved);
    kept + relieved
}

/// Reads the control group's limits, unless the process may no longer ask.
fn read_group() {
    NEXT_READ_NS.store(CoarseClock.now_ns() + READ_EVERY_NS, Relaxed);
    if !thp::may_ask() {
        return;
    }
    let limits = cgroup::limits();
    if limits.is_partial && READ.load(Relaxed) {
        return;
    }
    SEGMENT.usable_cpus.store(cpus::set_quota(limits.cpu_thousandths) as u64, Relaxed);
    GROUP.store(limits.memory_bytes.unwrap_or(0), Relaxed);
    SOURCE.store(
        match limits.memory_source {
            cgroup::Source::Nowhere => 1,
            cgroup::Source::V1 => 2,
            cgroup::Source::V2 => 3,
        },
        Relaxed,
    );
    READ.store(true, Relaxed);
    CHANGES.note();
}

/// Gives free memory back if others wait for memory; returns how many pages.
fn relieve_pressure(now: u64) -> u64 {
    let threshold = PRESSURE.load(Relaxed) * 100;
    if threshold == 0
        || now < NEXT_PRESSURE_NS.load(Relaxed)
        || NO_PRESSURE.load(Relaxed)
        || !thp::may_ask()
        || HEAP.releasable() < PRESSURE_FROM
    {
        return 0;
    }
    NEXT_PRESSURE_NS.store(now + PRESSURE_EVERY_NS, Relaxed);
    match cgroup::pressure() {
        None => NO_PRESSURE.store(true, Relaxed),
        Some(pressure) if pressure >= threshold => {
            segment::add(&SEGMENT.pressure_releases, 1);
            return relieve(HEAP.used().saturating_sub(PRESSURE_BYTES)).1;
        }
        Some(_) => {}
    }
    0
}

/// Whether a change of pressure could make the heap give back so much that it is worth looking out for in an idle process.
pub(crate) fn heeds_pressure() -> bool {
    PRESSURE.load(Relaxed) > 0 && !NO_PRESSURE.load(Relaxed) && HEAP.releasable() >= PRESSURE_WAKES_FROM
}

/// Asks each thread to give up what its cache holds, in its next free or in an earlier slow request.
pub(crate) fn ask_for_caches() {
    GENERATION.fetch_add(1, Relaxed);
    // ORDERING: SeqCst pairs with the fence in `ThreadCache::look_again`.
    fence(Ordering::SeqCst);
    crate::front::fail_caches();
}

/// How often threads were asked for what their caches hold, modulo 2³².
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Empties a cache whose thread has not done so since others asked for it; to be called in slow requests.
///
/// # Safety
/// The cache is the calling thread's.
#[inline]
pub(crate) unsafe fn heed(cache: *mut ThreadCache) {
    let generation = GENERATION.load(Relaxed);
    // SAFETY: by the contract.
    unsafe {
        if (*cache).generation != generation {
            (*cache).generation = generation;
            crate::nested::within(|| shrink(cache));
        }
    }
}

/// # Safety
/// The cache is the calling thread's.
#[cold]
unsafe fn shrink(cache: *mut ThreadCache) {
    // SAFETY: by the contract; empty lists may begin anew.
    unsafe {
        HEAP.empty_cache(cache);
        ThreadCache::begin(
            cache,
            HEAP.view(),
            &HEAP.flush_requests,
            (*cache).home(),
            THREAD_CACHE_BYTES.load(Relaxed).min(LEAST_CACHE_BYTES),
        );
        debug::close_lists(&mut *cache);
    }
}

fn shrink_own() {
    if let Some(cache) = crate::front::existing_cache() {
        // SAFETY: it is this thread's cache.
        unsafe { shrink(cache) };
    }
    if PROCESSOR_CACHES.in_use() {
        PROCESSOR_CACHES.empty(&HEAP);
    }
}

/// After a request was refused: whether it is worth another try, since the calling thread's cache held memory that it has now given up.
/// Others will do so.
#[cold]
pub(crate) fn make_room() -> bool {
    if HEAP.gate.hard().is_none() {
        return false;
    }
    GENERATION.fetch_add(1, Relaxed);
    shrink_own();
    true
}

/// Counts a refusal of so many bytes, if it was the hard limit's.
#[cold]
pub(crate) fn count_refusal(bytes: usize) {
    if HEAP.is_refused(bytes) {
        segment::add(&SEGMENT.hard_limit_refused, 1);
    }
}

/// Before a fork.
pub(crate) fn hold_for_fork(nested: bool) {
    callback::hold_for_fork(nested);
}

/// After a fork.
///
/// # Safety
/// As [`craton_os::Mutex::release_after_fork`].
pub(crate) unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    unsafe { callback::release_after_fork() };
}

/// In a forked child nobody else looks any more.
pub(crate) fn forked() {
    AT_WORK.store(false, Relaxed);
    callback::forked();
}

/// Bytes of the slab that an object of a class would need anew.
pub(crate) fn slab_bytes(class: usize) -> usize {
    crate::size_class::geometry(class).pages.bytes().0
}
