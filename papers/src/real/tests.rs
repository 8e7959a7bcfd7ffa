use super::*;

#[test]
fn every_name_is_found_and_is_that_of_one() {
    for real in REAL {
        assert_eq!(REAL.iter().filter(|other| other.name == real.name).count(), 1, "{}", real.name);
        assert_eq!(find(real.name).unwrap().script, real.script);
        assert!(real.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{}", real.name);
    }
    assert!(find("no-such").is_none());
    assert!(drive::DIALOGUES.iter().all(|name| find(name).is_some()), "a dialogue without a script");
}

#[test]
fn a_missing_program_is_one_line_with_its_package() {
    let real = Real { programs: &["bash", "no-such-program"], package: "no-such-package", ..*find("sort").unwrap() };
    let why = real.available().unwrap_err();
    assert!(why.contains("no-such-program") && why.contains("no-such-package"), "{why}");
    assert!(!why.contains("bash") && !why.contains('\n'), "{why}");
}

#[test]
fn only_what_can_be_executed_is_a_program() {
    assert!(on_path("sh", OsStr::new("/nonexistent:/bin")));
    assert!(!on_path("sh", OsStr::new("/nonexistent")));
    assert!(!on_path("passwd", OsStr::new("/etc")), "a file that nobody can execute");
    assert!(!on_path("bin", OsStr::new("/usr")), "a directory");
}

#[test]
fn every_script_is_bash() {
    for real in REAL {
        let check = |text: &str| {
            let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            std::io::Write::write_all(&mut bash.stdin.take().unwrap(), text.as_bytes()).unwrap();
            bash.wait().unwrap().success()
        };
        assert!(check(real.script) && check(COMMON), "{}", real.name);
        assert!(real.script.starts_with("#!/usr/bin/env bash\n# "), "{} says at its head what is true", real.name);
    }
}
