use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn directories_are_private_and_go_away() {
    let (one, two) = (Scratch::new("a test").unwrap(), Scratch::new("a test").unwrap());
    assert_ne!(one.path(), two.path());
    assert_eq!(fs::metadata(one.path()).unwrap().permissions().mode() & 0o777, 0o700);
    fs::write(one.path().join("file"), "x").unwrap();
    let path = one.path().to_owned();
    drop(one);
    assert!(!path.exists() && two.path().is_dir());
}
