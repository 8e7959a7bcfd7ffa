use super::*;
use crate::observe::text::Text;
use crate::tests::virtual_process::{MIB, Process, SECOND_NS, process};
use core::cell::Cell;
use core::ffi::c_void;
use std::string::String;
use std::vec::Vec;

fn set(p: &Process, key: &str, value: &str) -> bool {
    p.limits.set_option(key.as_bytes(), value.as_bytes(), p)
}

fn shown(p: &Process, key: &str) -> String {
    let mut buffer = [0; 64];
    let mut text = Text::new(&mut buffer);
    assert!(p.limits.show_option(key.as_bytes(), &mut text));
    let len = text.end();
    String::from_utf8(buffer[..len].to_vec()).unwrap()
}

fn asked(p: &Process) -> u32 {
    p.heap.flush_requests.load(Relaxed)
}

fn take(p: &Process, mebibytes: u64) -> Vec<*mut u8> {
    (0..mebibytes).map(|_| p.alloc(MIB as usize)).inspect(|object| assert!(!object.is_null())).collect()
}

fn give(p: &Process, objects: Vec<*mut u8>) {
    objects.into_iter().for_each(|object| p.free(object));
}

#[test]
fn free_memory_goes_back_when_the_soft_limit_is_passed_and_not_more_than_needed() {
    let p = process(128);
    p.leave_holes(p.fill(60 * MIB));
    let free = p.used();
    assert!(free > 50 * MIB, "the heap keeps {free} bytes, most of them free");
    assert!(set(p, "soft_limit", "40M"));
    assert!(p.used() <= 40 * MIB && p.used() > 30 * MIB, "{} bytes", p.used());
    let objects = take(p, 30);
    assert!(p.used() <= 40 * MIB);
    assert_eq!(p.segment.soft_limit_bytes.load(Relaxed), 40 * MIB);
    give(p, objects);
}

#[test]
fn caches_are_given_up_only_when_free_memory_does_not_do() {
    let p = process(128);
    give(p, take(p, 30));
    assert!(set(p, "soft_limit", "20M"));
    assert_eq!((asked(p), p.shrunk.get()), (0, 0), "free memory was enough");
    let objects = take(p, 25);
    assert!(asked(p) > 0 && p.shrunk.get() > 0);
    assert!(p.segment.soft_limit_passed.load(Relaxed) > 0);
    give(p, objects);
}

struct Called {
    process: &'static Process,
    calls: Cell<u32>,
    last: Cell<(usize, usize)>,
}

/// # Safety
/// `arg` is a [`Called`].
unsafe extern "C" fn called(arg: *mut c_void, limit: usize, used: usize) {
    // SAFETY: by the contract.
    let called = unsafe { &*arg.cast::<Called>() };
    called.calls.set(called.calls.get() + 1);
    called.last.set((limit, used));
    // It is not called from within itself.
    let object = called.process.alloc(300 << 10);
    called.process.limits.act(called.process);
    called.process.free(object);
}

fn call_back(p: &'static Process) -> &'static Called {
    let state: &'static Called = std::boxed::Box::leak(std::boxed::Box::new(Called {
        process: p,
        calls: Cell::new(0),
        last: Cell::new((0, 0)),
    }));
    // SAFETY: the argument lives for ever.
    unsafe { p.limits.callback.set(Some(called), core::ptr::from_ref(state).cast_mut().cast()) };
    state
}

