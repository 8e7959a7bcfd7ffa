//! Wrong usage: status 2 with a remedy. Help and version: status 0.

use crate::common::{Place, craton, said};

fn wrong(args: &[&str], expected: &[&str]) {
    let said = said(&mut craton(args));
    assert_eq!(said.status, 2, "{args:?}: {}", said.err);
    assert_eq!(said.out, "", "{args:?}");
    for text in expected {
        assert!(said.err.contains(text), "{args:?} does not say {text:?}: {}", said.err);
    }
}

#[test]
fn no_command_and_unknown_ones() {
    wrong(&[], &["run", "compare", "Examples"]);
    let all = "commands: run, compare, lab, replay, tune, trace, core, get, profile, serve, set, top, heap";
    wrong(&["rum", "--", "true"], &["rum", "`craton run`", all]);
    wrong(&["rnu"], &["rnu", "did you mean `craton run`?", all]);
    wrong(&["cmopare", "--", "true"], &["did you mean `craton compare`?", all]);
    wrong(&["xyzzy"], &["tip: commands: run"]);
    wrong(&["help", "cmopare"], &["unrecognized subcommand 'cmopare'"]);
    wrong(&["core", "--pid", "1", "leak"], &["did you mean `craton core leaks`?"]);
    wrong(&["core", "--pid", "1", "frob"], &["unrecognized subcommand 'frob'", "commands: stats, leaks"]);
    wrong(&["core", "--json", "-", "--pid=1", "verfy"], &["'verfy'", "did you mean `craton core verify`?"]);
    wrong(&["core", "--pid", "1", "verify", "leaks"], &["one command at a time; run `leaks` by itself"]);
    wrong(&["lab", "lits"], &["did you mean `craton lab list`?", "commands: list, run"]);
    wrong(&["--nonsense"], &["--nonsense"]);
}

#[test]
fn a_program_is_missing_or_not_behind_the_dashes() {
    for command in ["run", "compare"] {
        wrong(&[command], &["<CMD>"]);
        wrong(&[command, "--"], &["<CMD>"]);
        wrong(&[command, "--"], &[&format!("such as: craton {command} -- ls /")]);
        wrong(&[command, "true"], &["true", "-- <CMD>"]);
        wrong(&[command, "echo"], &[&format!("`--` is missing before the program to run: craton {command} -- echo\n")]);
        let typed = [command, "-o", "thp=never", "sh", "-c", "echo a", "--", "b"];
        wrong(&typed, &[&format!(": craton {command} -o thp=never -- sh -c 'echo a' b\n")]);
        wrong(&[command, "--nonsense", "--", "true"], &["--nonsense"]);
    }
}

#[test]
fn empty_names_and_places_that_cannot_be_are_told() {
    for command in ["run", "compare"] {
        wrong(&[command, "--", ""], &["the name of the program to run is empty"]);
    }
    wrong(&["run", "--trace", "a,b", "--", "true"], &["--trace a,b: its absolute path has a comma"]);
    wrong(&["run", "--trace", "-", "--", "true"], &["--trace -: it cannot go to standard output"]);
    wrong(&["compare", "--peers", "x=/", "--", "true"], &["x: `/` is a directory"]);
    let said = said(&mut craton(["replay", "/"]));
    assert!(said.status == 1 && said.err.contains("give the path of a trace in it"), "{}", said.err);
}

#[test]
fn help_that_cannot_be_printed_is_told() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let help = craton(["--help"]).stdout(full()).output().unwrap();
    assert_eq!(help.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&help.stderr).contains("cannot print the help: No space left"));
}

#[test]
fn options_have_the_form_of_a_setting() {
    for wrong_form in ["thp", "=1", ""] {
        wrong(&["run", "-o", wrong_form, "--", "true"], &["KEY=VALUE"]);
    }
    wrong(&["run", "-o", "stats_file=/a,b", "--", "true"], &["comma"]);
    wrong(&["compare", "-o", "thp", "--", "true"], &["KEY=VALUE"]);
    let unknown = ["invalid value 'trhead_cache=1'", "did you mean `thread_cache`?", "options: audit_log, "];
    wrong(&["compare", "-o", "trhead_cache=1", "--", "true"], &unknown);
    wrong(&["compare", "-o", "thp=on", "--", "true"], &["invalid value 'thp=on'", "auto, always or never"]);
    wrong(&["run", "-o"], &["-o"]);
}

