use super::*;

#[test]
fn the_cause_is_told_of_a_kill_at_the_limit_alone() {
    let events = Events { limit_bytes: Some(120 << 20), reached: 3, kills: 1 };
    assert_eq!(cause(libc::SIGKILL, events), " (the control group's limit of 120.0 MiB was reached 3 times)");
    assert_eq!(cause(libc::SIGTERM, events), "");
    assert_eq!(cause(libc::SIGKILL, Events { reached: 0, ..events }), "");
}

#[test]
fn signals_have_their_names() {
    assert_eq!([9, 11, 15, 31, 40].map(signal_name), ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGSYS", "signal 40"]);
}
