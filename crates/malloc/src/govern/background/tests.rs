//! Minutes of a process's life in virtual time.

use super::*;
use crate::tests::virtual_process::{MIB, Process, SECOND_NS, process};
use core::cell::{Cell, RefCell};
use craton_sim::ThpMode;
use std::boxed::Box;
use std::vec::Vec;

const MUCH_FREE: u64 = 100 * MIB;

/// Keeps a filled heap for `kept_s`, then frees 63 of 64 objects.
fn much_free(p: &'static Process, kept_s: u64) -> Vec<*mut u8> {
    let objects = p.fill(MUCH_FREE);
    p.sleep(kept_s);
    let left = p.leave_holes(objects);
    assert!(p.backed() > MUCH_FREE / 20 * 19);
    left
}

/// `life` takes a second.
fn seconds_until_half_is_back(p: &'static Process, most: u64, life: impl Fn()) -> Option<u64> {
    let start = p.now_s();
    while p.backed() > MUCH_FREE / 2 {
        if p.now_s() - start >= most {
            return None;
        }
        life();
    }
    Some(p.now_s() - start)
}

#[test]
fn a_program_that_sleeps_on_much_free_memory_gets_a_thread_that_gives_it_back() {
    let p = process(96);
    much_free(p, 0);
    assert!(p.background.life.is_running() && p.thread.starts.get() == 1);
    let took = seconds_until_half_is_back(p, 200, || p.sleep(1)).expect("it goes back");
    assert!((DEMAND_S..10).contains(&took), "after {took} s: what was in use in the last {DEMAND_S} s may be wanted");
}

#[test]
fn what_was_held_for_long_goes_back_as_soon_as_what_was_held_for_a_moment() {
    for kept_s in [1, 3, 100] {
        let p = process(96);
        much_free(p, kept_s);
        let took = seconds_until_half_is_back(p, 400, || p.sleep(1)).expect("it goes back");
        assert!((DEMAND_S - 1..10).contains(&took), "held for {kept_s} s, back after {took} s");
    }
}

#[test]
fn a_sleeping_program_has_no_surplus_10_seconds_after_its_frees() {
    let p = process(96);
    let left = much_free(p, 3);
    p.sleep(10);
    let most = p.heap.in_use().bytes().0 as u64;
    assert!(p.backed() <= most + most / 8, "{} of {most}", p.backed());
    left.into_iter().for_each(|object| p.free(object));
}

#[test]
fn a_program_that_goes_on_gives_memory_back_without_a_thread() {
    let p = process(96);
    p.background.set_mode(Mode::Inline, p);
    much_free(p, 0);
    let took = seconds_until_half_is_back(p, 200, || p.work(1)).expect("it goes back");
    assert!((DEMAND_S..10).contains(&took), "after {took} s");
    assert_eq!(p.thread.starts.get(), 0);
}

#[test]
fn without_background_work_nothing_goes_back() {
    let p = process(96);
    p.background.set_mode(Mode::Off, p);
    much_free(p, 0);
    let before = p.backed();
    p.work(150);
    assert!(p.backed() >= before && p.thread.starts.get() == 0);
}

#[test]
fn memory_goes_back_at_the_rate_that_is_set() {
    for rate in [2 * MIB, 8 * MIB] {
        let p = process(96);
        p.background.set_rate(rate, p);
        much_free(p, 0);
        seconds_until_half_is_back(p, 200, || p.sleep(1)).expect("it goes back");
        let (before, start) = (p.backed(), p.now_s());
        p.sleep(3);
        let (went, seconds) = (before - p.backed(), p.now_s() - start);
        assert!(went <= rate * (seconds + 1), "{went} bytes in {seconds} s at {rate} a second");
        assert!(went >= rate * (seconds - 1), "{went} bytes in {seconds} s at {rate} a second");
    }
}

#[test]
fn a_rate_that_is_set_later_counts_for_a_heap_that_has_one() {
    let p = process(96);
    p.background.set_rate(0, p);
    much_free(p, 0);
    p.sleep(150);
    let before = p.backed();
    assert!(before > MUCH_FREE / 20 * 19, "at a rate of 0 nothing goes back by itself: {before}");
    p.background.set_rate(DEFAULT_RATE, p);
    p.go_on();
    p.sleep(20);
    assert!(p.backed() < before / 2);
    assert_eq!(p.background.rate(), DEFAULT_RATE);
}

