//! What the heap does by itself: it gives memory back and keeps the heap on hugepages, with a thread of its own or without.
//!
//! **What.** Once the heap has grown beyond a small program's, [`craton_pages::PageHeap::tick`] is to be called each second, so that
//! memory goes back at the rate of the option `release_rate`. A program with threads gets one more for that, of ours, which goes on
//! while the program sleeps. A program without threads does it in passing, in requests that are slow anyway: a second thread
//! would make the C library slower, `fork` a risk and `unshare` an error. Only when it holds much free memory, which would stay if
//! the program slept now, the thread is started there too; it ends when all is done.
//!
//! **Threads.** Ours has a small stack, blocks all signals, never calls malloc, sleeps on a futex, and takes the page heap's lock for
//! one step at a time; a collapse, which can take milliseconds, runs without it. It is stopped before a fork, before
//! `unshare` and `setns`, and for good when the main thread ends by `pthread_exit`, since the C library would wait for it, and
//! when the program begins to restrict its system calls.
//!
//! **Failure.** Without a thread the program's own requests do its work.
//!
//! **Unsafe.** Joins the thread, once.

mod life;

use crate::front::OBJECT_CACHES;
use crate::front::{self, HEAP, PROCESSOR_CACHES, set_up};
use crate::segment::SEGMENT;
use crate::{lifecycle, limits, mailbox, nested};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_base::{Clock, CollapseError, HUGEPAGE_SIZE, HugePageId, HugePages, Pages};
use craton_os::thread::{self, Hidden};
use craton_os::{Bell, CoarseClock, process, thp};
use craton_pages::LONG_S;
use life::Life;

/// Bytes a second that go back by themselves, unless the option `release_rate` says otherwise: 64 MiB.
pub(crate) const DEFAULT_RATE: u64 = 64 << 20;
/// Hugepages with memory from which on the heap is worth looking after.
pub(crate) const FROM: HugePages = HugePages(8);
/// Free pages with memory for which a program without threads gets one: 16 MiB, and a part of what is in use.
const MUCH: Pages = HugePages(8).pages();
const MUCH_PART: u32 = 4;

const SECOND_NS: u64 = 1_000_000_000;
/// Seconds between two looks of the thread, while something changes and when nothing does.
const BUSY_S: u64 = 1;
const IDLE_S: u64 = 10;
/// Hugepages that are collapsed in a round: two milliseconds of work or less.
const COLLAPSES: u32 = 4;
/// Uses of the page heap between two looks at the clock.
pub(crate) const USES: u32 = 16;
/// How often a system call is tried again, a millisecond apart, for which the thread may not have left the process yet.
const TRIES: u32 = 200;
const TRY_NS: u64 = 1_000_000;

/// The option `background`: how far the heap may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Mode {
    /// It does nothing by itself.
    Off,
    /// In requests only.
    Inline,
    /// With a thread where that is worth it.
    Thread,
}

static MODE: AtomicU8 = AtomicU8::new(Mode::Thread as u8);
/// The option `release_rate`, and whether the heap knows it.
pub(crate) static RATE: AtomicU64 = AtomicU64::new(DEFAULT_RATE);
static PACED: AtomicBool = AtomicBool::new(false);

/// What is wanted, as whoever used the heap last saw: a look in passing, and a thread.
static WANTED: AtomicU8 = AtomicU8::new(0);
const LOOK: u8 = 1;
const THREAD: u8 = 2;
/// A limit on memory was passed.
const LIMITS: u8 = 4;
/// The thread sleeps until something happens, which it now has.
const WAKE: u8 = 8;
/// Signal handlers have left objects to free.
const LATER: u8 = 16;
/// Uses of the page heap, modulo 2³².
static USED: AtomicU32 = AtomicU32::new(0);
/// When the next look in passing is due, or earlier at how many hugepages with memory: a program that fills its heap once and then
/// computes has its first hugepages made whole while it grows. From when on a thread may be started.
static NEXT_LOOK_NS: AtomicU64 = AtomicU64::new(0);
static NEXT_LOOK_AT: AtomicU32 = AtomicU32::new(2 * FROM.0);
static NEXT_THREAD_NS: AtomicU64 = AtomicU64::new(0);
/// Threads of the program that have a cache: those that never allocate do not count.
static THREADS: AtomicUsize = AtomicUsize::new(0);

