use super::*;
use std::process::ExitStatus;

fn run(raw: i32, stdout: &str, stderr: &str) -> Run {
    Run {
        status: Some(ExitStatus::from_raw(raw)),
        stdout: stdout.into(),
        stderr: stderr.to_owned(),
        peak_rss_bytes: 1 << 20,
        counts: Vec::new(),
    }
}

#[test]
fn a_refusal_is_no_failure_and_a_crash_is() {
    let whole = run(0, "4\n", "");
    let judge = |run| judge(&run, &whole);
    assert_eq!(judge(run(0, "4\n", "")), Ok(Verdict::Unharmed));
    assert_eq!(judge(run(1 << 8, "", "out of memory")), Ok(Verdict::Refused));
    assert_eq!(judge(run(libc::SIGABRT, "", "terminate called")), Ok(Verdict::Refused));
    assert!(judge(run(libc::SIGABRT, "", "craton: the list of free objects")).is_err());
    assert!(judge(run(libc::SIGSEGV, "", "")).is_err());
    assert!(judge(run(WRONG << 8, "", "wrong: calloc")).is_err());
    assert!(judge(run(0, "5\n", "")).is_err());
    assert!(judge(Run { peak_rss_bytes: 1 << 30, ..run(0, "4\n", "") }).is_err());
    assert!(judge(Run { status: None, ..run(0, "4\n", "") }).is_err());
}

#[test]
fn every_call_up_to_200_fails_once_and_then_all_behind_one() {
    let of = |quick, count| plan(quick, 0, count).iter().map(|f| (f.first, f.last)).collect::<Vec<_>>();
    assert_eq!(of(false, 3), [(1, 1), (2, 2), (3, 3), (1, u64::MAX)]);
    assert_eq!(of(false, 1000).len(), 204);
    assert_eq!(of(true, 1000), [(1, 1), (200, 200), (1, u64::MAX)]);
    assert!(of(true, 0).is_empty());
}

#[test]
fn the_commands_are_made() {
    for (name, _, script) in PROGRAMS.iter().filter(|program| on_path(program.0)) {
        let scratch = Scratch::new("a test").unwrap();
        let command = prepare(script, scratch.path()).unwrap();
        assert!(Path::new(&command[0]).is_absolute() && command.len() > 1, "{name}: {command:?}");
    }
}