#[test]
fn a_thread_that_has_nothing_left_to_do_ends_and_another_comes_when_it_is_needed() {
    let p = process(96);
    let left = much_free(p, 0);
    p.sleep(60);
    assert!(!p.background.life.runs(), "a program without threads does not keep it");
    left.into_iter().for_each(|object| p.free(object));
    much_free(p, 0);
    assert!(p.background.life.is_running());
    assert_eq!(p.thread.starts.get(), 2);
}

#[test]
fn a_busy_program_without_threads_gets_none() {
    let p = process(96);
    let mut objects = p.fill(100 * MIB);
    let n = objects.len();
    for round in 0..100_000 {
        let at = round * 7919 % n;
        p.free(objects[at]);
        objects[at] = p.alloc(4000 - round % 16);
        if round % 1000 == 0 {
            p.clock.advance(SECOND_NS / 10);
        }
    }
    assert_eq!(p.thread.starts.get(), 0);
}

#[test]
fn a_program_with_threads_gets_one_more_and_keeps_it() {
    let p = process(64);
    p.background.count_threads(2);
    let objects = p.fill(40 * MIB);
    p.go_on();
    assert!(p.background.life.is_running());
    let starts = p.thread.starts.get();
    p.sleep(1000);
    assert!(p.background.life.is_running() && p.thread.starts.get() == starts);
    objects.into_iter().for_each(|object| p.free(object));
}

#[test]
fn a_program_whose_other_threads_only_sleep_gets_one_when_its_heap_grows_and_keeps_it() {
    let p = process(96);
    p.thread.company.set(true);
    let objects = p.fill(40 * MIB);
    assert!(p.background.life.is_running(), "before any free");
    objects.into_iter().for_each(|object| p.free(object));
    p.sleep(1000);
    assert!(p.background.life.is_running() && p.thread.starts.get() == 1);
}

#[test]
fn a_free_that_may_start_no_thread_releases_much_free_memory_itself() {
    let p = process(96);
    let objects = p.fill(MUCH_FREE);
    p.thread.company.set(true);
    p.background.wanted.store(0, Relaxed);
    p.only_frees.set(true);
    let left = p.leave_holes(objects);
    assert_eq!((p.thread.starts.get(), p.background.life.runs()), (0, false));
    assert!(p.backed() < MUCH_FREE / 3, "{} bytes: 16 MiB stay, and what is in front", p.backed());
    assert!(p.heap.in_use().bytes().0 as u64 * 2 + 20 * MIB > p.backed());
    p.only_frees.set(false);
    p.go_on();
    assert!(p.background.life.is_running(), "the next slow request starts it");
    left.into_iter().for_each(|object| p.free(object));
}

#[test]
fn a_free_releases_nothing_where_a_thread_runs_or_may_start_or_never_will() {
    let p = process(4);
    let b = &p.background;
    let release = |may_start| {
        b.want(Chore::Release);
        (b.claim(Chore::Release, may_start, true), b.wants(Chore::Release))
    };
    assert_eq!((release(false), release(true)), ((true, false), (false, false)));
    b.start(|| unreachable!("tests run it"), p);
    assert_eq!(release(false), (false, false), "one runs");
    assert!(b.stop(p));
    assert_eq!(release(false), (false, false), "one may start in a second");
    p.clock.advance(SECOND_NS);
    assert_eq!(release(false), (true, false));
    b.life.seal();
    assert_eq!(release(false), (false, false), "rounds in requests regard demand");
}

#[test]
fn a_small_program_is_left_alone() {
    let p = process(64);
    p.background.count_threads(2);
    let objects = p.fill(8 * MIB);
    p.work(5);
    assert!(!p.background.is_wanted() && p.thread.starts.get() == 0);
    objects.into_iter().for_each(|object| p.free(object));
}

