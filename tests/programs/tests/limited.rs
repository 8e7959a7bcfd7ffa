//! Limits of program and control group.

use craton_programs::{Group, Output, Program, cc, cxx, workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let include = format!("-I{}", workspace().join("crates/preload/include").display());
        cc("limited.c", &[&include, "-pthread", "-ldl"])
    })
}

fn name() -> &'static str {
    program().file_name().and_then(|n| n.to_str()).expect("the program has a name")
}

fn run(part: &str, options: &str) -> Output {
    let output = Program::new(program()).arg(part).preloaded().options(options).timeout(300).run();
    output.assert_success();
    output.assert_served(name());
    output
}

#[test]
fn a_passed_soft_limit_gives_free_memory_back() {
    let output = run("soft_gives_back", "soft_limit=100M");
    assert!(output.assert_served(name()).soft_limit_passed > 0);
    assert!(output.stderr.is_empty(), "{output}");
}

#[test]
fn a_soft_limit_that_cannot_be_kept_is_told_but_not_in_each_request() {
    run("soft_calls_back", "soft_limit=64M");
}

#[test]
fn a_program_that_drops_its_cache_lives_at_its_soft_limit() {
    run("soft_drops", "soft_limit=64MiB");
    run("soft_drops", "memory_limit=80M,soft_limit=80%");
}

#[test]
fn a_program_forks_at_its_soft_limit_and_in_its_callback() {
    run("soft_forks", "soft_limit=32M");
}

#[test]
fn a_hard_limit_is_enomem_and_what_was_freed_can_be_had_again() {
    let output = run("hard_refuses", "hard_limit=128M");
    assert!(output.assert_served(name()).hard_limit_refused > 0);
    run("hard_refuses", "hard_limit=128M,background=0");
    run("hard_refuses", "hard_limit=128M,caches=cpu");
}

#[test]
fn a_program_forks_at_its_hard_limit() {
    run("hard_forks", "hard_limit=64M");
}

#[test]
fn threads_live_at_both_limits() {
    run("threads", "hard_limit=48M,soft_limit=40M");
}

#[test]
fn limits_below_what_is_in_use_act_at_once_and_say_so() {
    let output = run("below_use", "");
    let (full, lines): (Vec<&str>, Vec<&str>) =
        output.stderr.lines().partition(|line| line.starts_with("craton: the "));
    assert_eq!((lines.len(), full.len()), (5, 2), "{output}");
    assert!(
        full[0].contains("the soft limit of 20.0 MiB is passed") && full[0].contains("objects of 4096"),
        "{output}"
    );
    assert!(full[1].contains("the hard limit of 10.0 MiB refused a request of "), "{output}");
    let (soft, hard) = (20 << 20, 10 << 20);
    let above = format!(
        "craton: hard_limit of {hard} bytes is below the soft_limit of {soft} bytes, which is never reached now; set that below it, too"
    );
    assert_eq!(lines[2], above, "{output}");
    assert!(lines[3].starts_with(&format!("craton: hard_limit of {hard} bytes is below the ")), "{output}");
    assert!(lines[3].ends_with("free memory is given back, and more is refused until enough is freed"), "{output}");
    let auto = (20 << 20) * 9 / 10;
    assert!(lines[4].starts_with(&format!("craton: soft_limit of {auto} bytes is below the ")), "{output}");
    assert!(lines[0].starts_with(&format!("craton: soft_limit of {soft} bytes is below the ")), "{output}");
    assert!(lines[0].ends_with(" bytes in use; free memory is given back now"), "{output}");
    assert!(lines[1].starts_with(&format!("craton: hard_limit of {hard} bytes is below the ")), "{output}");
    assert!(lines[1].ends_with("free memory is given back, and more is refused until enough is freed"), "{output}");
}

