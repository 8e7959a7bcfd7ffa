//! Background work: memory release, hugepage collapse, and the library's thread (docs/limits.md).
//!
//! **What.** A heap of at least [`FROM`] hugepages gets a round each second. A program with threads
//! gets the thread as soon as its heap grows, since a free may not start one. Others run rounds in
//! slow paths: a second thread would slow the C library down, endanger `fork` and break `unshare`.
//! They get it while [much](is_much) memory is free, which would stay if the program slept.
//!
//! **Bound.** The thread returns memory that was not wanted for [`DEMAND_S`] 10 s after its last
//! use.
//!
//! ```text
//! request ─ want ──► wanted ──► claim, in a slow request without locks
//! thread   rest 1 s ─► turn ─► rest …   quiet for QUIET_S: until the heap is used   alone and quiet: ends
//! ```
//! Requests write `used` and `wanted` under the page heap's lock.

pub(crate) mod life;
pub(crate) mod thread;

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_base::{Clock, HugePages, Pages};
use craton_os::thread::{sleep_ns, with_signals_blocked};
use craton_pages::{AUTO_RATE, DEMAND_S};
use life::Life;

pub(crate) const DEFAULT_RATE: u64 = AUTO_RATE;
pub(crate) const FROM: HugePages = HugePages(8);
/// Free memory, and a part of the use, that earn a program without threads the thread.
const MUCH: Pages = HugePages(8).pages();
const MUCH_PART: u32 = 8;

const SECOND_NS: u64 = 1_000_000_000;
const BUSY_S: u64 = 1;
const IDLE_S: u64 = 10;
/// Without change, until the thread is idle.
const QUIET_S: u64 = 2 * DEMAND_S;
/// Milliseconds in a request's round. The thread's are bounded by time.
const COLLAPSES: u32 = 4;
/// After these with all collapses used the thread starts. A heap's growth alone needs fewer.
const FULL_ROUNDS: u32 = 4;
/// A fork starts the thread, since writes then break hugepages.
const FORK_FROM: HugePages = HugePages(32);
/// Between two looks at the clock.
pub(crate) const USES: u32 = 16;
const TRY_NS: u64 = 100_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Mode {
    Off,
    Inline,
    Thread,
}

/// In order of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Chore {
    /// Frees what signal handlers deferred.
    Later = 16,
    Wake = 8,
    Refill = 64,
    /// Usage left the watermark band.
    Limits = 4,
    Thread = 2,
    /// The thread cannot start here.
    Release = 32,
    /// Copies the size classes into the shared statistics.
    Publish = 128,
    Round = 1,
}

impl Chore {
    pub(crate) const ALL: [Self; 8] =
        [Self::Later, Self::Wake, Self::Refill, Self::Limits, Self::Thread, Self::Release, Self::Publish, Self::Round];
}

pub(crate) struct Errands {
    pub(crate) free_later: fn(),
    /// `may_wait`: for the thread's end.
    pub(crate) read_mailbox: fn(may_wait: bool),
    pub(crate) begin_recording: fn(),
}

pub(crate) trait Tended {
    fn set_rate(&self, bytes_per_s: u64);
    /// Returns whether anything changed, and the pages in use.
    fn tick(&self) -> (bool, Pages);
    /// Returns whether it succeeded, and whether there may be more.
    fn collapse(&self, is_first: bool) -> (bool, bool);
    /// Returns whether to go on.
    fn refill(&self) -> bool;
    fn set_helped(&self, helped: bool);
    /// Returns the pages released. `deep`: the stack allows reading files.
    fn keep_limits(&self, deep: bool) -> u64;
    /// Until the heap is used. Takes the heap's lock.
    fn is_settled(&self) -> bool;
    fn drop_kept(&self);
    /// In bounded time.
    fn release_now(&self);
}

pub(crate) trait Helper {
    fn start(&self, run: fn()) -> bool;
    /// `false` in a process that did not start the thread.
    fn join(&self) -> bool;
    fn ring(&self);
    fn nudge(&self);
    fn is_rung(&self) -> bool;
    fn has_company(&self) -> bool;
    /// Returns whether to end.
    fn sleep(&self, ns: Option<u64>) -> bool;
}