#[test]
fn an_idle_thread_sleeps_until_the_heap_is_used() {
    let p = process(96);
    p.background.count_threads(2);
    much_free(p, 0);
    p.sleep(60);
    assert!(p.thread.sleeps_on.replace(false), "nothing is left to do");
    let mut rounds = p.background.rounds();
    while !p.thread.sleeps_on.get() {
        if p.background.asleep.load(Relaxed) {
            unreachable!("the sleep without end comes last");
        }
        assert!(p.background.rest(&mut rounds, p));
        if !p.thread.sleeps_on.get() {
            assert!(p.background.turn(&mut rounds, p));
        }
    }
    let nudges = p.thread.nudges.get();
    p.go_on();
    assert_eq!(p.thread.nudges.get(), nudges, "it was awake");
    *p.thread.meanwhile.borrow_mut() = Some(Box::new(|| p.go_on()));
    rounds.quiet_s = QUIET_S + 1;
    rounds.used = p.background.used.load(Relaxed);
    assert!(p.heap.surplus() == Pages(0) && p.background.rest(&mut rounds, p));
    assert!(p.thread.nudges.get() > nudges, "a request wakes it");
}

fn broken() -> (&'static Process, Vec<*mut u8>) {
    let p = process(96);
    p.floor.sim().set_thp(ThpMode::Madvise);
    p.background.count_threads(2);
    let objects = p.fill(MUCH_FREE);
    let left = p.leave_holes(objects);
    p.sleep(30);
    assert!(p.background.life.is_running() && p.heap.surplus() == Pages(0));
    p.thread.sleeps_on.set(false);
    (p, left)
}

#[test]
fn a_rise_wakes_the_resting_thread_which_refills_hugepages_and_rests_on() {
    let (p, left) = broken();
    let (collapses, nudges) = (p.collapses.get(), p.thread.nudges.get());
    *p.thread.meanwhile.borrow_mut() = Some(Box::new(move || {
        p.fill(MUCH_FREE / 4);
        p.go_on();
    }));
    let start = p.clock.now_ns();
    let mut rounds = p.background.rounds();
    assert!(p.background.rest(&mut rounds, p));
    assert!(p.collapses.get() > collapses && p.thread.nudges.get() > nudges);
    assert!(!p.background.refills.load(Relaxed), "the next rise wakes it again");
    assert_eq!(p.clock.now_ns(), start + SECOND_NS, "a second in all");
    left.into_iter().for_each(|object| p.free(object));
}

#[test]
fn nothing_is_refilled_without_a_thread_or_near_a_limit() {
    let (p, left) = broken();
    let used = p.heap.used();
    p.heap.gate.set(Some(used + (1 << 20)), None);
    let collapses = p.collapses.get();
    *p.thread.meanwhile.borrow_mut() = Some(Box::new(move || {
        p.heap.gate.set(Some(used + MUCH_FREE / 4 + (6 << 20)), None);
        p.fill(MUCH_FREE / 4);
        p.go_on();
    }));
    let mut rounds = p.background.rounds();
    assert!(p.background.rest(&mut rounds, p) && p.collapses.get() == collapses);
    p.heap.gate.set(None, None);
    p.background.stop(p);
    p.fill(MUCH_FREE / 4);
    p.go_on();
    assert!(p.collapses.get() == collapses && p.heap.begin_refill().is_none());
    left.into_iter().for_each(|object| p.free(object));
}

#[test]
fn a_heap_used_just_before_the_sleep_without_end_keeps_the_thread_awake() {
    let p = process(96);
    p.background.count_threads(2);
    much_free(p, 0);
    p.sleep(60);
    p.thread.sleeps_on.set(false);
    let mut rounds = p.background.rounds();
    (rounds.quiet_s, rounds.used) = (QUIET_S + 1, p.background.used.load(Relaxed).wrapping_sub(1));
    assert!(p.background.rest(&mut rounds, p) && !p.thread.sleeps_on.get());
}

