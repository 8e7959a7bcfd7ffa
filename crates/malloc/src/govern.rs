//! The process's policies, background work and limits, run by requests, the library's thread and
//! the program's calls. Binds [`Background`](background::Background) and [`Limits`](limits::Limits)
//! to the process's heap, system and clock.
//!
//! **Unsafe.** Empties the thread's cache; takes the program's function.

mod actions;
pub(crate) mod background;
pub mod limits;
pub(crate) mod notice;

use crate::here::Here;
use crate::observe::telemetry;
use crate::observe::text::Text;
use crate::statics::{
    ADMISSION, BACKGROUND, ERRANDS, HEAP, KIT, LIMITS, MAILBOX, OBJECT_CACHES, PROCESSOR_CACHES, PROFILE, REGISTRY,
    SEGMENT, TRACE,
};
use crate::thread::{nested, tls};
use background::{Chore, Errands, FROM, Helper, Mode, Tended};
use core::ffi::c_void;
use core::sync::atomic::{Ordering, Ordering::Relaxed, fence};
use craton_base::{CollapseError, HUGEPAGE_SIZE, HugePageId, HugePages, Pages};
use craton_heap::gate::Gate;
use craton_heap::size_class::CLASSES;
use craton_heap::thread_cache::ThreadCache;
use craton_os::{cgroup, cpus, precise_ns, process, processor_ns, thp, thread};
use craton_pages::Took;
use limits::{LimitCallback, Limited, System, Whose};

pub use actions::actions;

/// Retries, 1 ms apart, of a system call that may fail while a thread is ending.
const TRIES: u32 = 200;
const TRY_NS: u64 = 1_000_000;

impl Tended for Here {
    fn set_rate(&self, bytes_per_s: u64) {
        HEAP.set_release_rate(bytes_per_s);
    }

    fn tick(&self) -> (bool, Pages) {
        PROCESSOR_CACHES.look(&HEAP);
        let (tick, in_use) = HEAP.tick();
        telemetry::ticked(tick.released);
        let kept = HEAP.age_kept() | OBJECT_CACHES.over(&HEAP).tick(false);
        (tick.released > 0 || kept, in_use)
    }

    fn collapse(&self, is_first: bool) -> (bool, bool) {
        if is_first && !HEAP.collapse_is_due() {
            return (false, false);
        }
        let id = HEAP.begin_collapse();
        // Without the system's hugepages a search only costs system calls.
        let mapping = || {
            let is_worth = HEAP.gate.huge() > 0 && thp::is_on();
            if is_worth { HEAP.next_dense_mapping() } else { None }
        };
        let place = id.map(|id| HEAP.address(id.first_page()) as usize).or_else(mapping);
        let Some(at) = place else { return (false, false) };
        let (result, took) = collapse(at);
        let more = id.map_or_else(|| HEAP.count_collapse(result, took), |id| HEAP.end_collapse(id, result, took));
        (result.is_ok(), more)
    }

    fn refill(&self) -> bool {
        let at = |id: HugePageId| HEAP.address(id.first_page()) as usize;
        if let Some(id) = HEAP.begin_refill() {
            let (result, took) = collapse(at(id));
            HEAP.end_collapse(id, result, took);
            return result.is_ok();
        }
        let Some(id) = HEAP.begin_clear() else { return false };
        let (result, took) = timed(|| thp::populate(at(id), HugePages(1).bytes().0));
        HEAP.end_clear(id, result, took);
        result.is_ok()
    }

    fn set_helped(&self, helped: bool) {
        HEAP.set_helped(helped);
    }

    fn keep_limits(&self, deep: bool) -> u64 {
        LIMITS.round(deep, self)
    }

    fn is_settled(&self) -> bool {
        HEAP.surplus() == Pages(0) && !LIMITS.reads_pressure(self)
    }

    fn drop_kept(&self) {
        HEAP.drop_kept();
    }

