//! The process's heap, as its policies see it: what requests, the library's thread and the program's calls set off.
//!
//! **What.** Binds [`Background`](background::Background) and [`Limits`](limits::Limits) to the process's heap, the system
//! and the clock, and has the calls that other files make of them.
//!
//! **Unsafe.** Empties the calling thread's cache, and takes the program's function.

mod actions;
pub(crate) mod background;
pub mod limits;

use crate::here::Here;
use crate::observe::text::Text;
use crate::statics::{
    ADMISSION, BACKGROUND, ERRANDS, HEAP, KIT, LIMITS, MAILBOX, OBJECT_CACHES, PROCESSOR_CACHES, REGISTRY, SEGMENT,
};
use crate::thread::{nested, tls};
use background::{Chore, Errands, FROM, Helper, Mode, Tended};
use core::ffi::c_void;
use core::sync::atomic::{Ordering, Ordering::Relaxed, fence};
use craton_base::{Clock, HUGEPAGE_SIZE, HugePages, Pages};
use craton_heap::gate::Gate;
use craton_heap::size_class::CLASSES;
use craton_heap::thread_cache::ThreadCache;
use craton_os::{CoarseClock, cgroup, cpus, process, thp, thread};
use limits::{LimitCallback, Limited, System, Whose};

pub use actions::actions;

/// How often a system call is tried again, a millisecond apart, for which the thread may not have left the process yet.
const TRIES: u32 = 200;
const TRY_NS: u64 = 1_000_000;

impl Tended for Here {
    fn set_rate(&self, bytes_per_s: u64) {
        HEAP.set_release_rate(bytes_per_s);
    }

    fn tick(&self) -> (bool, Pages) {
        PROCESSOR_CACHES.look(&HEAP);
        let (tick, in_use) = HEAP.tick();
        let kept = HEAP.age_kept() | OBJECT_CACHES.over(&HEAP).tick(false);
        (tick.released > 0 || kept, in_use)
    }

    fn collapse(&self, is_first: bool) -> (bool, bool) {
        if is_first && !HEAP.collapse_is_due() {
            return (false, false);
        }
        let Some(id) = HEAP.begin_collapse() else { return (false, false) };
        // Real time: the cost of a collapse decides how many there are.
        let start = CoarseClock.now_ns();
        // Without the lock: it can take milliseconds.
        let result = thp::collapse(HEAP.address(id.first_page()) as usize, HugePages(1).bytes().0);
        (result.is_ok(), HEAP.end_collapse(id, result, CoarseClock.now_ns() - start))
    }

    fn keep_limits(&self, deep: bool) -> u64 {
        LIMITS.round(deep, self)
    }

    fn is_settled(&self) -> bool {
        HEAP.surplus() == Pages(0) && !LIMITS.heeds_pressure(self)
    }

    fn drop_kept(&self) {
        HEAP.drop_kept();
    }
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
        HEAP.relieve(most)
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
            // SAFETY: it is this thread's cache.
            unsafe { shrink(cache) };
        }
        if PROCESSOR_CACHES.in_use() {
            PROCESSOR_CACHES.empty(&HEAP);
        }
    }

    fn looked(&self) {
        BACKGROUND.forget(Chore::Limits);
    }
}