static LIFE: Life = Life::new();
/// The thread, and the process that started it; valid from its start until it was waited for.
static HIDDEN: AtomicUsize = AtomicUsize::new(0);
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Rung when the thread is to end.
static END: Bell = Bell::new();
/// Where another process nudges the thread.
pub(crate) const NUDGE: *const u8 = Bell::outside(&raw const END);
/// The thread sleeps until the heap is used again.
static ASLEEP: AtomicBool = AtomicBool::new(false);

/// Somebody does the heap's own work now.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Says how much memory the heap has and how much is in use, and how to find out how much of the rest can be given back; called under
/// its lock.
#[inline(always)]
pub(crate) fn note(backed: HugePages, in_use: Pages, free: impl FnOnce() -> Pages) {
    if backed < FROM {
        return;
    }
    let used = USED.load(Relaxed).wrapping_add(1);
    USED.store(used, Relaxed);
    wake();
    // Not all of a hugepage need have memory: the exact number is asked for when the rough one is large.
    let rough = Pages(backed.pages().0.saturating_sub(in_use.0));
    if used.is_multiple_of(USES) {
        look_at_time(backed);
    } else if is_much(rough, in_use) {
        note_free(in_use, free);
    }
}

#[inline(never)]
fn note_free(in_use: Pages, free: impl FnOnce() -> Pages) {
    if may_have_thread() && is_much(free(), in_use) {
        WANTED.fetch_or(THREAD, Relaxed);
    }
}

/// Something happens: a thread that sleeps until then is wanted.
#[inline(always)]
fn wake() {
    if ASLEEP.load(Relaxed) {
        WANTED.fetch_or(WAKE, Relaxed);
    }
}

/// As [`note`] now and then, for uses that leave the page heap as it is.
#[cold]
pub(crate) fn note_time() {
    let backed = SEGMENT.heap_backed_bytes.load(Relaxed) / HUGEPAGE_SIZE as u64;
    if backed >= u64::from(FROM.0) {
        wake();
        look_at_time(HugePages(backed as u32));
    }
}

#[inline(never)]
fn look_at_time(backed: HugePages) {
    if THREADS.load(Relaxed) > 1 && may_have_thread() {
        WANTED.fetch_or(THREAD, Relaxed);
    }
    let runs = LIFE.runs();
    let grown = backed.0 >= NEXT_LOOK_AT.load(Relaxed);
    if grown {
        NEXT_LOOK_AT.store(2 * backed.0, Relaxed);
        NEXT_LOOK_NS.store(0, Relaxed);
    }
    if !runs && (grown || CoarseClock.now_ns() >= NEXT_LOOK_NS.load(Relaxed)) {
        WANTED.fetch_or(LOOK, Relaxed);
    }
}

/// Whether so much is free that it must not be left to a program that sleeps.
fn is_much(free: Pages, in_use: Pages) -> bool {
    free >= MUCH && free.0 >= in_use.0 / MUCH_PART
}

/// Whether there is no thread, none is asked for yet, and one could be had.
fn may_have_thread() -> bool {
    WANTED.load(Relaxed) & THREAD == 0 && mode() == Mode::Thread && LIFE.may_start()
}

/// Asks for the thread: something is kept that must go back while the program sleeps.
pub(crate) fn want_thread() {
    if may_have_thread() {
        WANTED.fetch_or(THREAD, Relaxed);
    }
}

/// Whether there is a thread that will look after what is kept.
pub(crate) fn has_thread() -> bool {
    LIFE.is_running()
}

/// The option `background`.
pub(crate) fn mode() -> Mode {
    match MODE.load(Relaxed) {
        0 => Mode::Off,
        1 => Mode::Inline,
        _ => Mode::Thread,
    }
}

