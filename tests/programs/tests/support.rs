//! An unserved or hanging program fails its test.

use craton_programs::{Program, cc, missing, side_by_side};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn panic_of(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("this panics");
    panic.downcast_ref::<String>().cloned().expect("the panic has a message")
}

#[test]
fn a_program_without_craton_is_not_served() {
    let output = Program::new("true").run();
    output.assert_success();
    assert!(output.stats.is_empty());
    let message = panic_of(|| drop(output.assert_served("true").clone()));
    assert!(message.contains("no process named \"true\""), "{message}");
}

#[test]
fn another_program_that_is_served_does_not_count() {
    let output = Program::new("bash").args(["-c", "LD_PRELOAD= ls /; exit 0"]).preloaded().run();
    output.assert_success();
    output.assert_served("bash");
    let message = panic_of(|| drop(output.assert_served("ls").clone()));
    assert!(message.contains("no process named \"ls\""), "{message}");
}

#[test]
fn a_program_that_hangs_fails_and_is_killed_with_its_children() {
    let shell = "sleep 1000 & echo $!; sleep 1000";
    let message = panic_of(|| drop(Program::new("bash").args(["-c", shell]).timeout(1).run()));
    assert!(message.contains("has not ended after 1s"), "{message}");
    let pid = message.lines().find_map(|l| l.parse::<u32>().ok()).expect("the shell told its child's number");
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "the child still runs: {state}");
}

#[test]
fn a_process_left_behind_is_a_failure() {
    let message = panic_of(|| drop(Program::new("bash").args(["-c", "sleep 1000 &"]).timeout(1).run()));
    assert!(message.contains("has left processes behind"), "{message}");
}

#[test]
fn the_numbers_of_a_running_process_can_be_read() {
    let mut running = Program::new("sleep").arg("1000").preloaded().start();
    let stats = running.segment_when(|s| s.refills > 0);
    assert_eq!((stats.exe.as_str(), stats.pid), ("sleep", u64::from(running.pid())));
    assert!(!running.has_ended());
    running.signal(libc::SIGTERM);
    let output = running.wait();
    assert_eq!(output.signal, Some(libc::SIGTERM), "{output}");
}

#[test]
fn what_is_there_is_not_missing() {
    assert!(!missing("bash", "bash") && !missing("/bin/sh", "dash"));
}

#[test]
fn a_compiled_program_is_made_once() {
    assert_eq!(cc("plain.c", &[]), cc("plain.c", &[]));
    assert_ne!(cc("plain.c", &[]), cc("plain.c", &["-O2"]));
}

#[test]
fn every_case_is_run_and_its_panic_is_one_of_the_test() {
    let cases: Vec<usize> = (0..50).collect();
    assert_eq!(side_by_side(&cases, |n| n * 2), (0..50).map(|n| n * 2).collect::<Vec<_>>());
    let panics = catch_unwind(|| side_by_side(&cases, |n| assert!(*n != 33, "33 is wrong")));
    assert!(panics.is_err());
}
