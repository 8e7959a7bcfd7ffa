use super::*;
use std::string::String;

#[test]
fn a_line_is_due_once_a_minute() {
    let next = AtomicU64::new(0);
    let due: [bool; 4] = [5, 6, EVERY_NS, EVERY_NS + 5].map(|now| is_due(&next, now));
    assert_eq!(due, [true, false, false, true]);
}

#[test]
fn sizes_are_short() {
    let said = |bytes| String::from_utf8(size(Line::new(), bytes).as_bytes().to_vec()).unwrap();
    assert_eq!(
        [1, 1023, 4096, 3 << 19, 128 << 20].map(said),
        ["1 byte", "1023 bytes", "4 KiB", "1.5 MiB", "128.0 MiB"]
    );
}
