use super::*;

#[test]
fn lines_of_mappings_are_read_with_and_without_a_name() {
    let map = parse("7f00a000-7f00c000 rw-p 00002000 08:01 1234                       /lib/a b.so").unwrap();
    assert_eq!((map.start, map.end, map.offset), (0x7f00_a000, 0x7f00_c000, 0x2000));
    assert_eq!((map.readable, map.writable, map.executable), (true, true, false));
    assert_eq!(map.path, "/lib/a b.so");
    assert!(map.is_file());
    let map = parse("7f00a000-7f00c000 ---p 00000000 00:00 0 ").unwrap();
    assert_eq!((map.readable, map.path.as_str(), map.is_file()), (false, "", false));
    assert_eq!(parse("nonsense"), None);
}

#[test]
fn a_thread_that_sleeps_has_a_count_of_its_switches() {
    let status = |state: &str| {
        format!("Name:\tState: S\nState:\t{state}\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n")
    };
    assert_eq!(switches(&status("S (sleeping)")), Some(42));
    assert_eq!((switches(&status("R (running)")), switches("State:\tS (sleeping)\n")), (None, None));
}

#[test]
fn what_cannot_be_read_is_told_with_what_to_do() {
    assert!(Live::stop(u32::MAX / 2).unwrap_err().contains("pgrep"));
    assert!(Live::stop(std::process::id()).unwrap_err().contains("itself"));
    let denied = refused(1, &io::Error::from_raw_os_error(libc::EPERM));
    assert!(denied.contains("as root") && denied.contains("ptrace_scope"), "{denied}");
}