#[test]
fn the_program_is_called_back_once_and_again_after_a_step_or_a_second() {
    let p = process(256);
    let state = call_back(p);
    assert!(set(p, "soft_limit", "64M"));
    let objects = take(p, 66);
    assert_eq!(state.calls.get(), 1);
    let (limit, used) = state.last.get();
    assert!(limit as u64 == 64 * MIB && used > limit);
    (0..100).for_each(|_| p.request());
    assert_eq!(state.calls.get(), 1, "not in each request");
    let more = take(p, 4);
    assert_eq!(state.calls.get(), 2, "memory has grown by a step");
    p.clock.advance(SECOND_NS);
    p.limits.round(true, p);
    give(p, take(p, 1));
    assert_eq!(state.calls.get(), 3, "a second later");
    give(p, objects);
    give(p, more);
    p.heap.relieve(0);
    p.limits.round(true, p);
    let calls = state.calls.get();
    give(p, take(p, 30));
    assert_eq!(state.calls.get(), calls, "below the limit");
    // SAFETY: no function.
    unsafe { p.limits.callback.set(None, core::ptr::null_mut()) };
    give(p, take(p, 80));
    assert_eq!(state.calls.get(), calls, "no function is set");
}

#[test]
fn a_round_keeps_the_soft_limit_while_the_program_sleeps() {
    let p = process(128);
    let objects = p.fill(60 * MIB);
    assert!(set(p, "soft_limit", "50M"));
    assert!(p.used() > 50 * MIB, "all is in use");
    // No request checks: the next round releases what is free by then.
    p.machine.is_shallow.set(true);
    p.limits.at_work.store(true, Relaxed);
    p.leave_holes(objects);
    p.limits.at_work.store(false, Relaxed);
    let before = p.used();
    assert!(before > 50 * MIB, "{before}");
    let pages = p.limits.round(false, p);
    assert!(p.used() <= 50 * MIB && pages << PAGE_SHIFT >= before - 50 * MIB);
}

#[test]
fn a_hard_limit_refuses_and_the_caches_make_room_once() {
    let p = process(128);
    assert!(!p.limits.make_room(p), "without a hard limit a refusal is the system's");
    assert!(set(p, "hard_limit", "30M"));
    let objects = take(p, 29);
    assert!(p.alloc(3 * MIB as usize).is_null());
    let before = asked(p);
    assert!(p.limits.make_room(p) && asked(p) == before + 1 && p.shrunk.get() > 0);
    p.limits.count_refusal();
    assert_eq!(p.segment.hard_limit_refused.load(Relaxed), 1);
    give(p, objects);
    assert!(!p.alloc(3 * MIB as usize).is_null());
}

#[test]
fn a_small_program_does_not_read_the_control_group() {
    let p = process(64);
    p.machine.group.set(Some(100 * MIB));
    p.limits.apply(p);
    let objects = take(p, 14);
    assert_eq!(p.machine.group_read.get(), 0);
    let more = take(p, 6);
    assert_eq!(p.machine.group_read.get(), 1, "from 16 MiB on it counts");
    assert_eq!(p.heap.gate.soft(), Some(90 * MIB));
    assert_eq!(p.segment.memory_limit_bytes.load(Relaxed), 100 * MIB);
    assert_eq!((p.segment.memory_limit_source.load(Relaxed), p.segment.usable_cpus.load(Relaxed)), (3, 3));
    give(p, objects);
    give(p, more);
}

#[test]
fn on_a_small_stack_the_reading_is_left_to_others() {
    let p = process(128);
    p.machine.is_shallow.set(true);
    p.machine.group.set(Some(100 * MIB));
    p.limits.apply(p);
    let objects = take(p, 40);
    assert_eq!((p.machine.group_read.get(), p.heap.gate.soft()), (0, None));
    p.limits.round(false, p);
    assert_eq!(p.machine.group_read.get(), 0);
    p.limits.round(true, p);
    assert_eq!((p.machine.group_read.get(), p.heap.gate.soft()), (1, Some(90 * MIB)));
    give(p, objects);
}

#[test]
fn the_control_group_is_read_again_each_ten_seconds() {
    let p = process(128);
    p.machine.group.set(Some(100 * MIB));
    p.limits.apply(p);
    let objects = take(p, 20);
    for (limit, soft) in [(Some(200 * MIB), Some(180 * MIB)), (None, None), (Some(50 * MIB), Some(45 * MIB))] {
        let (read, before) = (p.machine.group_read.get(), p.heap.gate.soft());
        p.machine.group.set(limit);
        for _ in 0..9 {
            p.clock.advance(SECOND_NS);
            p.limits.round(true, p);
        }
        assert_eq!((p.machine.group_read.get(), p.heap.gate.soft()), (read, before), "not before");
        p.clock.advance(SECOND_NS);
        p.limits.round(true, p);
        assert_eq!((p.machine.group_read.get(), p.heap.gate.soft()), (read + 1, soft));
    }
    give(p, objects);
}

