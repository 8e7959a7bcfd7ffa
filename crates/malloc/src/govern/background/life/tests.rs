//! `tests/loom_background.rs` has the races.

use super::*;
use core::cell::Cell;

fn start(life: &Life, allowed: bool) -> u32 {
    let begun = Cell::new(0);
    life.start(
        || (),
        || {
            begun.set(begun.get() + 1);
            allowed
        },
    );
    begun.get()
}

/// Whether `end` ran.
fn stop(life: &Life) -> bool {
    let ended = Cell::new(false);
    let said = life.stop(
        || unreachable!("nobody starts or ends it meanwhile"),
        |end| end(),
        || {
            ended.set(true);
            true
        },
    );
    assert_eq!(said, ended.get());
    said
}

#[test]
fn a_thread_is_started_once_and_ended_once() {
    let life = Life::new();
    assert!(life.may_start() && !life.runs() && !life.is_running() && life.is_calm());
    assert!(!stop(&life), "there is none");
    assert_eq!((start(&life, true), start(&life, true)), (1, 0));
    assert!(!life.may_start() && life.runs() && life.is_running() && life.is_calm());
    assert!(stop(&life) && !stop(&life));
    assert_eq!(start(&life, true), 1, "again");
}

#[test]
fn a_refusal_of_the_system_is_for_good() {
    let life = Life::new();
    assert_eq!(start(&life, false), 1);
    assert!(!life.may_start() && !life.runs());
    assert_eq!(start(&life, true), 0);
    assert!(!stop(&life));
    life.forked(0);
    assert!(!life.may_start(), "a child's system is the same");
}

#[test]
fn a_thread_that_ended_by_itself_is_waited_for_before_the_next() {
    let life = Life::new();
    assert!(!life.end_by_itself(), "there is none");
    start(&life, true);
    assert!(life.end_by_itself() && !life.end_by_itself());
    assert!(life.may_start() && !life.runs());
    let joined = Cell::new(false);
    life.start(|| joined.set(true), || joined.get());
    assert!(life.is_running(), "it was joined before the next began");
    life.end_by_itself();
    assert!(stop(&life), "one that ended by itself is waited for, too");
}

#[test]
fn holds_add_up_and_a_seal_is_for_good() {
    let life = Life::new();
    life.hold();
    life.hold();
    life.release();
    assert_eq!(start(&life, true), 0);
    assert!(!life.is_calm());
    life.release();
    assert_eq!(start(&life, true), 1);
    life.seal();
    assert!(stop(&life) && !life.may_start());
    assert_eq!(start(&life, true), 0);
}

#[test]
fn a_forked_child_has_no_thread_and_no_holds() {
    let life = Life::new();
    start(&life, true);
    life.hold();
    life.forked(0);
    assert!(life.may_start() && !life.runs() && life.is_calm());
    assert_eq!(start(&life, true), 1);
}

#[test]
fn while_it_is_started_nobody_ends_it() {
    let life = Life::new();
    life.start(
        || (),
        || {
            assert!(life.runs() && !life.is_running() && !life.is_calm() && !life.may_start());
            assert!(!life.end_by_itself());
            true
        },
    );
    assert!(life.is_running());
}
