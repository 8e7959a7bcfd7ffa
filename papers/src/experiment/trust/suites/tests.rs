use super::*;
use std::process::Command;

fn counted(function: &str, said: &str) -> (u64, u64) {
    let scratch = Scratch::new("a test").unwrap();
    let said_file = scratch.path().join("said");
    std::fs::write(&said_file, said).unwrap();
    let script = format!("{COMMON}\n{function} < '{}'", said_file.display());
    let output = Command::new("bash").args(["-c", &script]).env("on", "env").output().unwrap();
    tally(&String::from_utf8_lossy(&output.stdout))
}

#[test]
fn tests_are_counted_by_the_words_of_their_runners() {
    let unittest =
        "Ran 12 tests in 0.1s\n\nOK (skipped=1)\nRan 30 tests in 2s\n\nFAILED (failures=1, errors=2, skipped=3)\n";
    assert_eq!(counted("of_unittest", unittest), (42, 39));
    assert_eq!(counted("of_pytest", "..F\n= 1 failed, 240 passed, 3 skipped in 2.0s =\n"), (241, 240));
    let cargo = "test result: ok. 10 passed; 0 failed; 1 ignored\ntest result: FAILED. 3 passed; 2 failed; 0 ignored\n";
    assert_eq!(counted("of_cargo", cargo), (15, 13));
    assert_eq!(counted("of_redis", "[ok]: SADD\n[err]: SREM\n[ok]: SPOP\n"), (3, 2));
    assert_eq!(counted("of_prove", "1..2\nok 1 - a\nnot ok 2 - b\n"), (2, 1));
    assert_eq!(counted("of_unittest", "Segmentation fault\n"), (0, 0));
}

#[test]
fn names_are_no_parts_and_each_is_there_once() {
    for (place, suite) in SUITES.iter().enumerate() {
        assert!(!super::super::PARTS.iter().any(|part| part.0 == suite.name), "{}", suite.name);
        assert!(SUITES[..place].iter().all(|other| other.name != suite.name), "{}", suite.name);
    }
}