#[test]
fn operator_new_throws_at_the_hard_limit() {
    let program = cxx("limited.cpp", &[]);
    let output = Program::new(&program).preloaded().options("hard_limit=64M").run();
    output.assert_success();
    output.assert_served(program.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    run("bad_options", "memory_limit=none");
    for (option, text) in [
        ("soft_limit=big", "bad value (none, auto, bytes such as 512M, or a percentage such as 80%); ignored"),
        ("hard_limit=0", "bad value (none, auto, bytes such as 512M, or a percentage such as 80%); ignored"),
        ("memory_limit=5%", "bad value (cgroup, auto, none, or bytes such as 512M); ignored"),
        ("pressure=200", "bad value (0 to 100 percent); ignored"),
        ("hard_limit=100K", "too little for any program to run (1M is the least); ignored"),
        ("soft_limit=1", "too little for any program to run (1M is the least); ignored"),
        ("memory_limit=4096", "too little for any program to run (1M is the least); ignored"),
    ] {
        let output = Program::new(cc("plain.c", &[])).preloaded().options(option).run();
        output.assert_success();
        assert_eq!(output.stderr, format!("craton: option \"{option}\": {text}\n"));
    }
}

#[test]
fn a_soft_limit_above_the_hard_one_is_one_line() {
    let said = |options: &str| {
        let output = Program::new(cc("plain.c", &[])).preloaded().options(options).run();
        output.assert_success();
        output.stderr
    };
    assert_eq!(said("hard_limit=32M,soft_limit=32M"), "");
    assert_eq!(
        said("hard_limit=32M,soft_limit=64M"),
        "craton: option \"soft_limit=64M\": more than the hard limit, so that it would never be reached (set it below that); ignored\n"
    );
    let (soft, hard) = (64 << 20, 32 << 20);
    assert_eq!(
        said("soft_limit=64M,hard_limit=32M"),
        format!(
            "craton: hard_limit of {hard} bytes is below the soft_limit of {soft} bytes, which is never reached now; set that below it, too\n"
        )
    );
}

#[test]
fn a_program_does_the_background_work_itself() {
    run("own_maintenance", "background=0");
}

#[test]
fn a_control_groups_limit_gives_the_soft_limit_and_is_read_again() {
    let Some(group) = Group::with_half_a_processor(200 << 20) else {
        eprintln!("skipped: this user may not make control groups with limits");
        return;
    };
    let shell = format!("{} exec env LD_PRELOAD=\"$1\" \"$0\" in_group", group.enter());
    let run = Program::new("bash").args(["-c", &shell]).arg(program()).arg(craton_programs::library());
    let mut running = run.options("background=0").timeout(300).start();
    let seen = running.segment_when(|s| s.memory_limit_bytes == 200 << 20);
    assert_eq!(seen.usable_cpus, 1);
    assert!(group.limit(100 << 20));
    let output = running.wait();
    output.assert_success();
    assert_eq!(output.stdout, "1\n");
    output.assert_served(name());
}

#[test]
fn an_ordinary_control_group_is_looked_at_in_silence() {
    let output = run("grows", "background=0");
    assert!(output.stderr.is_empty(), "{output}");
    assert_eq!(output.assert_served(name()).memory_limit_source, 4, "the option that it sets last");
}

#[test]
fn an_odd_file_of_the_control_group_is_one_line_and_no_limit() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, "12 apples\n").expect("written");
    let shell = "group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup); all=$(sed -n 's/^0:://p' /proc/self/cgroup); \
                 for f in \"/sys/fs/cgroup/memory$group/memory.limit_in_bytes\" \"/sys/fs/cgroup$all/memory.max\"; do \
                 if [ -e \"$f\" ]; then mount --bind \"$2\" \"$f\" || exit 77; \
                 exec env LD_PRELOAD=\"$1\" \"$0\" grows; fi; done; exit 77";
    let run = Program::new("unshare").args(["-m", "bash", "-c", shell]).arg(program()).arg(craton_programs::library());
    let output = run.arg(file.path()).options("background=0").run();
    if matches!(output.status, Some(77)) || output.stderr.contains("unshare: ") {
        eprintln!("skipped: the process is in no group below the top, or this user may not replace its file");
        return;
    }
    output.assert_success();
    output.assert_served(name());
    let line = output.stderr.strip_suffix('\n').unwrap_or_else(|| panic!("a line:\n{output}"));
    assert!(line.starts_with("craton: /sys/fs/cgroup/") && !line.contains('\n'), "{output}");
    let says = " reads \"12 apples\", which is no limit that this version knows; taken as no limit";
    assert!(line.ends_with(says), "{output}");
}

#[test]
fn a_missing_file_of_the_control_group_is_no_error_and_no_limit() {
    let shell = "group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup); all=$(sed -n 's/^0:://p' /proc/self/cgroup); \
                 for d in \"/sys/fs/cgroup/memory$group\" \"/sys/fs/cgroup$all\"; do \
                 if [ \"${d%/}\" = \"$d\" ] && [ -e \"$d/memory.limit_in_bytes\" -o -e \"$d/memory.max\" ]; then \
                 mount -t tmpfs none \"$d\" || exit 77; [ ! -e \"$d/memory.max\" ] || exit 78; \
                 exec env LD_PRELOAD=\"$1\" \"$0\" grows; fi; done; exit 77";
    let run = Program::new("unshare").args(["-m", "bash", "-c", shell]).arg(program()).arg(craton_programs::library());
    let output = run.options("background=0").run();
    if matches!(output.status, Some(77)) || output.stderr.contains("unshare: ") {
        eprintln!("skipped: the process is in no group below the top, or this user may not hide its files");
        return;
    }
    output.assert_success();
    output.assert_served(name());
    assert!(output.stderr.is_empty(), "{output}");
}

#[test]
fn pressure_gives_free_memory_back() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(
        &file,
        "some avg10=10.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    )
    .expect("written");
    let shell =
        "mount --bind \"$2\" /proc/pressure/memory || exit 77; exec env LD_PRELOAD=\"$1\" \"$0\" under_pressure";
    let run = |options: &str| {
        let run =
            Program::new("unshare").args(["-m", "bash", "-c", shell]).arg(program()).arg(craton_programs::library());
        run.arg(file.path()).options(options).run()
    };
    let output = run("background=0,pressure=10");
    if matches!(output.status, Some(77)) || output.stderr.contains("unshare: ") {
        eprintln!("skipped: the system has no file of pressure, or this user may not replace it");
        return;
    }
    output.assert_success();
    assert_eq!(output.assert_served(name()).pressure_releases, 1);
    let output = run("background=0,pressure=11");
    assert!(output.stderr.contains("segment->pressure_releases == 1"), "less than the threshold: {output}");
}