pub(crate) struct Background<C, T> {
    clock: C,
    pub(crate) thread: T,
    pub(crate) life: Life,
    mode: AtomicU8,
    rate: AtomicU64,
    paced: AtomicBool,
    wanted: AtomicU8,
    used: AtomicU32,
    /// A growing heap gets its first collapses before its program only computes.
    next_round_ns: AtomicU64,
    next_round_at: AtomicU32,
    next_thread_ns: AtomicU64,
    threads: AtomicUsize,
    full_rounds: AtomicU32,
    asleep: AtomicBool,
    refills: AtomicBool,
    /// Woken for refills alone.
    rests_on: AtomicBool,
    /// The process had other threads at the last start.
    stays: AtomicBool,
    at_work: AtomicBool,
}

pub(crate) struct Rounds {
    in_use: Pages,
    quiet_s: u64,
    used: u32,
}

impl<C: Clock, T: Helper> Background<C, T> {
    pub(crate) const fn new(clock: C, thread: T) -> Self {
        Self {
            clock,
            thread,
            life: Life::new(),
            mode: AtomicU8::new(Mode::Thread as u8),
            rate: AtomicU64::new(DEFAULT_RATE),
            paced: AtomicBool::new(false),
            wanted: AtomicU8::new(0),
            used: AtomicU32::new(0),
            next_round_ns: AtomicU64::new(0),
            next_round_at: AtomicU32::new(2 * FROM.0),
            next_thread_ns: AtomicU64::new(0),
            threads: AtomicUsize::new(0),
            full_rounds: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            refills: AtomicBool::new(false),
            rests_on: AtomicBool::new(false),
            stays: AtomicBool::new(false),
            at_work: AtomicBool::new(false),
        }
    }

    /// Under the page heap's lock. `free` is exact; `backed` less `in_use` bounds it.
    #[inline(always)]
    pub(crate) fn record_use(&self, backed: HugePages, in_use: Pages, free: impl FnOnce() -> Pages) {
        if backed < FROM {
            return;
        }
        let used = self.used.load(Relaxed).wrapping_add(1);
        self.used.store(used, Relaxed);
        self.wake();
        let rough = Pages(backed.pages().0.saturating_sub(in_use.0));
        if used.is_multiple_of(USES) {
            self.check_time(backed);
        } else if is_much(rough, in_use) {
            self.record_free(in_use, free);
        }
    }

    #[inline(never)]
    fn record_free(&self, in_use: Pages, free: impl FnOnce() -> Pages) {
        let is_wanted = self.wants(Chore::Thread) && self.wants(Chore::Release);
        if !is_wanted && self.mode() == Mode::Thread && self.life.may_start() && is_much(free(), in_use) {
            self.want(Chore::Thread);
            self.want(Chore::Release);
        }
    }

    pub(crate) fn record_time(&self, backed: HugePages) {
        if backed >= FROM {
            self.wake();
            self.check_time(backed);
        }
    }

    #[inline(always)]
    fn wake(&self) {
        if self.asleep.load(Relaxed) {
            self.want(Chore::Wake);
        }
    }

    #[inline]
    pub(crate) fn want_refill(&self) {
        if !self.refills.load(Relaxed) && self.life.is_running() {
            self.refills.store(true, Relaxed);
            self.want(Chore::Refill);
        }
    }

    #[inline(never)]
    fn check_time(&self, backed: HugePages) {
        if self.threads.load(Relaxed) > 1 || self.thread.has_company() {
            self.want_thread();
        }
        let runs = self.life.runs();
        let grown = backed.0 >= self.next_round_at.load(Relaxed);
        if grown {
            self.next_round_at.store(2 * backed.0, Relaxed);
            self.next_round_ns.store(0, Relaxed);
        }
        if !runs && (grown || self.clock.now_ns() >= self.next_round_ns.load(Relaxed)) {
            self.want(Chore::Round);
        }
    }

    fn may_have_thread(&self) -> bool {
        !self.wants(Chore::Thread) && self.mode() == Mode::Thread && self.life.may_start()
    }

    /// Memory must be released while the program sleeps.
    pub(crate) fn want_thread(&self) {
        if self.may_have_thread() {
            self.want(Chore::Thread);
        }
    }

