use super::*;
use std::fs;

#[test]
fn a_signal_is_128_and_its_number() {
    assert_eq!(code(ExitStatus::from_raw(3 << 8)), 3);
    assert_eq!(code(ExitStatus::from_raw(0)), 0);
    assert_eq!(code(ExitStatus::from_raw(libc::SIGTERM)), 143);
    assert_eq!(code(ExitStatus::from_raw(libc::SIGABRT | 0x80)), 134);
}

#[test]
fn directories_are_private_and_go_away() {
    let (one, two) = (directory().unwrap(), directory().unwrap());
    assert_ne!(one.path(), two.path());
    assert_eq!(fs::metadata(one.path()).unwrap().permissions().mode() & 0o777, 0o700);
    let path = one.path().to_owned();
    drop(one);
    assert!(!path.exists());
}