    fn release_now(&self) {
        telemetry::released(HEAP.release_now());
    }
}

/// Collapses without the heap's lock: it can take milliseconds.
fn collapse(at: usize) -> (Result<(), CollapseError>, Took) {
    timed(|| thp::collapse(at, HugePages(1).bytes().0))
}

/// Measures real time, since the cost of such acts bounds their number.
fn timed<T>(act: impl FnOnce() -> T) -> (T, Took) {
    let now = || (if thp::may_query() { processor_ns() } else { precise_ns() }, precise_ns());
    let start = now();
    let result = act();
    let end = now();
    (result, Took { processor_ns: end.0.saturating_sub(start.0), wall_ns: end.1.saturating_sub(start.1) })
}

impl Limited for Here {
    fn gate(&self) -> &Gate {
        &HEAP.gate
    }

    fn used(&self) -> u64 {
        HEAP.used()
    }

    fn relieve(&self, most: u64) -> (u64, u64) {
        if HEAP.used() > most {
            OBJECT_CACHES.over(&HEAP).relieve();
        }
        let (used, released) = HEAP.relieve(most);
        telemetry::relieved(released);
        (used, released)
    }

    fn releasable(&self) -> Pages {
        HEAP.releasable()
    }

    fn shrink(&self, whose: Whose) {
        if whose == Whose::Others {
            HEAP.flush_requests.fetch_add(1, Relaxed);
            return;
        }
        if let Some(cache) = tls::own() {
            // SAFETY: the calling thread's cache.
            unsafe { shrink(cache) };
        }
        if PROCESSOR_CACHES.in_use() {
            PROCESSOR_CACHES.empty(&HEAP);
        }
    }

    fn passed(&self, soft: u64, used: u64) {
        notice::soft(soft, used);
    }

    fn looked(&self) {
        BACKGROUND.forget(Chore::Limits);
    }
}

impl System for Here {
    fn may_query(&self) -> bool {
        thp::may_query()
    }

    fn group(&self) -> cgroup::Limits {
        cgroup::limits()
    }

    fn pressure(&self) -> Option<u32> {
        cgroup::pressure()
    }

    fn memory(&self) -> u64 {
        process::physical_memory() as u64
    }

    fn is_stack_deep(&self) -> bool {
        thread::on_main_stack()
    }

    fn set_quota(&self, thousandths: Option<u64>) -> usize {
        cpus::set_quota(thousandths)
    }
}

pub(crate) fn run() {
    let mut rounds = BACKGROUND.rounds();
    while BACKGROUND.rest(&mut rounds, &Here) {
        if MAILBOX.is_asked()
            && let Some(errands) = errands()
        {
            (errands.read_mailbox)(false);
        }
        if !BACKGROUND.turn(&mut rounds, &Here) {
            return;
        }
    }
}

/// Runs pending chores, in slow paths without locks: starting the thread calls malloc.
#[inline]
pub(crate) fn run_chores() {
    if BACKGROUND.is_wanted() {
        // Not earlier: small programs save the C library's pages that this touches.
        thread::find_flag();
        work(true, true);
    }
    check_mailbox(true);
}

/// [`run_chores`] in a free. The C library frees ended threads' stacks under the lock that a
/// thread's start takes. So a thread starts here only in a process that never had one, and no
/// callback runs. Elsewhere much free memory goes back at once: the process may sleep next.
#[inline]
pub(crate) fn run_chores_in_free() {
    if BACKGROUND.is_wanted() {
        work(thread::never_started(), false);
    }
    check_mailbox(false);
}

/// Reads the mailbox in a free past the heap: its thread may make no other slow request.
#[inline]
pub(crate) fn read_mailbox_in_free() {
    check_mailbox(false);
}

#[inline]
pub(crate) fn check_mailbox(may_wait: bool) {
    if MAILBOX.is_asked() {
        check_mailbox_now(may_wait);
    }
}

