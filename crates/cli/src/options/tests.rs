use super::*;

fn setting(text: &str) -> Setting {
    Setting::parse(text.into()).unwrap()
}

#[test]
fn form_key_and_value_are_checked() {
    for good in ["stats=1", "stats_file=/x=y", "trace=", "soft_limit=80%", "release_rate=512kib", "debug="] {
        assert!(Setting::parse(good.into()).is_ok(), "{good}");
    }
    for (bad, why) in [
        ("memory_limi=1G", "there is no option \"memory_limi\"; did you mean `memory_limit`? options: audit_log, "),
        ("xyzzy=1", "there is no option \"xyzzy\"; options: audit_log, "),
        ("hard_limit=-5", "bad value (none, auto, bytes such as 512M"),
        ("thread_cache=99999999999999999999", "bad value (bytes, such as 512K)"),
        ("debug=everything", "\"everything\" is no check; checks: none, audit, "),
        ("hardened=2", "bad value (0 or 1"),
        ("thp=on", "bad value (auto, always or never)"),
        ("soft_limit=4096", "too little for any program to run (1M is the least)"),
        ("debug=audit,gard", "\"gard\" is no check; checks: none, audit, "),
        ("debug=all:64+", "\"\" is no target; targets stand behind a colon"),
    ] {
        let text = Setting::parse(bad.into()).unwrap_err();
        assert!(text.starts_with(why) && !text.contains("ignored"), "{bad}: {text}");
    }
    let bytes = [b"stats_file=".as_slice(), &[0xff]].concat();
    assert!(check(OsStr::from_bytes(&bytes)).is_ok(), "a path is no text");
    assert!(check(OsStr::from_bytes(b"thp=\xff")).is_err());
    for bad in ["", "stats", "=1", "="] {
        let text = Setting::parse(bad.into()).unwrap_err();
        assert!(text.contains("KEY=VALUE"), "{bad}: {text}");
    }
    assert!(Setting::parse("debug=audit,redzone:64+large".into()).is_ok());
    for bad in ["stats_file=/a,b", "debug=audit,stats=1"] {
        assert!(Setting::parse(bad.into()).unwrap_err().contains("comma"), "{bad}");
    }
}

#[test]
fn options_that_are_fixed_at_the_start_are_refused_later() {
    for setting in ["hardened=1", "page_heap=frames"] {
        assert!(check(setting.as_ref()).is_ok());
        let (key, why) = (setting.split('=').next().unwrap(), check_live(setting.as_ref()).unwrap_err());
        assert_eq!(why, format!("`{key}` can be set at the start only: craton run -o {setting} -- CMD"));
    }
    assert_eq!(check_live("audit_log=1".as_ref()), Ok(()));
    assert!(check_live("hardened=2".as_ref()).unwrap_err().contains("0 or 1"));
}

#[test]
fn settings_go_behind_what_is_there() {
    let new = [setting("thp=always"), setting("stats=1")];
    assert_eq!(merge(None, &new), "thp=always,stats=1");
    assert_eq!(merge(Some(OsStr::new("")), &new), "thp=always,stats=1");
    assert_eq!(merge(Some(OsStr::new("thp=never")), &new), "thp=never,thp=always,stats=1");
    assert_eq!(merge(Some(OsStr::new("thp=never")), []), "thp=never");
}

#[test]
fn a_trace_is_named_from_the_root_on() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("b.%p");
    let wanted = format!("trace={}", file.display());
    assert_eq!(Setting::file("trace", &file), Ok(setting(&wanted)));
    assert!(!file.exists(), "the check leaves nothing behind");
    fs::write(&file, "x").unwrap();
    assert_eq!((Setting::file("trace", &file), fs::read(&file).unwrap()), (Ok(setting(&wanted)), b"x".to_vec()));
    assert!(Setting::file("trace", Path::new("/proc/b")).unwrap_err().starts_with("cannot be written: "));
    assert_eq!(Setting::file("trace", Path::new("/no/%p/b")), Ok(setting("trace=/no/%p/b")));
    for (path, why) in
        [("/no/such/b", "there is no folder /no/such"), ("/", "it is a folder"), ("/dev/null", "not an ordinary file")]
    {
        assert_eq!(Setting::file("trace", Path::new(path)), Err(why.to_owned()));
    }
    let here = std::env::current_dir().unwrap();
    assert_eq!(Setting::file("trace", Path::new("b")), Ok(setting(&format!("trace={}/b", here.display()))));
    assert!(Setting::file("trace", Path::new("/a,b")).unwrap_err().contains("has a comma"));
    assert!(Setting::file("trace", Path::new("-")).unwrap_err().contains("standard output"));
    assert!(Setting::file("trace", Path::new(&"/abcdefghi".repeat(50))).unwrap_err().contains("490"));
}

#[test]
fn the_last_stats_file_counts() {
    assert_eq!(stats_file(OsStr::new("stats_file=/a,stats=1,stats_file=/b")), Some(OsStr::new("/b")));
    assert_eq!(stats_file(OsStr::new("stats_file=/a,stats_file=")), None);
    assert_eq!(stats_file(OsStr::new("thp=auto")), None);
    assert_eq!(merge(None, &[Setting::stats_file(OsStr::new("/c"))]), "stats_file=/c");
}

#[test]
fn the_last_debug_option_decides_whether_leaks_are_searched() {
    let searches = |options: &str| searches_leaks(options.as_ref());
    for with in ["debug=all", "debug=leak", "thp=never,debug=audit,leak,stats=1", "debug=none,debug=audit,all:64+large"]
    {
        assert!(searches(with), "{with}");
    }
    for without in ["", "stats=1", "debug=audit,redzone", "debug=all,debug=none", "debug=audit,stats=1,leak"] {
        assert!(!searches(without), "{without}");
    }
}

#[test]
fn audit_alone_reports_nothing() {
    for options in ["debug=all", "debug=audit,redzone", "debug=guard:64+large", "thp=auto,debug=leak"] {
        assert!(reports(options.as_ref()), "{options}");
    }
    for options in ["", "debug=audit", "debug=audit:64", "debug=none", "debug=0", "debug=all,debug=none", "audit_log=4"]
    {
        assert!(!reports(options.as_ref()), "{options}");
    }
}
