use super::*;

#[test]
fn the_cause_is_told_of_a_kill_at_the_limit_alone() {
    let group = Group { limit_bytes: Some(120 << 20), reached: 3, kills: 1 };
    assert_eq!(cause(libc::SIGKILL, group), " (the control group's limit of 120.0 MiB was reached 3 times)");
    assert_eq!(cause(libc::SIGTERM, group), "");
    assert_eq!(cause(libc::SIGKILL, Group { reached: 0, ..group }), "");
}

#[test]
fn signals_have_their_names() {
    assert_eq!([9, 11, 15, 31, 40].map(signal_name), ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGSYS", "signal 40"]);
}