/// Each command that takes options of a heap.
#[test]
fn a_wrong_option_of_any_command_ends_with_2_before_anything_runs() {
    let place = Place::new("wrong-options");
    let (made, trace) = (place.path("made"), place.path("absent.trace"));
    let touch = ["--", "touch", &made];
    for option in ["nonsense=1", "thp", "thp=on", "hard_limit=-5", "=", "", "release_rate=1X"] {
        wrong(&[&["run", "-o", option], &touch[..]].concat(), &[]);
        wrong(&[&["run", "--stats", "-o", option], &touch[..]].concat(), &[]);
        wrong(&[&["run", "--json", &made, "-o", option], &touch[..]].concat(), &[]);
        wrong(&[&["compare", "--peers", "none", "--json", &made, "-o", option], &touch[..]].concat(), &[]);
        // The trace would be missing, with status 1.
        wrong(&["replay", &trace, "--json", &made, "-o", option], &[]);
        // Process 1 is not ours.
        wrong(&["set", "1", option], &[]);
        for task in
            [&["tune", &trace] as &[&str], &["core", "1"], &["lab", "run", "speed"], &["profile", "1"], &["get", "1"]]
        {
            wrong(&[task, &["-o", option]].concat(), &["-o"]);
        }
    }
    let both = |hard: &str, soft: &str| [format!("hard_limit={hard}"), format!("soft_limit={soft}")];
    for (hard, soft) in [("1G", "2G"), ("50%", "60%")] {
        let [hard, soft] = both(hard, soft);
        let why = format!("-o {soft}: above {hard}; lower it, or raise that");
        wrong(&[&["run", "-o", &hard, "-o", &soft], &touch[..]].concat(), &[&why]);
        wrong(&[&["compare", "-o", &hard, "-o", &soft], &touch[..]].concat(), &[&why]);
    }
    assert!(!std::fs::exists(&made).unwrap(), "something ran, or a file was made");
    let [hard, soft] = both("2G", "1G");
    assert_eq!(said(&mut craton([&["run", "-o", &hard, "-o", &soft], &touch[..]].concat())).status, 0);
    assert!(std::fs::exists(&made).unwrap());
}

#[test]
fn numbers_have_limits() {
    for runs in ["0", "-1", "x", "", "1.5"] {
        wrong(&["compare", &format!("--runs={runs}"), "--", "true"], &["--runs", "from 1"]);
        wrong(&["lab", "run", "speed", "--runs", runs], &["--runs", "from 1"]);
    }
    wrong(&["compare", "--warmup", "-1", "--", "true"], &["--warmup", "from 0"]);
    wrong(&["compare", "--pin", "-1", "--", "true"], &["--pin -1: give numbers of processors"]);
    for timeout in ["0", "-1", "soon", "inf"] {
        wrong(&["compare", &format!("--timeout={timeout}"), "--", "true"], &["--timeout", "above 0"]);
        wrong(&["compare", "--timeout", timeout, "--", "true"], &["--timeout", "above 0"]);
    }
}

#[test]
fn help_has_examples_and_the_version_is_the_packages() {
    for args in [&["--help"] as &[&str], &["run", "--help"], &["compare", "--help"], &["run", "-h"]] {
        let said = said(&mut craton(args));
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
        assert!(said.out.contains("Examples:\n  craton "), "{args:?}: {}", said.out);
    }
    for (short, long) in [(&["help"] as &[&str], &["--help"] as &[&str]), (&["help", "run"], &["run", "--help"])] {
        assert_eq!(said(&mut craton(short)).out, said(&mut craton(long)).out, "{short:?}");
    }
    assert_eq!(said(&mut craton(["version"])).out, said(&mut craton(["--version"])).out);
    let said = said(&mut craton(["--version"]));
    assert_eq!((said.status, said.out.as_str()), (0, concat!("craton ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn the_lab_without_its_program_says_how_to_build_it() {
    let place = Place::new("no-papers");
    let program = place.path("craton");
    // Children that tests start meanwhile inherit a file that this process writes.
    let copied = std::process::Command::new("cp").args([env!("CARGO_BIN_EXE_craton"), &program]).status().unwrap();
    assert!(copied.success());
    for task in [&["list"] as &[&str], &["run", "speed", "--quick"]] {
        let said = said(std::process::Command::new(&program).arg("lab").args(task));
        assert_eq!((said.status, said.out.as_str()), (1, ""));
        let parts =
            ["cannot find craton-papers", &place.path("craton-papers"), "lib/craton/craton-papers", "`make build`"];
        assert!(parts.iter().all(|part| said.err.contains(part)), "{}", said.err);
    }
}

#[test]
fn control_characters_of_names_and_values_are_not_printed() {
    let odd = "x\ncraton: all is well\r\x1b[2J\u{9b}31m";
    let lines: [(&[&str], usize); 8] = [
        (&[odd], 3),
        (&["run", "-o", &format!("thp={odd}"), "--", "true"], 1),
        (&["run", "-o", &format!("{odd}=1"), "--", "true"], 1),
        (&["run", "--", odd], 1),
        (&["compare", "--peers", odd, "--", "true"], 1),
        (&["core", odd, "stats"], 1),
        (&["replay", odd], 1),
        (&["run", "--trace", &format!("/nonexistent/{odd}"), "--", "true"], 1),
    ];
    for (args, most) in lines {
        let said = said(&mut craton(args));
        assert!(!said.err.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {:?}", said.err);
        assert!(!said.err.lines().any(|line| line.starts_with("craton: all is well")), "{args:?}: {:?}", said.err);
        let own = said.err.lines().filter(|line| line.contains("craton: all is well")).count();
        assert!((1..=most).contains(&own), "{args:?}: {:?}", said.err);
    }
}

#[test]
fn no_line_of_a_help_is_longer_than_80_characters() {
    let commands = ["run", "compare", "lab", "lab list", "lab run", "replay", "core", "core leaks", "core log", "set"];
    for command in [""].into_iter().chain(commands) {
        let said = said(craton(command.split_whitespace()).arg("--help"));
        let long = said.out.lines().find(|line| line.chars().count() > 80);
        assert_eq!((said.status, long), (0, None), "{command}");
    }
}