#[cold]
fn check_mailbox_now(may_wait: bool) {
    // While the thread starts or ends, signals may be blocked or a fork run.
    if SEGMENT.has_started() && !nested::is_nested() && BACKGROUND.life.is_calm() {
        let saved = process::errno();
        if let Some(errands) = errands() {
            (errands.read_mailbox)(may_wait);
        }
        process::set_errno(saved);
    }
}

/// Null before the library is loaded.
fn errands() -> Option<&'static Errands> {
    // ORDERING: Acquire pairs with the Release in `lifecycle::at_start`.
    // SAFETY: null, or a constant.
    unsafe { ERRANDS.load(Ordering::Acquire).as_ref() }
}

#[cold]
fn work(may_start: bool, may_call: bool) {
    // Before set-up ends, a fork knows no thread, and options are unknown.
    if !SEGMENT.has_started() || nested::is_nested() {
        return;
    }
    for chore in Chore::ALL {
        if !BACKGROUND.claim(chore, may_start, may_call) {
            continue;
        }
        match chore {
            Chore::Later => errands().into_iter().for_each(|errands| (errands.free_later)()),
            Chore::Wake | Chore::Refill => BACKGROUND.thread.nudge(),
            Chore::Limits => LIMITS.act(&Here),
            Chore::Thread => BACKGROUND.start(run, &Here),
            Chore::Release => nested::within(|| Here.release_now()),
            Chore::Publish => {
                if TRACE.inherited.swap(false, Relaxed) {
                    errands().into_iter().for_each(|errands| (errands.begin_recording)());
                }
                nested::within(telemetry::publish)
            }
            Chore::Round => {
                nested::within(|| BACKGROUND.round_in_request(thread::on_main_stack(), &Here));
            }
        }
    }
}

/// Makes a call that may fail in a multi-threaded process (`refused`). Keeps `errno`.
pub fn without_thread<R>(mut call: impl FnMut() -> R, refused: impl Fn(&R) -> bool) -> R {
    BACKGROUND.life.hold();
    // A joined thread may take a moment to leave.
    let saved = process::errno();
    let mut tries = if BACKGROUND.stop(&Here) { TRIES } else { 1 };
    let result = loop {
        process::set_errno(saved);
        let result = call();
        tries -= 1;
        if tries == 0 || !refused(&result) {
            break result;
        }
        thread::sleep_ns(TRY_NS);
    };
    BACKGROUND.life.release();
    result
}

/// Ends the thread for good, and restricts system calls to memory and locks. Keeps `errno`.
pub fn seal() {
    let saved = process::errno();
    thp::keep_answer();
    BACKGROUND.life.seal();
    BACKGROUND.stop(&Here);
    process::set_errno(saved);
}

/// Starts the thread in a large heap's parent: it mends the hugepages that writes break.
pub(crate) fn forked_in_parent() {
    let backed = HugePages((SEGMENT.heap_backed_bytes.load(Relaxed) / HUGEPAGE_SIZE as u64) as u32);
    if SEGMENT.has_started() && !nested::is_nested() && BACKGROUND.starts_after_fork(backed) {
        let saved = process::errno();
        BACKGROUND.start(run, &Here);
        process::set_errno(saved);
    }
}

/// In a fork's child: drops other threads' work. `forks` counts the forks that this thread has
/// begun and not ended.
pub(crate) fn forked(forks: u32) {
    thread::record_main();
    HEAP.forked();
    BACKGROUND.forked(forks);
    MAILBOX.forked();
    LIMITS.forked();
}

pub(crate) fn mode() -> Mode {
    BACKGROUND.mode()
}

pub(crate) fn set_mode(mode: Mode) {
    BACKGROUND.set_mode(mode, &Here);
}

pub(crate) fn set_mode_later(mode: Mode) {
    BACKGROUND.set_mode_later(mode);
}

pub(crate) fn set_rate(bytes_per_s: u64) {
    BACKGROUND.set_rate(bytes_per_s, &Here);
}