impl System for Here {
    fn may_ask(&self) -> bool {
        thp::may_ask()
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

/// What the library's thread does.
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

/// Runs pending chores. Slow requests only, no locks held: starting the thread calls malloc.
#[inline]
pub(crate) fn poke() {
    if BACKGROUND.is_wanted() {
        // Not earlier: a small program does without it, and without the pages of the C library that it takes.
        thread::find_flag();
        work(true, true);
    }
    look_at_mailbox(true);
}

/// As [`poke`], in a call that gives memory back. The C library makes such calls for the stacks of threads that ended, under
/// the lock that it would take to start one. So from here a thread is started only in a process that never had one; nor is
/// the program called back.
#[inline]
pub(crate) fn poke_in_free() {
    if BACKGROUND.is_wanted() {
        work(thread::never_started(), false);
    }
    look_at_mailbox(false);
}

/// In a free that needed nothing of the heap: its thread may make no other slow request.
#[inline]
pub(crate) fn look_in_free() {
    look_at_mailbox(false);
}

#[inline]
pub(crate) fn look_at_mailbox(may_wait: bool) {
    if MAILBOX.is_asked() {
        look_at_mailbox_now(may_wait);
    }
}

#[cold]
fn look_at_mailbox_now(may_wait: bool) {
    // While the thread is started or ended signals may be blocked, or a fork be under way.
    if SEGMENT.has_started() && !nested::is_nested() && BACKGROUND.life.is_calm() {
        let saved = process::errno();
        if let Some(errands) = errands() {
            (errands.read_mailbox)(may_wait);
        }
        process::set_errno(saved);
    }
}

/// What `lifecycle.rs` has left; nothing before the library is loaded.
fn errands() -> Option<&'static Errands> {
    // ORDERING: Acquire pairs with the Release in `lifecycle::at_start`.
    // SAFETY: null, or a constant.
    unsafe { ERRANDS.load(Ordering::Acquire).as_ref() }
}

#[cold]
fn work(may_start: bool, may_call: bool) {
    // Before the library is set up completely, fork would not know of a thread, and options are not known.
    if !SEGMENT.has_started() || nested::is_nested() {
        return;
    }
    for chore in Chore::ALL {
        if !BACKGROUND.take(chore, may_start, may_call) {
            continue;
        }
        match chore {
            Chore::Later => errands().into_iter().for_each(|errands| (errands.free_later)()),
            Chore::Wake => BACKGROUND.thread.nudge(),
            Chore::Limits => LIMITS.act(&Here),
            Chore::Thread => BACKGROUND.start(run, &Here),
            Chore::Look => {
                nested::within(|| BACKGROUND.look_in_passing(thread::on_main_stack(), &Here));
            }
        }
    }
}

/// Makes a call that the system may refuse to a process with more than one thread; `refused` says whether it did so. What is
/// left in `errno` is the call's own.
pub fn without_thread<R>(mut call: impl FnMut() -> R, refused: impl Fn(&R) -> bool) -> R {
    BACKGROUND.life.hold();
    // One that was waited for may take a moment to leave the process.
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

/// Ends the thread for good: it would be in the program's way. Nor does the heap make other system calls from now on than
/// those for memory and locks. Leaves `errno` alone.
pub fn seal() {
    let saved = process::errno();
    thp::keep_answer();
    BACKGROUND.life.seal();
    BACKGROUND.stop(&Here);
    process::set_errno(saved);
}

/// In a forked child: ends what other threads were at.
pub(crate) fn forked() {
    thread::note_main();
    HEAP.forked();
    BACKGROUND.forked();
    MAILBOX.forked();
    LIMITS.forked();
}

/// The option `background`.
pub(crate) fn mode() -> Mode {
    BACKGROUND.mode()
}

/// Sets the option `background`.
pub(crate) fn set_mode(mode: Mode) {
    BACKGROUND.set_mode(mode, &Here);
}

/// As [`set_mode`], without waiting for the thread's end.
pub(crate) fn set_mode_later(mode: Mode) {
    BACKGROUND.set_mode_later(mode);
}

/// Sets the option `release_rate`, in bytes.
pub(crate) fn set_rate(bytes_per_s: u64) {
    BACKGROUND.set_rate(bytes_per_s, &Here);
}

/// Notes now and then that requests go on that leave the page heap as it is.
#[cold]
pub(crate) fn note_time() {
    let backed = SEGMENT.heap_backed_bytes.load(Relaxed) / HUGEPAGE_SIZE as u64;
    if backed >= u64::from(FROM.0) {
        BACKGROUND.note_time(HugePages(backed as u32));
    }
}

/// Asks for the thread: something must go back while the program sleeps.
pub(crate) fn want_thread() {
    BACKGROUND.want_thread();
}

/// Sets what is called when the soft limit is passed and releasing memory did not help; `None` for nothing. A call that has
/// begun in another thread may still go on afterwards.
///
/// # Safety
/// The function may be called with the argument by any thread that allocates, until another one is set.
pub unsafe fn set_callback(callback: Option<LimitCallback>, argument: *mut c_void) {
    // SAFETY: by the contract.
    unsafe { LIMITS.callback.set(callback, argument) };
}

/// Sets an option that is a limit; `false` when the value is refused.
pub(crate) fn set_option(key: &[u8], value: &[u8]) -> bool {
    LIMITS.set_option(key, value, &Here)
}

/// Writes the value of an option that is a limit; `false` when the key is none of these.
pub(crate) fn show_option(key: &[u8], into: &mut Text<'_>) -> bool {
    LIMITS.show_option(key, into)
}

/// Why a limit that can be understood was refused.
pub(crate) fn why_not(key: &[u8], value: &[u8]) -> Option<&'static str> {
    LIMITS.why_not(key, value, &Here)
}

/// Asks each thread to give up what its cache holds, in its next free or in an earlier slow request.
pub(crate) fn ask_for_caches() {
    Here.shrink(Whose::Others);
    // ORDERING: SeqCst pairs with the fence in `ThreadCache::look_again`.
    fence(Ordering::SeqCst);
    nested::within(|| REGISTRY.lock().fail_all());
}

/// Empties a cache whose thread has not done so since it was asked; in slow requests.
///
/// # Safety
/// The cache is the calling thread's.
#[inline]
pub(crate) unsafe fn heed(cache: *mut ThreadCache) {
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
    // SAFETY: by the contract; empty lists may begin anew.
    unsafe {
        HEAP.empty_cache(cache);
        begin_cache(cache, (*cache).home(), ADMISSION.least_share());
    }
}

/// Begins a cache, with the lists of classes closed that the debugging kit checks (D3): their objects come past it.
///
/// # Safety
/// As [`ThreadCache::begin`].
pub(crate) unsafe fn begin_cache(cache: *mut ThreadCache, home: usize, bytes: usize) {
    // SAFETY: by the contract.
    let cache = unsafe {
        ThreadCache::begin(cache, HEAP.view(), &HEAP.flush_requests, home, bytes);
        &mut *cache
    };
    if KIT.in_use() {
        (1..=CLASSES).filter(|class| KIT.checks_of_class(*class) != 0).for_each(|class| cache.close(class));
    }
}

/// After a request was refused: whether it is worth another try, since the calling thread has given up its caches.
#[cold]
pub(crate) fn make_room() -> bool {
    LIMITS.make_room(&Here)
}

/// Counts a refusal of so many bytes, if it was the hard limit's.
#[cold]
pub(crate) fn count_refusal(bytes: usize) {
    if HEAP.is_refused(bytes) {
        LIMITS.count_refusal();
    }
}
