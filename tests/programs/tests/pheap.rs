use craton_programs::{Output, Program, cc, cxx, pheap_library, workspace};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

fn include() -> String {
    format!("-I{}", workspace().join("crates/pheap-c/include").display())
}

fn linked(compile: fn(&str, &[&str]) -> PathBuf, source: &str) -> PathBuf {
    let library = pheap_library("libcraton_pheap.so");
    let folder = library.parent().expect("the library lies in a folder").display();
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{folder}");
    compile(source, &[&include(), library.to_str().expect("the library's path is UTF-8"), &rpath])
}

fn linked_statically(compile: fn(&str, &[&str]) -> PathBuf, source: &str) -> PathBuf {
    let library = pheap_library("libcraton_pheap.a");
    compile(source, &[&include(), library.to_str().expect("the library's path is UTF-8"), "-lpthread", "-ldl", "-lm"])
}

fn passes(program: &Path, part: &str, file: &Path) -> Output {
    let output = Program::new(program).args([part.as_ref(), file.as_os_str()]).timeout(120).run();
    output.assert_success();
    output
}

fn part(name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    passes(&linked(cc, "pheap.c"), name, &folder.path().join("a.heap"));
}

#[test]
fn c_programs_allocate_link_replace_and_free() {
    part("basics");
}

#[test]
fn a_heap_of_c_is_whole_at_another_address() {
    part("addresses");
}

#[test]
fn files_that_are_no_heap_and_full_disks_are_errors_of_c() {
    part("bad_files");
}

#[test]
fn bad_arguments_of_c_change_nothing() {
    part("bad_calls");
}

#[test]
fn forked_children_leave_the_heap_of_c_to_their_parent() {
    part("forked");
}

#[test]
fn a_killed_program_comes_back_at_its_sync_point() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, file) = (linked(cc, "pheap.c"), folder.path().join("a.heap"));
    let output = Program::new(&program).args(["syncs".as_ref(), file.as_os_str()]).run();
    assert_eq!(output.signal, Some(libc::SIGKILL), "{output}");
    passes(&program, "synced", &file);
}

#[test]
fn cxx_programs_have_typed_roots_pointers_and_transactions() {
    let folder = tempfile::tempdir().expect("a folder");
    passes(&linked(cxx, "pheap_cxx.cpp"), "basics", &folder.path().join("a.heap"));
}

#[test]
fn heaps_of_cxx_are_whole_at_other_addresses_and_with_the_static_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = linked_statically(cxx, "pheap_cxx.cpp");
    passes(&program, "addresses", &folder.path().join("a.heap"));
    passes(&program, "basics", &folder.path().join("b.heap"));
}

#[test]
fn a_killed_c_program_leaves_whole_transactions() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, file) = (linked(cc, "pheap.c"), folder.path().join("a.heap"));
    let mut last = 0;
    for round in 0..6 {
        let mut child = Command::new(&program)
            .args(["run".as_ref(), file.as_os_str()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let first = lines.next().expect("a transaction");
        thread::sleep(Duration::from_millis(5 * round));
        child.kill().expect("a kill");
        child.wait().expect("its end");
        // The last line may be cut, and is then a smaller number.
        let acknowledged: u64 = lines.last().unwrap_or(first).parse().expect("a number");
        let count: u64 = passes(&program, "verify", &file).stdout.trim().parse().expect("a number");
        assert!(count >= acknowledged && count > last, "{count} of {acknowledged}, {last} before");
        last = count;
    }
}

#[test]
fn the_library_exports_its_own_functions_and_no_malloc() {
    let output = Program::new("nm").args(["-D", "--defined-only"]).arg(pheap_library("libcraton_pheap.so")).run();
    output.assert_success();
    let names: Vec<&str> = output.stdout.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let other: Vec<_> = names.iter().filter(|name| !name.starts_with("craton_pheap_")).collect();
    assert!(other.is_empty() && names.len() > 30, "{other:?} of {}", names.len());
    let header =
        std::fs::read_to_string(workspace().join("crates/pheap-c/include/craton_pheap.h")).expect("the header");
    let undeclared: Vec<_> = names.iter().filter(|name| !header.contains(&format!("{name}("))).collect();
    assert!(undeclared.is_empty(), "{undeclared:?} are not in the header");
}
