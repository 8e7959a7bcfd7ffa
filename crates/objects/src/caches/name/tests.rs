use super::*;

#[test]
fn names_can_be_shown_and_be_targets() {
    for good in ["", "jobs", "my-cache", "3d points", "größe", "a.b/c_d", "x64", "kB", "-", "largest"] {
        assert!(is_name(good.as_bytes()), "{good}");
    }
    for bad in [
        "a:b",
        "a+b",
        "a,b",
        "a=b",
        "a\"b",
        "a\\b",
        "a\nb",
        "a\u{7f}",
        "a\u{85}",
        "a\u{202e}b",
        "a\u{2066}b",
        "a\u{200b}",
        "\u{feff}a",
        "64",
        "0",
        "-1",
        "64K",
        "64kB",
        "64KiB",
        "64b",
        "0x40",
        "large",
        "malloc",
        "12345678901234567890123456789012x",
    ] {
        assert!(!is_name(bad.as_bytes()), "{}", bad.escape_unicode());
    }
    assert!(!is_name(b"\xff"));
}
