//! What the heap does by itself: a thread that gives memory back and keeps the heap on hugepages.
//!
//! **What.** Once the heap has grown beyond a small program's, the next request that goes to it starts one thread of our own,
//! which calls [`craton_pages::PageHeap::tick`] each second: memory goes back at the rate of the option `release_rate` also while the
//! program sleeps. When nothing has changed for longer than demand is remembered, it looks every ten seconds only.
//!
//! **Threads.** The thread has a small stack, blocks all signals, never calls malloc, and takes the page heap's lock for one step at
//! a time; a collapse, which can take milliseconds, runs without it. A fork leaves it behind; the child starts its own when it
//! comes to it.
//!
//! **Failure.** Without a thread the heap works as before, and memory goes back when the program asks for it.

use crate::front::HEAP;
use crate::lifecycle;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use craton_base::{Clock, CollapseError, HugePageId, HugePages, Pages};
use craton_os::{CoarseClock, thp, thread};
use craton_pages::LONG_S;

/// Bytes a second that go back by themselves, unless the option `release_rate` says otherwise: 64 MiB.
pub(crate) const DEFAULT_RATE: u64 = 64 << 20;
/// Hugepages with memory from which on the thread is worth having.
pub(crate) const FROM: HugePages = HugePages(8);

/// The option `background`.
pub(crate) static ALLOWED: AtomicBool = AtomicBool::new(true);
/// The option `release_rate`.
pub(crate) static RATE: AtomicU64 = AtomicU64::new(DEFAULT_RATE);
/// The heap is large enough, as whoever used it last saw.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The hugepage that the thread collapses at the moment, plus 1; changed under the page heap's lock, which a fork holds.
pub(crate) static COLLAPSING: AtomicU32 = AtomicU32::new(0);
static STATE: AtomicU8 = AtomicU8::new(NONE);

const NONE: u8 = 0;
/// There is a thread, or somebody is about to make it.
const STARTED: u8 = 1;
/// The system refused one.
const REFUSED: u8 = 2;

const SECOND_NS: u64 = 1_000_000_000;
/// Seconds between two looks, while something changes and when nothing does.
const BUSY_S: u64 = 1;
const IDLE_S: u64 = 10;
/// Hugepages that are collapsed in a round.
const COLLAPSES: u32 = 4;

/// Says how much memory the heap has; called under its lock.
pub(crate) fn note(backed: HugePages) {
    if backed >= FROM && !WANTED.load(Relaxed) && STATE.load(Relaxed) == NONE {
        WANTED.store(true, Relaxed);
    }
}

/// Starts the thread if that was found worth it; to be called where no lock is held, since the C library allocates for it.
#[inline]
pub(crate) fn poke() {
    if WANTED.load(Relaxed) {
        start();
    }
}

#[cold]
fn start() {
    // Before the library is set up completely, fork would not know of the thread; and somebody else may be at it.
    if !lifecycle::is_set_up()
        || !ALLOWED.load(Relaxed)
        || STATE.compare_exchange(NONE, STARTED, Relaxed, Relaxed).is_err()
    {
        return;
    }
    WANTED.store(false, Relaxed);
    HEAP.set_release_rate(RATE.load(Relaxed));
    if !thread::start_hidden(run) {
        STATE.store(REFUSED, Relaxed);
    }
}

/// Sets the rate, of a thread that runs too.
pub(crate) fn set_rate(bytes_per_s: u64) {
    RATE.store(bytes_per_s, Relaxed);
    if STATE.load(Relaxed) == STARTED {
        HEAP.set_release_rate(bytes_per_s);
    }
}

/// In a forked child there is no thread any more; what it was at is ended for it.
pub(crate) fn forked() {
    if let Some(id) = COLLAPSING.load(Relaxed).checked_sub(1) {
        HEAP.end_collapse(HugePageId(id), Err(CollapseError::Again), 0);
    }
    STATE.store(NONE, Relaxed);
    WANTED.store(false, Relaxed);
}

fn run() -> ! {
    let (mut last, mut quiet_s) = (Pages(0), 0);
    loop {
        let rest_s = if quiet_s > LONG_S { IDLE_S } else { BUSY_S };
        thread::sleep_ns(rest_s * SECOND_NS);
        if !ALLOWED.load(Relaxed) {
            continue;
        }
        let (tick, in_use) = HEAP.tick();
        let collapsed = collapse_some();
        let changed = in_use != last || tick.released > 0 || collapsed > 0;
        quiet_s = if changed { 0 } else { quiet_s.saturating_add(rest_s) };
        last = in_use;
    }
}

/// Collapses a few hugepages, each without the lock; returns how many.
fn collapse_some() -> u32 {
    let mut done = 0;
    if !HEAP.collapse_is_due() {
        return 0;
    }
    while done < COLLAPSES
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
