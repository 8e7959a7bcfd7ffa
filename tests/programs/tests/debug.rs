//! The debugging kit in correct programs.

use craton_programs::{Output, Program, cc, missing, workspace};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Real programs have leaks.
const ALL: &str = "debug=audit,redzone,poison,verify,guard,unmap";

fn program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let include = format!("-I{}", workspace().join("crates/preload/include").display());
        cc("debug.c", &[&include, "-D_GNU_SOURCE", "-pthread", "-ldl"])
    })
}

fn run(part: &str, options: &str) -> Output {
    let output = Program::new(program()).arg(part).preloaded().options(options).timeout(200).run();
    output.assert_success();
    output
}

#[test]
fn checks_go_on_and_off_while_the_program_runs() {
    run("live", "");
    run("live", "caches=thread");
    run("toggled", "");
    run("toggled", "caches=cpu");
}

#[test]
fn a_log_that_is_full_loses_the_oldest_and_counts_all() {
    run("overflowing", "audit_log=16,debug=audit");
}

#[test]
fn without_mappings_further_buffers_lie_on_the_heap_and_one_line_says_so() {
    let output = run("more_than_pages", "debug=redzone,guard");
    assert_eq!(output.stderr.matches("further ones are on the heap").count(), 1, "{output}");
}

#[test]
fn children_go_on_under_the_kit() {
    run("forks", ALL);
    run("forks", "debug=all");
}

#[test]
fn a_report_has_the_numbers_of_threads_and_of_children() {
    let output = Program::new(program()).arg("numbers").preloaded().options("debug=audit,verify").run();
    output.assert_success();
    let numbers: Vec<&str> = output.stdout.split_whitespace().collect();
    let [process, thread, child] = numbers[..] else { panic!("{output}") };
    assert!(process != child && thread != child, "{output}");
    for said in [("allocated", process), ("freed", thread), ("found", child)] {
        assert!(output.stderr.contains(&format!("{} by thread {}", said.0, said.1)), "{output}");
    }
}

fn has_marks() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|n| n.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(13))
}

#[test]
fn a_process_that_forks_has_few_mappings() {
    for options in [ALL, "debug=guard", "debug=all"] {
        let counts = run("marks", options).stdout;
        let mut counts = counts.split_whitespace().map(|n| n.parse::<usize>().unwrap());
        let (before, after) = (counts.next().unwrap(), counts.next().unwrap());
        assert!(before > 15_000, "{options}: {before} mappings");
        // Without `unmap` freed pages stay open.
        if has_marks() && options != "debug=guard" {
            assert!(after < 1000, "{options}: {before} mappings, then {after}");
        }
    }
}

#[test]
fn samples_are_as_many_as_were_asked_for() {
    // Of 40,000 one in 50: 800, standard deviation 28.
    let output = run("sampled", "guard_sample=50,stats=1");
    let counts: Vec<u64> = output.stdout.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let [samples, all] = counts[..] else { panic!("{output}") };
    assert!((660..940).contains(&samples), "{samples}");
    assert!(output.stderr.lines().any(|line| line == format!("  debug samples {all}")), "{output}");
    let output = run("sampled", "guard_sample=0,stats=1");
    assert_eq!(output.stdout.trim(), "0 0");
    assert!(!output.stderr.contains("  debug "), "{output}");
}

#[test]
fn a_bug_is_found_as_often_as_the_chance_says() {
    // 4 objects, one of 8 sampled: 1 − (7/8)⁴ = 0.414; of 150 runs 62, standard deviation 6.
    let found = (0..150)
        .filter(|_| {
            let output = Program::new(program()).arg("past_the_end").preloaded().options("guard_sample=8").run();
            let found = output.signal.is_some();
            assert_eq!(found, output.stderr.contains("craton: BUG overflow: "), "{output}");
            found
        })
        .count();
    assert!((32..92).contains(&found), "{found} of 150");
}

#[test]
fn a_bug_in_each_turn_of_a_loop_is_found_without_any_option() {
    const RUNS: usize = 10;
    for part in ["past_each_end", "past_each_end_of_pages"] {
        let turns = |_| {
            let output = Program::new(program()).arg(part).preloaded().run();
            assert!(output.stderr.contains("craton: BUG overflow: "), "{output}");
            assert!(output.stderr.contains("past_ends_of"), "who allocated it: {output}");
            100_000 * output.stdout.len()
        };
        let all: usize = (0..RUNS).map(turns).sum();
        assert!(all / RUNS <= 1_000_000, "{part}: {} turns on average", all / RUNS);
    }
    let output = Program::new(program()).arg("past_each_end").preloaded().options("guard_sample=0").run();
    output.assert_success();
}