/// Wakes the thread and checks the time, now and then, in requests past the page heap.
#[cold]
pub(crate) fn record_time() {
    let backed = SEGMENT.heap_backed_bytes.load(Relaxed) / HUGEPAGE_SIZE as u64;
    if backed >= u64::from(FROM.0) {
        BACKGROUND.record_time(HugePages(backed as u32));
    }
}

pub(crate) fn want_thread() {
    BACKGROUND.want_thread();
}

/// Sets the soft limit's callback; `None` for none. A call begun elsewhere may still run.
///
/// # Safety
/// Any thread that allocates may call the function with the argument, until another is set.
pub unsafe fn set_callback(callback: Option<LimitCallback>, argument: *mut c_void) {
    // SAFETY: by the contract.
    unsafe { LIMITS.callback.set(callback, argument) };
}

pub(crate) fn set_option(key: &[u8], value: &[u8]) -> bool {
    LIMITS.set_option(key, value, &Here)
}

pub(crate) fn show_option(key: &[u8], into: &mut Text<'_>) -> bool {
    LIMITS.show_option(key, into)
}

pub(crate) fn why_not(key: &[u8], value: &[u8]) -> Option<&'static str> {
    LIMITS.why_not(key, value, &Here)
}

/// Requests a flush of each thread's cache, in its next slow path or free.
pub(crate) fn request_flushes() {
    Here.shrink(Whose::Others);
    // ORDERING: SeqCst pairs with the fence in `ThreadCache::look_again`.
    fence(Ordering::SeqCst);
    nested::within(|| REGISTRY.lock().fail_all());
}

/// Flushes the cache, in slow paths, if a requested flush is due.
///
/// # Safety
/// The cache is the calling thread's.
#[inline]
pub(crate) unsafe fn flush_if_requested(cache: *mut ThreadCache) {
    let generation = HEAP.flush_requests.load(Relaxed);
    // SAFETY: by the contract.
    unsafe {
        if (*cache).generation != generation {
            (*cache).generation = generation;
            nested::within(|| shrink(cache));
        }
    }
}

/// # Safety
/// The cache is the calling thread's.
#[cold]
unsafe fn shrink(cache: *mut ThreadCache) {
    // SAFETY: by the contract; empty lists may be reset.
    unsafe {
        HEAP.empty_cache(cache);
        begin_cache(cache, (*cache).home(), ADMISSION.least_share());
    }
}

/// Initialises a cache, closing the lists of classes that the kit checks (D3).
///
/// # Safety
/// As [`ThreadCache::begin`].
pub(crate) unsafe fn begin_cache(cache: *mut ThreadCache, home: usize, bytes: usize) {
    // SAFETY: by the contract.
    let cache = unsafe {
        ThreadCache::begin(cache, HEAP.view(), &HEAP.flush_requests, home, bytes);
        &mut *cache
    };
    cache.set_countdown(PROFILE.first_countdown(cache.number == 0));
    if KIT.in_use() {
        (1..=CLASSES).filter(|class| KIT.checks_of_class(*class) != 0).for_each(|class| cache.close(class));
    }
}

/// After a refusal: flushes the thread's caches; returns whether to retry.
#[cold]
pub(crate) fn make_room() -> bool {
    LIMITS.make_room(&Here)
}

/// After the system's refusal: flushes if the caches' objects may be all that splits `bytes` of
/// free memory.
pub(crate) fn make_room_for(bytes: usize) -> bool {
    let may_lie_in_pieces = bytes <= HEAP.granted().bytes().0;
    make_room()
        || may_lie_in_pieces && {
            Here.shrink(Whose::Own);
            true
        }
}

#[cold]
pub(crate) fn count_refusal(bytes: usize) {
    if HEAP.is_refused(bytes) {
        LIMITS.count_refusal();
        if let (Some(hard), false) = (HEAP.gate.hard(), nested::is_nested()) {
            notice::hard(hard, bytes);
        }
    }
}
