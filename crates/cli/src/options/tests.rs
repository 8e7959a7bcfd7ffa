use super::*;

fn setting(text: &str) -> Setting {
    Setting::parse(text.into()).unwrap()
}

#[test]
fn the_form_is_checked_and_keys_are_the_librarys() {
    for good in ["stats=1", "stats_file=/x=y", "thp=", "a_key_of_tomorrow=1"] {
        assert!(Setting::parse(good.into()).is_ok(), "{good}");
    }
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
fn settings_go_behind_what_is_there() {
    let new = [setting("thp=always"), setting("stats=1")];
    assert_eq!(merge(None, &new), "thp=always,stats=1");
    assert_eq!(merge(Some(OsStr::new("")), &new), "thp=always,stats=1");
    assert_eq!(merge(Some(OsStr::new("thp=never")), &new), "thp=never,thp=always,stats=1");
    assert_eq!(merge(Some(OsStr::new("thp=never")), []), "thp=never");
}

#[test]
fn a_trace_is_named_from_the_root_on() {
    assert_eq!(Setting::trace(Path::new("/a/b.%p")), Ok(setting("trace=/a/b.%p")));
    let here = std::env::current_dir().unwrap();
    assert_eq!(Setting::trace(Path::new("b")), Ok(setting(&format!("trace={}/b", here.display()))));
    assert!(Setting::trace(Path::new("/a,b")).unwrap_err().contains("has a comma"));
    assert!(Setting::trace(Path::new("-")).unwrap_err().contains("standard output"));
    assert!(Setting::trace(Path::new(&"/abcdefghi".repeat(50))).unwrap_err().contains("490"));
}

#[test]
fn the_last_stats_file_counts() {
    assert_eq!(stats_file(OsStr::new("stats_file=/a,stats=1,stats_file=/b")), Some(OsStr::new("/b")));
    assert_eq!(stats_file(OsStr::new("stats_file=/a,stats_file=")), None);
    assert_eq!(stats_file(OsStr::new("thp=auto")), None);
    assert_eq!(merge(None, &[Setting::stats_file(OsStr::new("/c"))]), "stats_file=/c");
}
