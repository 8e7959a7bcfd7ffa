use super::*;

#[test]
fn checks_are_known_by_name_and_what_is_none_is_named() {
    assert_eq!(checks_in(b"audit,redzone"), Ok(AUDIT | REDZONE));
    assert_eq!(checks_in(b"all"), Ok((2 * MISMATCH - 1) & !SAMPLED));
    assert_eq!(checks_in(b"none"), Ok(0));
    for (bad, part, why) in [
        (&b"audits"[..], &b"audits"[..], "is no check"),
        (b"audit,", b"", "a comma too many"),
        (b",", b"", "a comma too many"),
        (b"redzone,,poison", b"", "a comma too many"),
        (b"audit redzone", b"audit redzone", "is no check"),
        (b"audit,1", b"1", "is no check"),
        (b"all,none", b"none", "stands alone"),
        (b"all:64+", b"", "empty target"),
        (b"all:", b"", "empty target"),
        (b"all:64k", b"64k", "no size"),
        (b"all:-5", b"-5", "no size"),
        (b"all:99999999999999999999", b"99999999999999999999", "larger than any object"),
        (b"mismatch:nowhere", b"nowhere", "is no size, nor large or malloc"),
        (b"mismatch:64+malloc+nowhere", b"nowhere", "is no size, nor large or malloc"),
        (b"all:64,nonsense", b"64,nonsense", "can be no cache's name"),
    ] {
        let wrong = Setting::new().check(bad).unwrap_err();
        assert_eq!(wrong.part, part, "{}", bad.escape_ascii());
        assert!(wrong.why.contains(why), "{}: {}", bad.escape_ascii(), wrong.why);
    }
    assert_eq!(Setting::new().check(b"all:64+large+my-cache+malloc+300000"), Ok(true));
    assert_eq!(Setting::new().check(b"mismatch,redzone:jobs"), Ok(true));
    assert!(is_check(b"leak:64") && is_check(b"poison") && !is_check(b"thp"));
    assert_eq!(targets_in(b"audit:48+large"), Some(&b"48+large"[..]));
}

#[test]
fn targets_get_the_checks_and_others_none() {
    let setting = Setting::new();
    assert_eq!(setting.set(b"audit,redzone:48+large+jobs"), Some(true));
    assert_eq!(setting.set(b"audit,redzone:48+large+jobs"), Some(false), "nothing has changed");
    let checks = AUDIT | REDZONE;
    assert_eq!([40, 48, 49, 16, 300_000].map(|size| setting.checks_of_size(size)), [checks, checks, 0, 0, checks]);
    assert_eq!((setting.checks_of_cache(b"jobs"), setting.checks_of_cache(b"job")), (checks, 0));
    assert!(setting.verifies() && setting.ever_checks() && !setting.guards() && !setting.searches_leaks());
    assert_eq!(setting.set(b"none"), Some(true));
    assert_eq!((setting.checks_of_size(48), setting.checks_of_cache(b"jobs")), (0, 0));
    assert!(setting.ever_checks(), "there may be buffers from before");
    assert_eq!(setting.set(b"nonsense"), None);
    setting.show(|text| assert_eq!(text, b"none", "a wrong value changes nothing"));
}

#[test]
fn caches_of_which_none_was_made_are_named() {
    let setting = Setting::new();
    assert_eq!((setting.set(b"all:48+one+two+malloc"), setting.unmet()), (Some(true), 2));
    setting.checks_of_cache(b"two");
    let mut names = std::vec::Vec::new();
    setting.each_unmet(|name| names.push(name.to_vec()));
    assert_eq!(names, [b"one".to_vec()]);
    setting.set(b"all");
    assert_eq!(setting.unmet(), 0, "all caches are meant");
}

#[test]
fn a_program_that_frees_by_sizes_alone_cannot_turn_checks_on() {
    let setting = Setting::new();
    setting.trust();
    assert!(setting.check(b"all").unwrap_err().why.starts_with("this program frees objects by their sizes alone"));
    assert_eq!((setting.set(b"all"), setting.check(b"none")), (None, Ok(false)));
}

#[test]
fn the_log_has_as_many_entries_as_were_asked_for_before_it_was_made() {
    let setting = Setting::new();
    assert_eq!((setting.log_entries(), setting.log().is_none()), (1 << 16, true));
    for bad in [&b"0"[..], b"", b"x", b"999999999999"] {
        assert!(!setting.set_log_entries(bad));
    }
    assert!(setting.set_log_entries(b"1000"));
    setting.set(b"audit");
    assert!(setting.log().is_some() && setting.set_log_entries(b"1000") && !setting.set_log_entries(b"2000"));
    assert_eq!(setting.log_range().1, 1000 * size_of::<Entry>());
}

#[test]
fn a_value_may_be_as_long_as_its_text() {
    let mut value = b"all:".to_vec();
    value.resize(TEXT_MAX, b'1');
    assert!(Setting::new().check(&value).unwrap_err().why.contains("larger than any object"));
    value.push(b'1');
    assert!(Setting::new().check(&value).unwrap_err().why.contains("longer than 256 bytes"));
}