#[test]
fn a_process_holds_little_more_for_its_samples() {
    let held = |options: &str| -> u64 {
        let output = Program::new(program()).arg("holds").preloaded().options(options).run();
        output.assert_success();
        output.stdout.trim().parse().unwrap()
    };
    let (with, without) = (held(""), held("guard_sample=0"));
    assert!(with <= without + 768, "{with} KiB with samples, {without} without");
}

#[test]
fn what_is_wrong_with_a_setting_is_named() {
    let said = |options: &str| {
        let output = Program::new("true").preloaded().options(options).run();
        output.assert_success();
        output.stderr
    };
    let no_check = "is no check (checks: audit, redzone, poison, verify, guard, unmap, leak, mismatch, all, none; targets follow a colon, with + between them); ignored";
    for (options, option, why) in [
        ("debug=redzone,nonsense", "debug=redzone,nonsense", &format!("\"nonsense\" {no_check}")[..]),
        ("debug=all,none,thp=auto", "debug=all,none", "\"none\" turns all checks off, and so stands alone; ignored"),
        (
            "thp=auto,debug=redzone,,poison",
            "debug=redzone,,poison",
            "has a comma too many: there is nothing before or behind it; ignored",
        ),
        ("debug=all:64K", "debug=all:64K", "\"64K\" is no size: give bytes as a plain number; ignored"),
        (
            "debug=mismatch:nowhere",
            "debug=mismatch:nowhere",
            "\"nowhere\" is no size, nor large or malloc, and mismatch checks only what these serve: caches have one function each; ignored",
        ),
        ("quarantine=999999T", "quarantine=999999T", "bad value (0 to 1T bytes, such as 64M); ignored"),
    ] {
        assert_eq!(said(options), format!("craton: option \"{option}\": {why}\n"), "{options}");
    }
    assert_eq!(said("debug=redzone,poison,,quarantine=1T,debug=audit,"), "");
}

#[test]
fn a_report_to_a_full_pipe_that_nobody_reads_does_not_keep_the_process_from_its_end() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // SAFETY: this test's pipe.
    unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    // SAFETY: likewise.
    unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, 0) };
    let mut child = std::process::Command::new(program())
        .arg("past_the_end")
        .env("LD_PRELOAD", craton_programs::library())
        .env("CRATON_OPTIONS", "debug=all")
        .stderr(writer)
        .spawn()
        .unwrap();
    // Longer than a report waits.
    let since = std::time::Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if since.elapsed().as_secs() > 120 {
            child.kill().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    drop(reader);
    assert!(matches!(ended.signal(), Some(libc::SIGABRT | libc::SIGSEGV)), "{ended}");
}

fn same(program: Program, exe: &str) {
    let plain = program.clone().run();
    plain.assert_success();
    let checked = program.preloaded().options(ALL).timeout(300).run();
    checked.assert_success();
    checked.assert_served(exe);
    assert_eq!(checked.stdout, plain.stdout, "{checked}");
    assert!(!checked.stderr.contains("craton: BUG"), "{checked}");
}

#[test]
fn shells_and_interpreters_run_under_all_checks() {
    let script =
        "for i in $(seq 300); do x[$i]=\"a$i\"; done; echo ${#x[@]} $(printf '%s\\n' \"${x[@]}\" | sort | md5sum)";
    same(Program::new("bash").args(["-c", script]), "bash");
    same(
        Program::new("perl").args(["-e", "for (1..5000) { $h{$_ * 7} = [$_, \"x$_\"] } print join ',', sort keys %h"]),
        "perl",
    );
    let python = "import json, re\nd = {str(i): [i, {'a': i}] for i in range(3000)}\n\
                  print(len(json.dumps(d)), sum(len(v) for v in json.loads(json.dumps(d)).values()), len(re.findall('a', str(d))))";
    if !missing("/usr/bin/python3", "python3") {
        same(Program::new("/usr/bin/python3").env("PYTHONMALLOC", "malloc").args(["-c", python]), "python3");
    }
    let sql = "create table t (a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000) \
               insert into t select x, hex(x * x) from c; select count(*), sum(a), max(b) from t group by a % 7;";
    if !missing("sqlite3", "sqlite3") {
        same(Program::new("sqlite3").stdin(sql), "sqlite3");
    }
}
