use craton_programs::{Output, Program, cc, library, static_library, workspace};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn name(program: &Path) -> &str {
    program.file_name().and_then(|n| n.to_str()).expect("the program has a name")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

fn ask(tool: &str, args: &[&str]) -> String {
    let output = Program::new(tool).args(args).arg(library()).run();
    output.assert_success();
    output.stdout
}

fn opened(part: &str) {
    let program = cc("open.c", &[]);
    let output = Program::new(&program).arg(library()).arg(part).run();
    output.assert_success();
    output.assert_served(name(&program));
}

#[test]
fn opened_later_it_serves_its_callers_and_survives_dlclose() {
    opened("use_and_close");
}

#[test]
fn opened_later_it_hands_the_pointers_of_libc_to_libc() {
    opened("foreign");
}

#[test]
fn opened_later_it_serves_other_threads() {
    opened("second_thread");
}

#[test]
fn a_second_thread_may_open_it() {
    opened("opened_in_a_thread");
}

#[test]
fn it_can_be_opened_when_many_threads_exist() {
    opened("after_many_threads");
}

fn linked(flags: &[&str]) -> Output {
    let program = cc("plain.c", flags);
    let output = Program::new(&program).run();
    output.assert_success();
    assert_eq!(output.stdout, "hello, 42\n");
    assert!(output.assert_served(name(&program)).large_allocs > 0, "no large object:\n{output}");
    output
}

#[test]
fn a_dynamic_program_can_have_the_static_library() {
    linked(&[text(static_library())]);
}

#[test]
fn a_fully_static_program_can_have_the_static_library() {
    linked(&["-static", text(static_library())]);
    linked(&["-static-pie", text(static_library())]);
}

#[test]
fn a_program_can_be_linked_with_the_shared_library() {
    let folder = library().parent().expect("the library lies in a folder");
    // Not cargo's search path.
    linked(&[text(library()), &format!("-Wl,--disable-new-dtags,-rpath,{}", text(folder))]);
}

#[test]
fn a_rust_program_can_have_it_as_global_allocator() {
    let output = Program::new(env!("CARGO_BIN_EXE_craton-rust")).run();
    output.assert_success();
    assert!(output.stdout.ends_with(" lines\n"), "{output}");
    let stats = output.assert_served("craton-rust");
    assert_eq!(stats.threads_seen, 9, "{output}");
    assert!(stats.objects_out > 10_000 && stats.huge_allocs > 0, "{output}");
}

#[test]
fn exported_symbols_are_those_of_the_list() {
    let list = workspace().join("tests/programs/exports.txt");
    let list = fs::read_to_string(&list).unwrap_or_else(|e| panic!("{}: {e}", list.display()));
    let expected: Vec<&str> = list.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let symbols = ask("nm", &["-D", "--defined-only"]);
    let mut found: Vec<&str> = symbols.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    found.sort_unstable();
    let extra: Vec<_> = found.iter().filter(|s| !expected.contains(s)).collect();
    let gone: Vec<_> = expected.iter().filter(|s| !found.contains(s)).collect();
    assert!(extra.is_empty() && gone.is_empty(), "exported but not in exports.txt: {extra:?}; not exported: {gone:?}");
    assert_eq!(found, expected, "exports.txt is sorted, without repetition");
}

#[test]
fn the_library_needs_only_libc() {
    let dynamic = ask("readelf", &["-dW"]);
    let needed: Vec<_> = dynamic.lines().filter(|l| l.contains("(NEEDED)")).collect();
    assert_eq!(needed.len(), 1, "{dynamic}");
    assert!(needed[0].ends_with("[libc.so.6]"), "{dynamic}");
}

#[test]
fn the_library_takes_little_of_the_static_thread_storage() {
    let headers = ask("readelf", &["-lW"]);
    let line = headers.lines().find(|l| l.trim_start().starts_with("TLS"));
    // Type, offset, virtual address, physical address, size in the file, size in memory.
    let size = line.and_then(|l| l.split_whitespace().nth(5)).and_then(|hex| hex.strip_prefix("0x"));
    let size = size.map(|hex| u64::from_str_radix(hex, 16).expect("readelf prints a number")).unwrap_or(0);
    // glibc keeps some hundred bytes for libraries opened later.
    assert!(size <= 64, "{size} bytes of thread-local storage:\n{headers}");
}

#[test]
fn the_numbers_of_closed_descriptors_are_left_to_the_program() {
    let program = cc("descriptors.c", &[]);
    let closed = Program::new("bash").args(["-c", "exec \"$0\" <&- >&- 2>&-"]).arg(&program);
    let output = closed.preloaded().run();
    output.assert_success();
    output.assert_served(name(&program));
}

#[test]
fn options_are_ignored_in_a_set_uid_program() {
    // SAFETY: touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can make a program that runs as another user");
        return;
    }
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir();
    let folder = folder.expect("a temporary folder can be made");
    let (shared, program) = (folder.path().join("libcraton.so"), folder.path().join("plain"));
    fs::copy(library(), &shared).expect("the library can be copied");
    let linked_to_copy = cc("plain.c", &[text(library()), &format!("-Wl,-rpath,{}", text(folder.path()))]);
    // A program that this process or a child has open for writing does not start.
    let copied = Command::new("cp").arg(linked_to_copy).arg(&program).status();
    assert!(copied.is_ok_and(|status| status.success()), "the program can be copied");
    let run = |mode: u32| {
        fs::set_permissions(&program, Permissions::from_mode(mode)).expect("root can set permissions");
        let drop_root = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let output = Program::new("setpriv").args(drop_root).arg(&program).arg("say").options("stats=1").run();
        output.assert_success();
        output
    };
    let plain = run(0o755);
    assert_eq!(plain.stdout, "hello, 42\nprivileged: 0\n");
    assert!(plain.stderr.contains("craton: statistics of process "), "options count in a plain program:\n{plain}");
    let privileged = run(0o4755);
    if privileged.stdout == plain.stdout {
        eprintln!("skipped: set-uid bits do not count in {}", folder.path().display());
        return;
    }
    assert_eq!(privileged.stdout, "hello, 42\nprivileged: 1\n");
    assert_eq!(privileged.stderr, "", "options in a set-uid program:\n{privileged}");
    assert!(privileged.stats.is_empty(), "a file written by a set-uid program:\n{privileged}");
}

