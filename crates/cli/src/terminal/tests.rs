use super::*;

#[test]
fn long_lines_break_at_spaces_below_their_text() {
    assert_eq!(wrap("short\n", 10), "short\n");
    assert_eq!(wrap("one two three\n", 8), "one two\nthree\n");
    assert_eq!(wrap("  -o X  one two three\n", 16), "  -o X  one two\n        three\n");
    assert_eq!(wrap("a-word-that-is-too-long b\n", 10), "a-word-that-is-too-long\nb\n");
}
