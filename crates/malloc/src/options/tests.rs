use super::*;
use std::format;
use std::string::{String, ToString};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn value_of(key: &str) -> String {
    let mut buffer = [0; 600];
    let mut text = Text::new(&mut buffer);
    assert!(get(key.as_bytes(), &mut text), "{key}");
    let len = text.end();
    String::from_utf8(buffer[..len].to_vec()).unwrap()
}

fn refusal(key: &str, value: &str) -> String {
    try_set(key.as_bytes(), value.as_bytes(), true).expect_err(value).why.to_string()
}

#[test]
fn every_option_round_trips() {
    let _alone = alone();
    for (i, option) in OPTIONS.iter().enumerate() {
        assert_eq!(name(i).unwrap().to_str(), Ok(option.key));
        let value = value_of(option.key);
        assert!(set(option.key.as_bytes(), value.as_bytes()), "{} to {value}", option.key);
        assert_eq!(value_of(option.key), value, "{}", option.key);
    }
    assert_eq!(name(OPTIONS.len()), None);
    assert!(!get(b"no_such_option", &mut Text::new(&mut [])));
    assert_eq!(refusal("no_such_option", "1"), NO_SUCH_KEY);
}

#[test]
fn a_bad_value_of_each_form_is_refused_with_its_message_and_changes_nothing() {
    let _alone = alone();
    const BYTES: &str = "bad value (bytes, such as 512K); ignored";
    const LIMIT: &str = "bad value (none, auto, bytes such as 512M, or a percentage such as 80%); ignored";
    const PATH: &str = "bad value (a path of at most 511 bytes); ignored";
    const SMALL: &str = "too little for any program to run (1M is the least); ignored";
    let (long, full) = ("x".repeat(512), "%p".to_string() + &"x".repeat(500));
    for (key, bad, message) in [
        (
            "audit_log",
            &["", "0", "268435457", "1K", "x"][..],
            "bad value (1 to 268435456 entries, until the log is made); ignored",
        ),
        ("background", &["", "2", "Inline", "thread"], "bad value (0, inline or 1); ignored"),
        ("caches", &["", "cpus", "AUTO"], "bad value (auto, thread or cpu); ignored"),
        (
            "guard_sample",
            &["", "1099511627777", "-1", "1K"],
            "bad value (0 for none, auto, or N for one object in N, up to 1099511627776); ignored",
        ),
        ("hard_limit", &["", "0", "0%", "101%", "1X", "all"], LIMIT),
        ("hard_limit", &["1", "1023K"], SMALL),
        ("memory_limit", &["", "50%", "0"], "bad value (cgroup, auto, none, or bytes such as 512M); ignored"),
        ("memory_limit", &["4096"], SMALL),
        ("name_mappings", &["", "2", "on"], "bad value (0 or 1); ignored"),
        (
            "page_heap",
            &["", "buddy"],
            "bad value (temeraire or frames, before the first request: set it in the environment); ignored",
        ),
        ("pressure", &["", "101", "10%", "x"], "bad value (0 to 100 percent); ignored"),
        ("quarantine", &["", "1099511627777", "2T", "x"], "bad value (0 to 1T bytes, such as 64M); ignored"),
        (
            "release_rate",
            &["", "1Q", "18446744073709551616", "-1", "Auto"],
            "bad value (auto, or bytes, such as 512K); ignored",
        ),
        ("soft_limit", &["", "x", "1000%"], LIMIT),
        ("soft_limit", &["1"], SMALL),
        ("stats", &["", "2", "yes"], "bad value (0 or 1); ignored"),
        ("stats_file", &[&long, "a\0b"], PATH),
        ("thp", &["", "on"], "bad value (auto, always or never); ignored"),
        ("thread_cache", &["", "1 M", "99999999999999999999"], BYTES),
        ("trace", &[&long, &full, "a\0b"], PATH),
        ("trace_events", &["", "0", "1M"], "bad value (a number above 0); ignored"),
        (
            "debug",
            &["audits"],
            "is no check (checks: audit, redzone, poison, verify, guard, unmap, leak, mismatch, all, none; \
            targets follow a colon, with + between them); ignored",
        ),
    ] {
        let before = value_of(key);
        for value in bad {
            assert_eq!(refusal(key, value), message, "{key}={value}");
        }
        assert_eq!(value_of(key), before, "{key}");
    }
    for option in OPTIONS {
        assert!(!set(option.key.as_bytes(), b"\0"), "{}", option.key);
    }
}

#[test]
fn the_ends_of_each_range_are_taken() {
    let _alone = alone();
    for (key, values) in [
        ("quarantine", &["0", "1099511627776"][..]),
        ("trace_events", &["1", "18446744073709551615"]),
        ("release_rate", &["0", "1", "auto"]),
        ("pressure", &["0", "100"]),
        ("thread_cache", &["0"]),
    ] {
        let before = value_of(key);
        for value in values {
            assert!(set(key.as_bytes(), value.as_bytes()), "{key}={value}");
            assert_eq!(value_of(key), *value, "{key}");
        }
        assert!(set(key.as_bytes(), before.as_bytes()));
    }
    let before = value_of("quarantine");
    assert!(set(b"quarantine", b"1t") && value_of("quarantine") == "1099511627776");
    assert!(set(b"quarantine", before.as_bytes()));
}

#[test]
fn a_list_of_options_is_cut_at_commas_but_within_the_checks_of_debug() {
    let items =
        |text: &'static [u8]| Items(text).map(|item| String::from_utf8_lossy(item).into_owned()).collect::<Vec<_>>();
    assert_eq!(items(b"thp=auto,stats=1"), ["thp=auto", "stats=1"]);
    assert_eq!(items(b"debug=audit,redzone:a=b,poison,stats=1"), ["debug=audit,redzone:a=b,poison", "stats=1"]);
    assert_eq!(items(b"debug=audit,,stats=1"), ["debug=audit", "stats=1"]);
    assert_eq!(items(b""), [""; 0]);
}

#[test]
fn a_value_may_have_an_equals_sign_and_a_bad_option_does_not_stop_the_next() {
    let _alone = alone();
    let (before, path) = (value_of("stats_file"), "/nonexistent/a=b");
    apply(format!("no_such_option=1,pressure=101,nothing,stats_file={path}").as_bytes());
    let after = value_of("stats_file");
    assert!(set(b"stats_file", before.as_bytes()));
    assert_eq!(after, path);
}

#[test]
fn every_handler_takes_the_values_that_its_row_names() {
    for key in Key::ALL {
        assert!(handlers::takes_its_form(key), "{key:?}");
    }
}