#[test]
fn a_mode_that_allows_no_thread_ends_it_and_the_other_brings_it_back() {
    let p = process(96);
    much_free(p, 0);
    for (mode, later) in [(Mode::Off, false), (Mode::Inline, false), (Mode::Off, true), (Mode::Inline, true)] {
        assert!(p.background.life.is_running(), "before {mode:?}");
        if later {
            p.background.set_mode_later(mode);
            p.sleep(2);
        } else {
            p.background.set_mode(mode, p);
        }
        assert!(!p.background.life.runs(), "{mode:?}, later: {later}");
        let starts = p.thread.starts.get();
        p.work(2);
        assert_eq!(p.thread.starts.get(), starts);
        p.background.set_mode(Mode::Thread, p);
        p.work(2);
    }
}

#[test]
fn a_stopped_thread_is_started_again_a_second_later_at_the_earliest() {
    let p = process(96);
    much_free(p, 0);
    assert!(p.background.stop(p), "there was one");
    assert!(!p.background.stop(p), "there is none");
    p.background.want_thread();
    p.clock.advance(SECOND_NS - 1);
    assert!(!p.background.claim(Chore::Thread, true, true));
    p.clock.advance(1);
    assert!(p.background.claim(Chore::Thread, true, true));
}

#[test]
fn a_system_without_threads_is_asked_once_and_the_program_does_the_work() {
    let p = process(96);
    p.thread.refused.set(true);
    much_free(p, 0);
    seconds_until_half_is_back(p, 200, || p.work(1)).expect("it goes back");
    assert_eq!(p.thread.starts.get(), 1);
}

#[test]
fn while_it_is_held_off_no_thread_is_started() {
    let p = process(96);
    p.background.life.hold();
    much_free(p, 0);
    assert!(!p.background.life.runs() && p.thread.starts.get() == 0);
    p.background.life.release();
    p.work(1);
    assert!(p.background.life.is_running());
    p.background.life.seal();
    assert!(p.background.stop(p));
    p.work(5);
    assert!(!p.background.life.runs(), "sealed for good");
}

#[test]
fn chores_wait_for_a_caller_that_may_do_them() {
    let p = process(4);
    let b = &p.background;
    for chore in Chore::ALL {
        assert!(!b.claim(chore, true, true), "{chore:?} is not wanted");
        b.want(chore);
    }
    assert!(!b.claim(Chore::Limits, true, false), "the program may not be called back");
    b.life.hold();
    assert!(!b.claim(Chore::Limits, true, true), "nor while a fork may be under way");
    b.life.release();
    assert!(!b.claim(Chore::Thread, false, true), "the C library may hold its own lock");
    assert!(b.claim(Chore::Thread, true, true));
    assert!(!b.claim(Chore::Round, true, true) && !b.claim(Chore::Wake, true, true), "the thread begins with a round");
    assert!(b.claim(Chore::Later, false, false) && b.claim(Chore::Limits, false, true));
    assert!(!b.is_wanted());
}

#[test]
fn a_round_in_a_request_is_due_each_second_and_earlier_when_the_heap_has_doubled() {
    let p = process(96);
    p.background.set_mode(Mode::Inline, p);
    let next = || p.background.next_round_ns.load(Relaxed);
    let first = p.fill(40 * MIB);
    p.go_on();
    let (due, at) = (next(), p.background.next_round_at.load(Relaxed));
    p.go_on();
    assert_eq!(next(), due, "not twice in a second");
    let more = p.fill(60 * MIB);
    p.go_on();
    assert!(p.background.next_round_at.load(Relaxed) > at, "the heap has doubled");
    p.clock.advance(SECOND_NS);
    p.go_on();
    assert!(next() > due);
    [first, more].into_iter().flatten().for_each(|object| p.free(object));
}

struct Collapsing {
    outcomes: RefCell<Vec<(bool, bool)>>,
    firsts: Cell<u32>,
}

impl Tended for Collapsing {
    fn set_rate(&self, _bytes_per_s: u64) {}
    fn tick(&self) -> (bool, Pages) {
        (false, Pages(5))
    }
    fn collapse(&self, is_first: bool) -> (bool, bool) {
        self.firsts.set(self.firsts.get() + u32::from(is_first));
        self.outcomes.borrow_mut().pop().expect("no more than these are tried")
    }
    fn refill(&self) -> bool {
        false
    }
    fn set_helped(&self, _helped: bool) {}
    fn keep_limits(&self, _deep: bool) -> u64 {
        0
    }
    fn is_settled(&self) -> bool {
        true
    }
    fn drop_kept(&self) {}
    fn release_now(&self) {}
}