    pub(crate) fn starts_after_fork(&self, backed: HugePages) -> bool {
        if backed < FORK_FROM {
            return false;
        }
        // The fork ended the thread; no later request may restart it.
        self.next_thread_ns.store(0, Relaxed);
        self.want_thread();
        self.claim(Chore::Thread, true, false)
    }

    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed) != 0
    }

    #[inline]
    fn wants(&self, chore: Chore) -> bool {
        self.wanted.load(Relaxed) & chore as u8 != 0
    }

    pub(crate) fn want(&self, chore: Chore) {
        if !self.wants(chore) {
            self.wanted.fetch_or(chore as u8, Relaxed);
        }
    }

    pub(crate) fn forget(&self, chore: Chore) {
        self.wanted.fetch_and(!(chore as u8), Relaxed);
    }

    /// `may_start`: the C library may allocate for a thread. `may_call`: the program may be called.
    pub(crate) fn claim(&self, chore: Chore, may_start: bool, may_call: bool) -> bool {
        if !self.wants(chore) {
            return false;
        }
        match chore {
            Chore::Limits if !may_call || !self.life.is_calm() => return false,
            Chore::Thread if !may_start || self.clock.now_ns() < self.next_thread_ns.load(Relaxed) => return false,
            // A start that must wait comes with the next request.
            Chore::Release => {
                self.forget(chore);
                return !may_start && self.life.may_start() && self.clock.now_ns() >= self.next_thread_ns.load(Relaxed);
            }
            Chore::Refill => {
                self.forget(chore);
                self.rests_on.store(true, Relaxed);
            }
            Chore::Thread => _ = self.wanted.fetch_and(Chore::Limits as u8 | Chore::Later as u8, Relaxed),
            _ => self.forget(chore),
        }
        true
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.mode.load(Relaxed) {
            0 => Mode::Off,
            1 => Mode::Inline,
            _ => Mode::Thread,
        }
    }

    pub(crate) fn set_mode(&self, mode: Mode, heap: &impl Tended) {
        self.mode.store(mode as u8, Relaxed);
        if mode != Mode::Thread {
            self.stop(heap);
        }
    }

    /// In the thread, or under a C library lock.
    pub(crate) fn set_mode_later(&self, mode: Mode) {
        self.mode.store(mode as u8, Relaxed);
        self.thread.nudge();
    }

    pub(crate) fn rate(&self) -> u64 {
        self.rate.load(Relaxed)
    }

    pub(crate) fn set_rate(&self, bytes_per_s: u64, heap: &impl Tended) {
        self.rate.store(bytes_per_s, Relaxed);
        if self.paced.load(Relaxed) {
            heap.set_rate(bytes_per_s);
            self.want_thread();
        }
    }

    fn pace(&self, heap: &impl Tended) {
        if !self.paced.swap(true, Relaxed) {
            heap.set_rate(self.rate());
        }
    }

    pub(crate) fn count_threads(&self, threads: usize) {
        self.threads.store(threads, Relaxed);
    }

    #[cold]
    pub(crate) fn start(&self, run: fn(), heap: &impl Tended) {
        // A signal handler's fork would wait for this start.
        with_signals_blocked(|| {
            self.life.start(
                || _ = self.thread.join(),
                || {
                    self.pace(heap);
                    self.stays.store(self.thread.has_company(), Relaxed);
                    self.refills.store(false, Relaxed);
                    let starts = self.thread.start(run);
                    heap.set_helped(starts);
                    starts
                },
            )
        });
    }

    /// Returns whether it ran. It may restart a second later.
    pub(crate) fn stop(&self, heap: &impl Tended) -> bool {
        self.life.stop(
            || sleep_ns(TRY_NS),
            |end| with_signals_blocked(end),
            || {
                self.thread.ring();
                let was_ours = self.thread.join();
                heap.set_helped(false);
                // Only the thread would unmap these in time.
                heap.drop_kept();
                self.next_thread_ns.store(self.clock.now_ns() + SECOND_NS, Relaxed);
                was_ours
            },
        )
    }

    pub(crate) fn forked(&self, forks: u32) {
        self.at_work.store(false, Relaxed);
        self.asleep.store(false, Relaxed);
        self.refills.store(false, Relaxed);
        self.life.forked(forks);
        self.wanted.fetch_and(Chore::Later as u8, Relaxed);
    }

    pub(crate) fn rounds(&self) -> Rounds {
        Rounds { in_use: Pages(0), quiet_s: 0, used: self.used.load(Relaxed) }
    }

    /// `false`: end.
    pub(crate) fn rest(&self, rounds: &mut Rounds, heap: &impl Tended) -> bool {
        if rounds.quiet_s <= QUIET_S {
            return self.rest_and_refill(heap);
        }
        let most = if heap.is_settled() { None } else { Some(IDLE_S * SECOND_NS) };
        let ended = self.sleep_on(rounds.used, most, heap);
        // Growth may have woken it.
        self.refill(heap);
        !ended
    }

    fn rest_and_refill(&self, heap: &impl Tended) -> bool {
        self.refill(heap);
        let end_ns = self.clock.now_ns() + BUSY_S * SECOND_NS;
        let mut left_ns = BUSY_S * SECOND_NS;
        let mut rests_on = true;
        while rests_on && left_ns > 0 {
            if self.thread.sleep(Some(left_ns)) {
                return false;
            }
            rests_on = self.rests_on.swap(false, Relaxed);
            self.refill(heap);
            left_ns = end_ns.saturating_sub(self.clock.now_ns());
        }
        true
    }

    fn refill(&self, heap: &impl Tended) {
        if self.refills.load(Relaxed) {
            while !self.thread.is_rung() && heap.refill() {}
            // Other requests follow one that saw `true` while growth goes on.
            self.refills.store(false, Relaxed);
        }
    }

    /// Returns whether to end.
    fn sleep_on(&self, used: u32, most: Option<u64>, heap: &impl Tended) -> bool {
        self.asleep.store(true, Relaxed);
        // Requests count themselves and check `asleep` under the page heap's lock. We take it: each
        // comes before, and we see its count, or after, and it wakes us.
        heap.is_settled();
        let is_same = self.used.load(Relaxed) == used;
        let ended = if is_same { self.thread.sleep(most) } else { self.thread.is_rung() };
        self.asleep.store(false, Relaxed);
        ended
    }

    /// `false`: end.
    pub(crate) fn turn(&self, rounds: &mut Rounds, heap: &impl Tended) -> bool {
        if self.mode() != Mode::Thread && self.life.end_by_itself() {
            heap.drop_kept();
            heap.set_helped(false);
            return false;
        }
        let rested_s = if rounds.quiet_s > QUIET_S { IDLE_S } else { BUSY_S };
        let unused = self.used.load(Relaxed) == rounds.used;
        let (changed, in_use) = self.round(true, u32::MAX, heap);
        rounds.used = self.used.load(Relaxed);
        let is_quiet = !changed && unused && in_use == rounds.in_use;
        rounds.quiet_s = if is_quiet { rounds.quiet_s.saturating_add(rested_s) } else { 0 };
        rounds.in_use = in_use;
        let alone = self.threads.load(Relaxed) <= 1 && !self.stays.load(Relaxed);
        let ends = rounds.quiet_s > QUIET_S && alone && self.life.end_by_itself();
        if ends {
            heap.set_helped(false);
        }
        !ends
    }

    pub(crate) fn round_in_request(&self, deep: bool, heap: &impl Tended) {
        let (now, next) = (self.clock.now_ns(), self.next_round_ns.load(Relaxed));
        let mine = || self.next_round_ns.compare_exchange(next, now + SECOND_NS, Relaxed, Relaxed).is_ok();
        if now >= next && mine() && self.mode() != Mode::Off {
            self.round(deep, COLLAPSES, heap);
        }
    }

    pub(crate) fn round(&self, deep: bool, collapses: u32, heap: &impl Tended) -> (bool, Pages) {
        // ORDERING: pairs with the Release below.
        if self.at_work.swap(true, Ordering::Acquire) {
            return (true, Pages(0));
        }
        self.pace(heap);
        let (ticked, in_use) = heap.tick();
        let (mut collapsed, mut first, mut more) = (0, true, true);
        while more && collapsed < collapses && !self.thread.is_rung() {
            let done;
            (done, more) = heap.collapse(first);
            collapsed += u32::from(done);
            first = false;
        }
        let limited = heap.keep_limits(deep);
        let full = if collapsed == collapses { self.full_rounds.load(Relaxed) + 1 } else { 0 };
        self.full_rounds.store(full, Relaxed);
        if full >= FULL_ROUNDS {
            self.want_thread();
        }
        // ORDERING: pairs with the Acquire above.
        self.at_work.store(false, Ordering::Release);
        (ticked || collapsed > 0 || limited > 0, in_use)
    }
}

fn is_much(free: Pages, in_use: Pages) -> bool {
    free >= MUCH && free.0 >= in_use.0 / MUCH_PART
}

#[cfg(all(test, not(loom)))]
mod tests;
