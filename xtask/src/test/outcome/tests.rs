use super::{Counts, durations, ended_test};
use std::time::Duration;

#[test]
fn closing_lines_are_summed() {
    let output = "running 3 tests\ntest a ... ok\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; \
                  7 filtered out; finished in 0.10s\n\nother\ntest result: ok. 10 passed; 0 failed; 4 ignored; 0 measured; \
                  0 filtered out; finished in 1.00s\n";
    assert_eq!(Counts::read(output), Some(Counts { passed: 11, failed: 2, ignored: 4 }));
}

#[test]
fn a_program_that_died_has_no_counts() {
    assert_eq!(Counts::read("running 3 tests\ntest a ... ok\n"), None);
}

#[test]
fn a_line_names_the_test_that_ended() {
    assert_eq!(ended_test("test a::b ... ok"), Some("a::b"));
    assert_eq!(ended_test("test a::b - should panic ... FAILED"), Some("a::b"));
    assert_eq!(ended_test("test a ... ignored, nightly: minutes"), Some("a"));
    for line in ["test result: ok. 1 passed", "a test ... ok", "test a ... ", "running 1 test"] {
        assert_eq!(ended_test(line), None, "{line}");
    }
}

#[test]
fn a_test_starts_when_an_earlier_one_ends() {
    let seconds = Duration::from_secs;
    // a and b start at once, c when b ends after 1 s, d when c ends after 4 s.
    let ends = [("b", 1), ("c", 4), ("a", 5), ("d", 6)].map(|(name, end)| (name.to_owned(), seconds(end)));
    let expected = [("b", 1), ("c", 3), ("a", 5), ("d", 2)].map(|(name, took)| (name.to_owned(), seconds(took)));
    assert_eq!(durations(&ends, 2), expected);
}