#[test]
fn a_round_collapses_few_hugepages_and_stops_where_it_does_not_go_well() {
    let b = &process(4).background;
    let (well, failed, last) = ((true, true), (false, true), (true, false));
    for (outcomes, left) in [
        (std::vec![well; 6], 2),
        (std::vec![well, well, last, well], 2),
        (std::vec![well, well, well, well, failed, failed], 0),
        (std::vec![(false, false)], 0),
    ] {
        let any = outcomes[left..].iter().any(|outcome| outcome.0);
        let heap = Collapsing { outcomes: RefCell::new(outcomes), firsts: Cell::new(0) };
        assert_eq!(b.round(true, 4, &heap), (any, Pages(5)), "whether anything changed");
        assert_eq!((heap.outcomes.borrow().len(), heap.firsts.get()), (left, 1));
    }
    b.thread.ring();
    assert_eq!(b.round(true, 4, &Collapsing { outcomes: RefCell::default(), firsts: Cell::new(0) }), (false, Pages(5)));
}

#[test]
fn the_thread_collapses_as_long_as_it_goes_well() {
    let b = &process(4).background;
    let heap = Collapsing { outcomes: RefCell::new(std::vec![(false, false); 2]), firsts: Cell::new(0) };
    heap.outcomes.borrow_mut().extend(std::vec![(true, true); 500]);
    assert_eq!(b.round(true, u32::MAX, &heap), (true, Pages(5)));
    assert_eq!(heap.outcomes.borrow().len(), 1);
}

#[test]
fn a_program_without_threads_gets_one_when_rounds_in_requests_do_not_keep_up() {
    let b = &process(4).background;
    let heap = Collapsing { outcomes: RefCell::new(std::vec![(true, true); 100]), firsts: Cell::new(0) };
    for full in [true, true, true, false, true, true, true] {
        b.round(
            true,
            if full { COLLAPSES } else { 1 + COLLAPSES },
            &Collapsing { outcomes: RefCell::new(std::vec![(true, full); COLLAPSES as usize]), firsts: Cell::new(0) },
        );
        assert!(!b.wants(Chore::Thread), "the front of a heap that grew and its probes take three");
    }
    b.round(true, COLLAPSES, &heap);
    assert!(b.wants(Chore::Thread));
}

#[test]
fn a_fork_of_a_large_heap_earns_the_thread_at_once() {
    let p = process(4);
    let b = &p.background;
    assert!(!b.starts_after_fork(HugePages(FORK_FROM.0 - 1)) && !b.wants(Chore::Thread));
    assert!(b.starts_after_fork(FORK_FROM));
    b.start(|| unreachable!("tests run it"), p);
    assert!(b.stop(p), "as the next fork does");
    assert!(b.starts_after_fork(FORK_FROM), "no request may come after it");
    b.set_mode(Mode::Inline, p);
    assert!(!b.starts_after_fork(FORK_FROM));
}

#[test]
fn one_round_at_a_time() {
    let p = process(16);
    p.background.at_work.store(true, Relaxed);
    assert_eq!(p.background.round(true, 4, p), (true, Pages(0)), "another thread is at it");
    p.background.want(Chore::Round);
    p.background.want(Chore::Later);
    p.background.forked(0);
    assert!(!p.background.at_work.load(Relaxed));
    assert!(
        p.background.wants(Chore::Later) && !p.background.wants(Chore::Round),
        "its own chores are left to a child"
    );
}

#[test]
fn much_is_at_least_16_mebibytes_and_an_eighth_of_what_is_in_use() {
    assert!(is_much(MUCH, Pages(0)));
    assert!(!is_much(Pages(MUCH.0 - 1), Pages(0)));
    assert!(is_much(MUCH, Pages(8 * MUCH.0)));
    assert!(!is_much(MUCH, Pages(8 * MUCH.0 + 8)));
    assert!(is_much(Pages(1 << 30), Pages(u32::MAX)), "no overflow");
}
