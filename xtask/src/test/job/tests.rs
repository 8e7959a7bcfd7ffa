use super::{Job, Kind, computed_by, run};
use crate::test::outcome::Counts;
use std::time::Duration;

fn shell(script: &str) -> Job {
    Job {
        name: "a program".into(),
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("WORD".into(), "said".into())],
        dir: "/".into(),
        kind: Kind::Computes,
        threads: 1,
        needs: vec![],
    }
}

const PASSED: &str = "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";

#[test]
fn a_program_that_passes_has_counts_and_times() {
    let finished = run(&shell(PASSED), Duration::from_secs(60));
    assert_eq!(finished.counts, Counts { passed: 1, failed: 0, ignored: 0 });
    assert_eq!((finished.tests.len(), finished.tests[0].0.as_str()), (1, "a"));
    assert_eq!(finished.failure, None);
}

#[test]
fn a_program_that_dies_after_its_tests_has_failed() {
    let finished = run(&shell(&format!("{PASSED}; echo $WORD >&2; exit 3")), Duration::from_secs(60));
    assert_eq!(finished.counts.failed, 1);
    let failure = finished.failure.expect("it failed");
    assert!(failure.contains("said\n") && failure.ends_with("exit status: 3"), "{failure}");
}

#[test]
fn a_program_without_a_closing_line_has_failed() {
    let finished = run(&shell("echo 'test a ... ok'"), Duration::from_secs(60));
    assert_eq!(finished.counts.failed, 1);
    assert!(finished.failure.is_some_and(|failure| failure.contains("no closing line")));
}

#[test]
fn a_program_that_hangs_is_killed() {
    let finished = run(&shell("echo before; exec sleep 1000"), Duration::from_millis(200));
    assert_eq!(finished.counts.failed, 1);
    let failure = finished.failure.expect("it failed");
    assert!(failure.starts_with("before\n") && failure.contains("was killed"), "{failure}");
}

#[test]
fn a_program_that_is_not_there_has_failed() {
    let finished = run(&Job { program: "/no/such".into(), ..shell("") }, Duration::from_secs(60));
    assert!(finished.failure.is_some_and(|failure| failure.contains("cannot start /no/such")));
}

#[test]
fn a_line_of_proc_says_what_a_process_and_its_children_have_computed() {
    let stat = "42 (a name) with) S 1 2 3 4 5 6 7 8 9 10 120 30 200 50 20 0 1";
    assert_eq!(computed_by(stat), Some(Duration::from_secs(4)));
    assert_eq!(computed_by("42 (a) S 1 2"), Some(Duration::ZERO));
    assert_eq!(computed_by("42"), None);
}