/// Does what was found worth it; to be called in a slow request, where no lock is held, since the C library allocates for a thread.
#[inline]
pub(crate) fn poke() {
    if WANTED.load(Relaxed) != 0 {
        // Not earlier: a small program does without it, and without the pages of the C library that it takes.
        thread::find_flag();
        work(true, true);
    }
    look_at_mailbox(true);
}

/// Does what another process asks.
#[inline]
fn look_at_mailbox(may_wait: bool) {
    if mailbox::is_asked() {
        look_at_mailbox_now(may_wait);
    }
}

#[cold]
fn look_at_mailbox_now(may_wait: bool) {
    if lifecycle::is_set_up() && !nested::is_nested() && is_calm() {
        let saved = process::errno();
        mailbox::look(may_wait);
        process::set_errno(saved);
    }
}

/// In a free that needed nothing of the heap: its thread may come by in no other request.
#[inline]
pub(crate) fn look_in_free() {
    look_at_mailbox(false);
}

/// As [`poke`], in a call that gives memory back. The C library makes such calls for the stacks of threads that ended, under the lock
/// that it would take to start one: from here a thread is started only in a process that never had one; nor is the
/// program called back.
#[inline]
pub(crate) fn poke_in_free() {
    if WANTED.load(Relaxed) != 0 {
        work(thread::never_started(), false);
    }
    look_at_mailbox(false);
}

/// Somebody is to look at the limits.
pub(crate) fn want_limits() {
    if WANTED.load(Relaxed) & LIMITS == 0 {
        WANTED.fetch_or(LIMITS, Relaxed);
    }
}

/// Somebody is to free what waits for it.
pub(crate) fn want_later() {
    WANTED.fetch_or(LATER, Relaxed);
}

/// The limits were looked at.
pub(crate) fn forget_limits() {
    WANTED.fetch_and(!LIMITS, Relaxed);
}

/// Whether nobody is at anything during which the program should not be called back: signals may be blocked, or a fork be under way.
fn is_calm() -> bool {
    LIFE.is_calm()
}

#[cold]
fn work(may_start: bool, may_call: bool) {
    // Before the library is set up completely, fork would not know of a thread, and options are not known.
    if !lifecycle::is_set_up() || nested::is_nested() {
        return;
    }
    if WANTED.load(Relaxed) & LATER != 0 {
        WANTED.fetch_and(!LATER, Relaxed);
        front::free_what_waits();
    }
    if WANTED.load(Relaxed) & WAKE != 0 {
        WANTED.fetch_and(!WAKE, Relaxed);
        END.nudge();
    }
    if WANTED.load(Relaxed) & LIMITS != 0 && may_call && is_calm() {
        forget_limits();
        limits::act();
    }
    let wanted = WANTED.load(Relaxed);
    if wanted & THREAD != 0 && may_start && CoarseClock.now_ns() >= NEXT_THREAD_NS.load(Relaxed) {
        WANTED.fetch_and(LIMITS | LATER, Relaxed);
        start();
    } else if wanted & LOOK != 0 {
        WANTED.fetch_and(!LOOK, Relaxed);
        look_in_passing();
    }
}

fn look_in_passing() {
    let (now, next) = (CoarseClock.now_ns(), NEXT_LOOK_NS.load(Relaxed));
    let mine = || NEXT_LOOK_NS.compare_exchange(next, now + SECOND_NS, Relaxed, Relaxed).is_ok();
    if now >= next && mine() && mode() != Mode::Off {
        nested::within(|| round(thread::on_main_stack()));
    }
}

/// Counts the program's threads.
pub(crate) fn count_threads(threads: usize) {
    THREADS.store(threads, Relaxed);
}

/// Starts the thread, unless somebody is at it or wants none.
#[cold]
fn start() {
    // A handler of a signal could fork, and so wait for what is begun here.
    thread::with_signals_blocked(|| {
        LIFE.start(
            || _ = join(),
            || {
                pace();
                END.silence();
                OWNER.store(process::id(), Relaxed);
                let hidden = Hidden::start(run);
                HIDDEN.store(hidden.map_or(0, Hidden::number), Relaxed);
                hidden.is_some()
            },
        )
    });
}