#[test]
fn a_reading_that_fails_in_part_leaves_the_limit_as_it_was() {
    let p = process(64);
    p.machine.group.set(Some(100 * MIB));
    p.limits.apply(p);
    let objects = take(p, 20);
    p.machine.group.set(None);
    p.machine.is_partial.set(true);
    p.clock.advance(READ_EVERY_NS);
    p.limits.round(true, p);
    assert_eq!(p.heap.gate.soft(), Some(90 * MIB));
    p.machine.is_partial.set(false);
    p.clock.advance(READ_EVERY_NS);
    p.limits.round(true, p);
    assert_eq!(p.heap.gate.soft(), None);
    give(p, objects);
}

#[test]
fn a_process_that_restricts_itself_reads_no_files() {
    let p = process(64);
    p.machine.is_sealed.set(true);
    p.machine.group.set(Some(20 * MIB));
    p.machine.pressure.set(Some(10_000));
    p.limits.apply(p);
    give(p, take(p, 40));
    p.clock.advance(READ_EVERY_NS);
    p.limits.round(true, p);
    assert_eq!((p.machine.group_read.get(), p.machine.pressure_read.get()), (0, 0));
    assert_eq!(p.heap.gate.soft(), None);
}

#[test]
fn under_pressure_free_memory_goes_back_each_five_seconds() {
    let p = process(192);
    p.leave_holes(p.fill(330 * MIB));
    let used = p.used();
    p.machine.pressure.set(Some(PRESSURE_PERCENT * 100 - 1));
    assert_eq!(p.limits.round(true, p), 0, "below the threshold");
    p.machine.pressure.set(Some(PRESSURE_PERCENT * 100));
    assert_eq!(p.limits.round(true, p), 0, "read less than five seconds ago");
    p.clock.advance(PRESSURE_EVERY_NS);
    let pages = p.limits.round(true, p);
    assert_eq!(pages << PAGE_SHIFT, used - p.used());
    assert!((used - p.used()).abs_diff(PRESSURE_BYTES) <= 4 * MIB, "{} bytes went", used - p.used());
    assert_eq!(p.segment.pressure_releases.load(Relaxed), 1);
    assert_eq!(p.limits.round(true, p), 0);
    p.clock.advance(PRESSURE_EVERY_NS);
    assert!(p.limits.round(false, p) == 0, "not on a small stack");
    assert!(p.limits.round(true, p) > 0);
}

#[test]
fn pressure_is_not_read_for_little_memory_nor_when_the_option_or_the_system_says_so() {
    let p = process(128);
    let objects = p.fill(30 * MIB);
    p.machine.pressure.set(Some(10_000));
    p.heap.relieve(0);
    assert_eq!((p.limits.round(true, p), p.machine.pressure_read.get()), (0, 0), "nothing is free");
    p.leave_holes(objects);
    assert!(set(p, "pressure", "0"));
    p.clock.advance(PRESSURE_EVERY_NS);
    assert_eq!((p.limits.round(true, p), p.machine.pressure_read.get()), (0, 0));
    assert!(!p.limits.reads_pressure(p));
    assert!(set(p, "pressure", "50"));
    assert!(p.limits.reads_pressure(p), "an idle process wakes for 16 MiB");
    p.machine.pressure.set(None);
    for _ in 0..3 {
        p.clock.advance(PRESSURE_EVERY_NS);
        p.limits.round(true, p);
    }
    assert_eq!(p.machine.pressure_read.get(), 1, "a system that does not say is asked once");
    assert!(!p.limits.reads_pressure(p));
}

