use super::printable;

#[test]
fn bytes_that_no_terminal_should_see_are_dots() {
    assert_eq!(printable(b"key 1\0\x1b\xff"), "key 1...");
}