/// Ends the thread, and waits until it has ended; says whether there was one. It may be started again a second later.
fn stop() -> bool {
    LIFE.stop(
        || thread::sleep_ns(TRY_NS / 10),
        |end| thread::with_signals_blocked(end),
        || {
            END.ring();
            let was_ours = join();
            // Nobody would give it back.
            HEAP.drop_kept();
            NEXT_THREAD_NS.store(CoarseClock.now_ns() + SECOND_NS, Relaxed);
            was_ours
        },
    )
}

/// Waits for the thread's end. In a process that was cloned past the C library there is none; says whether there was.
fn join() -> bool {
    let ours = OWNER.load(Relaxed) == process::id();
    if ours {
        // SAFETY: the caller has the state to himself, so it is the thread that this process started last, and joined once.
        unsafe { Hidden::from_number(HIDDEN.load(Relaxed)).join() };
    }
    ours
}

/// Makes a call that the system may refuse to a process with more than one thread; `refused` says whether it did so. What is left in
/// `errno` is the call's own.
pub fn without_thread<R>(mut call: impl FnMut() -> R, refused: impl Fn(&R) -> bool) -> R {
    LIFE.hold();
    // One that was waited for may take a moment to leave the process.
    let saved = process::errno();
    let mut tries = if stop() { TRIES } else { 1 };
    let result = loop {
        process::set_errno(saved);
        let result = call();
        tries -= 1;
        if tries == 0 || !refused(&result) {
            break result;
        }
        thread::sleep_ns(TRY_NS);
    };
    LIFE.release();
    result
}

/// Ends the thread for good: it would be in the program's way. Nor does the heap make other system calls from now on than those for
/// memory and locks. Leaves `errno` alone.
pub fn seal() {
    let saved = process::errno();
    thp::keep_answer();
    LIFE.seal();
    stop();
    process::set_errno(saved);
}

/// No thread is started until [`release`], by anybody.
pub(crate) fn hold() {
    LIFE.hold();
}

pub(crate) fn release() {
    LIFE.release();
}

/// Before a fork: the process is copied with the program's threads alone.
pub(crate) fn before_fork() {
    LIFE.hold();
    stop();
}

/// After a fork, in the parent.
pub(crate) fn after_fork() {
    LIFE.release();
}

/// In a forked child what others were at is ended for them.
pub(crate) fn forked() {
    thread::note_main();
    HEAP.forked();
    AT_WORK.store(false, Relaxed);
    ASLEEP.store(false, Relaxed);
    LIFE.forked();
    mailbox::forked();
    WANTED.fetch_and(LATER, Relaxed);
}

/// Sets how far the heap may go.
pub(crate) fn set_mode(mode: Mode) {
    MODE.store(mode as u8, Relaxed);
    if mode != Mode::Thread {
        stop();
    }
}

/// As [`set_mode`], in the thread itself or where nobody may wait for it: it ends when it next looks.
pub(crate) fn set_mode_later(mode: Mode) {
    MODE.store(mode as u8, Relaxed);
    END.nudge();
}

/// Sets the rate, of a heap that is looked after too.
pub(crate) fn set_rate(bytes_per_s: u64) {
    RATE.store(bytes_per_s, Relaxed);
    if PACED.load(Relaxed) {
        HEAP.set_release_rate(bytes_per_s);
    }
}

fn pace() {
    if !PACED.swap(true, Relaxed) {
        HEAP.set_release_rate(RATE.load(Relaxed));
    }
}