#[test]
fn percentages_are_of_the_control_groups_limit_or_of_the_machine() {
    let p = process(64);
    p.machine.memory.set(1000 * MIB);
    assert!(set(p, "soft_limit", "50%"));
    assert_eq!(p.heap.gate.soft(), Some(500 * MIB), "no group limits the process");
    assert_eq!(p.machine.group_read.get(), 1, "the group was read for it");
    p.machine.group.set(Some(200 * MIB));
    p.clock.advance(READ_EVERY_NS);
    p.limits.round(true, p);
    assert_eq!(p.heap.gate.soft(), Some(100 * MIB));
    assert!(set(p, "memory_limit", "400M"));
    assert_eq!((p.heap.gate.soft(), p.segment.memory_limit_source.load(Relaxed)), (Some(200 * MIB), BY_OPTION));
    assert!(set(p, "memory_limit", "cgroup"));
    assert_eq!(p.heap.gate.soft(), Some(100 * MIB));
}

#[test]
fn a_value_that_makes_no_sense_is_refused_and_changes_nothing() {
    let p = process(64);
    assert!(set(p, "hard_limit", "100M"));
    for (key, value, has_reason) in [
        ("soft_limit", "1023K", true),
        ("soft_limit", "101M", true),
        ("hard_limit", "1000", true),
        ("hard_limit", "lots", false),
        ("memory_limit", "50%", false),
        ("pressure", "101", false),
        ("pressure", "-1", false),
        ("no_such_limit", "10M", false),
    ] {
        let before = (p.heap.gate.soft(), p.heap.gate.hard());
        assert!(!set(p, key, value), "{key}={value}");
        assert_eq!((p.heap.gate.soft(), p.heap.gate.hard()), before);
        let why = p.limits.why_not(key.as_bytes(), value.as_bytes(), p);
        assert_eq!(why.is_some(), has_reason, "{key}={value}: {why:?}");
    }
    assert!(set(p, "soft_limit", "100M") && set(p, "hard_limit", "50M"), "a hard limit can be set at any time");
    assert_eq!((p.heap.gate.soft(), p.heap.gate.hard()), (Some(100 * MIB), Some(50 * MIB)));
}

#[test]
fn options_are_shown_as_they_are_set() {
    let p = process(16);
    let defaults = [("soft_limit", "auto"), ("hard_limit", "none"), ("memory_limit", "cgroup"), ("pressure", "10")];
    for (key, value) in defaults {
        assert_eq!(shown(p, key), value);
    }
    for (key, value, text) in [
        ("soft_limit", "80%", "80%"),
        ("hard_limit", "512M", "536870912"),
        ("memory_limit", "none", "none"),
        ("memory_limit", "1G", "1073741824"),
        ("pressure", "0", "0"),
    ] {
        p.machine.memory.set(1 << 30);
        assert!(set(p, key, value), "{key}={value}");
        assert_eq!(shown(p, key), text);
    }
    assert!(!p.limits.show_option(b"stats", &mut Text::new(&mut [0; 8])));
}

#[test]
fn a_hard_limit_below_what_is_in_use_releases_what_is_free() {
    let p = process(128);
    let mut objects = take(p, 60);
    let rest = objects.split_off(30);
    give(p, objects);
    assert!(set(p, "hard_limit", "20M"));
    assert!(p.used() < 36 * MIB, "what was free is gone: {}", p.used());
    assert!(p.alloc(MIB as usize).is_null());
    give(p, rest);
}

#[test]
fn what_others_were_at_is_ended_in_a_forked_child() {
    let p = process(128);
    p.limits.at_work.store(true, Relaxed);
    assert!(set(p, "soft_limit", "20M"));
    let objects = take(p, 30);
    assert_eq!(p.segment.soft_limit_passed.load(Relaxed), 0, "one thread at a time looks");
    p.limits.forked();
    p.limits.act(p);
    assert_eq!(p.segment.soft_limit_passed.load(Relaxed), 1);
    give(p, objects);
}
