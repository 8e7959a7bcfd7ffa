use craton_programs::{Program, cc, cxx, library, workspace};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// pthreads(7), as far as an allocator could use them. `malloc_info` calls `fwrite` without a lock,
/// as the C library's does.
const CANCELLATION_POINTS: [&str; 34] = [
    "accept",
    "clock_nanosleep",
    "close",
    "connect",
    "creat",
    "fallocate",
    "fdatasync",
    "fsync",
    "getline",
    "msync",
    "nanosleep",
    "open",
    "open64",
    "openat",
    "pause",
    "poll",
    "ppoll",
    "pread",
    "pread64",
    "preadv",
    "pwrite",
    "pwrite64",
    "read",
    "readv",
    "select",
    "sem_wait",
    "sigtimedwait",
    "sigwait",
    "sleep",
    "system",
    "usleep",
    "wait4",
    "waitpid",
    "write",
];

#[test]
fn the_library_calls_no_cancellation_point() {
    let called = asked_for(library());
    let bad: Vec<_> = CANCELLATION_POINTS.iter().filter(|name| called.contains(**name)).collect();
    assert!(
        bad.is_empty(),
        "{bad:?}: a thread that ends there keeps the heap's locks; crates/os/src/call.rs has calls that return"
    );
    assert!(called.contains("mmap"), "{called:?}");
}

fn linked(compile: fn(&str, &[&str]) -> PathBuf, source: &str) -> PathBuf {
    let include = format!("-I{}", workspace().join("crates/preload/include").display());
    let folder = library().parent().expect("the library lies in a folder").display();
    // Not cargo's search path.
    let path = format!("-Wl,--disable-new-dtags,-rpath,{folder}");
    compile(source, &["-w", &include, &format!("-L{folder}"), "-lcraton", &path])
}

fn run(part: &str) {
    let program = linked(cc, "header.c");
    let output = Program::new(&program).arg(part).run();
    output.assert_success();
    output.assert_served(program.file_name().and_then(|n| n.to_str()).expect("the program has a name"));
}

#[test]
fn statistics_follow_what_the_program_does() {
    run("statistics");
    run("sizes");
}

#[test]
fn the_components_of_the_page_heap_are_seen_to_fill_thin_out_and_go() {
    run("page_heap");
}

#[test]
fn the_version_is_a_number() {
    run("version");
}

#[test]
fn options_are_taken_or_refused() {
    run("options");
}

#[test]
fn a_pointer_is_known_as_ours_or_not() {
    run("owns");
}

#[test]
fn releasing_gives_free_memory_back_and_says_how_much() {
    run("release");
}

#[test]
fn the_program_is_called_back_when_the_soft_limit_is_passed() {
    run("callback");
}

#[test]
fn a_program_writes_its_heap_profile_or_is_told_why_not() {
    run("profile");
}

fn asked_for(program: &Path) -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D"]).arg(program).output();
    let output = output.unwrap_or_else(|e| panic!("nm: {e}; install the Debian package binutils"));
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    names.map(|name| name.split('@').next().unwrap_or(name).to_owned()).collect()
}

#[test]
fn every_exported_symbol_is_used_by_a_test() {
    const LATER: &str = "-Wl,-z,dynamic-undefined-weak";
    let programs = [
        linked(cc, "header.c"),
        linked(cc, "own.c"),
        linked(cc, "caches.c"),
        linked(cxx, "own_cxx.cpp"),
        cc("conform.c", &[LATER]),
        cc("introspect.c", &[LATER]),
        cxx("cxx.cpp", &[LATER]),
        cc("alone.c", &[]),
        cc("tasks.c", &["-Wno-clobbered"]),
        cc("alien.c", &["-rdynamic", "-ldl"]),
    ];
    let used: BTreeSet<String> = programs.iter().flat_map(|program| asked_for(program)).collect();
    let list = workspace().join("tests/programs/exports.txt");
    let list = fs::read_to_string(&list).unwrap_or_else(|e| panic!("{}: {e}", list.display()));
    let unused: Vec<_> = list.lines().filter(|l| !l.is_empty() && !l.starts_with('#') && !used.contains(*l)).collect();
    assert!(unused.is_empty(), "exported, but no test calls them: {unused:?}");
}