fn run() {
    let (mut last, mut quiet_s) = (Pages(0), 0);
    let mut used = USED.load(Relaxed);
    loop {
        let rest_s = if quiet_s > LONG_S { IDLE_S } else { BUSY_S };
        let sleeps_on = quiet_s > LONG_S && may_sleep_on();
        let ended = if sleeps_on { sleep_on(used) } else { END.wait_ns(rest_s * SECOND_NS) };
        if ended {
            return;
        }
        if mailbox::is_asked() {
            mailbox::look(false);
        }
        if mode() != Mode::Thread && LIFE.end_by_itself() {
            HEAP.drop_kept();
            return;
        }
        let (changed, in_use) = round(true);
        used = USED.load(Relaxed);
        quiet_s = if changed || sleeps_on || in_use != last { 0 } else { quiet_s.saturating_add(rest_s) };
        last = in_use;
        // What is still free by now will be wanted again, as far as demand can say.
        if quiet_s > LONG_S && THREADS.load(Relaxed) <= 1 && LIFE.end_by_itself() {
            return;
        }
    }
}

/// Sleeps until the heap has been used more often than `used` says; says whether the thread is to end.
fn sleep_on(used: u32) -> bool {
    ASLEEP.store(true, Relaxed);
    // Whoever uses the heap counts and then looks whether we sleep, under its lock: either was before this, and we see the count.
    drop(HEAP.pages());
    let ended = if USED.load(Relaxed) == used { END.wait() } else { END.is_rung() };
    ASLEEP.store(false, Relaxed);
    ended
}

/// Whether nothing will be there to do until the heap is used: all that may be given back is, and hugepages have had their time.
fn may_sleep_on() -> bool {
    HEAP.surplus() == Pages(0) && !limits::heeds_pressure()
}

/// Does what the heap's own thread does in a second, for a program that has set `background=0` and has a thread of its own for such work;
/// to be called about each second, with 16 KiB of stack to spare. Says whether anything was done: if not for some minutes, each ten seconds are enough.
/// A debugger calls it, too, so that a process which sleeps does what `craton set` asks.
pub fn actions() -> bool {
    if !lifecycle::is_set_up() || nested::is_nested() || !set_up() {
        return false;
    }
    let saved = process::errno();
    look_at_mailbox(true);
    let (changed, _) = nested::within(|| round(true));
    let went = OBJECT_CACHES.look(&HEAP, true);
    process::set_errno(saved);
    changed || went
}

/// One look at the heap; says whether it did anything, and how much is in use. Only one is taken at a time. `deep` says whether the
/// stack has room for reading files.
fn round(deep: bool) -> (bool, Pages) {
    // ORDERING: Acquire pairs with the Release below.
    if AT_WORK.swap(true, Ordering::Acquire) {
        return (true, Pages(0));
    }
    pace();
    PROCESSOR_CACHES.look(&HEAP);
    let (tick, in_use) = HEAP.tick();
    let kept = HEAP.age_kept() | OBJECT_CACHES.look(&HEAP, false);
    let collapsed = collapse_some();
    let limited = limits::round(deep);
    // ORDERING: Release pairs with the Acquire above.
    AT_WORK.store(false, Ordering::Release);
    (tick.released + limited > 0 || collapsed > 0 || kept, in_use)
}

/// Collapses a few hugepages, each without the lock; returns how many.
fn collapse_some() -> u32 {
    let mut done = 0;
    if !HEAP.collapse_is_due() {
        return 0;
    }
    while done < COLLAPSES
        && !END.is_rung()
        && let Some(id) = HEAP.begin_collapse()
    {
        let start = CoarseClock.now_ns();
        let result = thp::collapse(HEAP.address(id.first_page()) as usize, HugePages(1).bytes().0);
        let goes_well = HEAP.end_collapse(id, result, CoarseClock.now_ns() - start);
        done += u32::from(result.is_ok());
        if !goes_well {
            break;
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_at_least_16_mebibytes_and_a_quarter_of_what_is_in_use() {
        assert!(is_much(MUCH, Pages(0)));
        assert!(!is_much(Pages(MUCH.0 - 1), Pages(0)));
        assert!(is_much(MUCH, Pages(4 * MUCH.0)));
        assert!(!is_much(MUCH, Pages(4 * MUCH.0 + 4)));
        assert!(is_much(Pages(1 << 30), Pages(u32::MAX)), "no overflow");
    }
}