fn segments(flags: &str) -> Vec<std::ops::Range<u64>> {
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("readelf prints numbers");
    let headers = ask("readelf", &["-lW"]);
    let loads = headers.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    loads
        .filter(|l| l.first() == Some(&"LOAD") && l[6..l.len() - 1].concat() == flags)
        .map(|l| number(l[2])..number(l[2]) + number(l[5]))
        .collect()
}

#[test]
fn what_every_program_needs_lies_in_mappings_of_its_own() {
    let symbols = ask("nm", &["-D", "--defined-only"]);
    let address = |name: &str| {
        let line =
            symbols.lines().find(|l| l.split_whitespace().last().is_some_and(|n| n.split('@').next() == Some(name)));
        let line = line.unwrap_or_else(|| panic!("{name} is not exported:\n{symbols}"));
        u64::from_str_radix(&line[..16], 16).expect("nm prints addresses")
    };
    let code = segments("RE");
    assert_eq!(code.len(), 5, "segments with code: {code:x?}");
    for name in ["malloc", "free", "calloc", "realloc", "_Znwm", "_ZdlPv"] {
        assert!(code[0].contains(&address(name)), "{name} is not in the first segment: crates/preload/layout.ld");
    }
    for name in ["malloc_info", "craton_stats_json", "craton_heap_create"] {
        assert!(code[4].contains(&address(name)), "{name} is in an earlier segment: crates/preload/layout.ld");
    }
    assert!(ask("readelf", &["-SW"]).contains(" .text "), "gdb 13 ends where a library has no section of this name");
    let unwinding = segments("R");
    assert_eq!(unwinding.len(), 2, "what only unwinding reads is apart: {unwinding:x?}");
}

fn in_memory(access: &str) -> Vec<u32> {
    let preload = format!("LD_PRELOAD={}", text(library()));
    let output = Program::new("env").args(["-u", "CRATON_OPTIONS", &preload, "cat", "/proc/self/smaps"]).run();
    output.assert_success();
    let mut found = Vec::new();
    let mut is_ours = false;
    for line in output.stdout.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            [range, has, .., path] if range.contains('-') => {
                is_ours = has.starts_with(access) && path.ends_with("libcraton.so");
            }
            ["Rss:", kib, _] if is_ours => found.push(kib.parse().expect("smaps counts in KiB")),
            _ => {}
        }
    }
    found
}

#[test]
fn a_small_program_pays_only_for_what_every_program_needs() {
    let code = in_memory("r-x");
    assert_eq!(code.len(), 5, "KiB of code: {code:?}");
    assert_eq!(code[2], 0, "KiB of what only the start needs, after it");
    assert_eq!(code[3], 0, "KiB of what samples need, without one");
    assert_eq!(code[4], 0, "KiB of what few programs need: a function is missing in crates/preload/layout.ld");
    // The heap is zeros at first.
    assert!(in_memory("rw-").iter().sum::<u32>() <= 32, "KiB of data: {:?}", in_memory("rw-"));
}
