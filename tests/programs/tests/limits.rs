//! Exhausted and released memory.

use craton_programs::{Output, Program, cc, library};
use std::path::Path;

fn name(program: &Path) -> &str {
    program.file_name().and_then(|n| n.to_str()).expect("the program has a name")
}

/// In MiB of address space.
fn within(limit: u64, part: &str, least: u64) {
    let program = cc("limits.c", &[]);
    let shell = format!("ulimit -v {} && exec \"$0\" \"$@\"", limit * 1024);
    let run = Program::new("bash").args(["-c", &shell]).arg(&program).arg(part).arg(least.to_string());
    let output = run.preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served(name(&program));
}

fn part(source: &str, part: &str) -> Output {
    let program = cc(source, &[]);
    let output = Program::new(&program).arg(part).preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served(name(&program));
    output
}

/// From less than the dynamic linker needs to more than a small program does.
#[test]
fn too_little_address_space_is_null_and_never_a_crash() {
    let program = cc("plain.c", &[]);
    let mut ended_well = 0;
    for kib in (3000..=24_000).step_by(500) {
        let shell = format!("ulimit -v {kib} && exec env LD_PRELOAD=\"$1\" \"$0\"");
        let run = Program::new("bash").args(["-c", &shell]).arg(&program).arg(library());
        let output = run.timeout(300).run();
        match output.status {
            Some(0) => {
                assert_eq!(output.stdout, "hello, 42\n", "with {kib} KiB:\n{output}");
                // The linker omits a library without room.
                ended_well += usize::from(output.stats.iter().any(|s| s.exe == name(&program)[..15] && s.refills > 0));
            }
            Some(1) => assert!(output.stderr.contains("(errno 12)"), "ENOMEM with {kib} KiB:\n{output}"),
            status => assert_eq!(status, Some(127), "the linker's refusal with {kib} KiB:\n{output}"),
        }
    }
    assert!(ended_well >= 10, "24 MB are enough for a small program under Craton, but {ended_well} runs ended well");
}

#[test]
fn sixty_mebibytes_of_address_space_are_enough_to_run_and_to_end_well() {
    within(60, "small_to_null", 44);
    within(60, "large_to_null", 30);
    within(60, "mixed_to_null", 30);
}

#[test]
fn two_hundred_mebibytes_of_address_space_are_used_to_the_end() {
    within(200, "small_to_null", 160);
    within(200, "large_to_null", 150);
    within(200, "mixed_to_null", 150);
}

#[test]
fn a_gibibyte_of_address_space_is_used_to_the_end() {
    within(1024, "small_to_null", 870);
    within(1024, "large_to_null", 800);
    within(1024, "mixed_to_null", 850);
}

#[test]
fn two_gibibytes_of_address_space_are_used_to_the_end() {
    within(2048, "large_to_null", 1600);
}

#[test]
fn a_limit_on_address_space_that_comes_later_is_met_with_enomem() {
    part("limits.c", "address_space_lowered");
}

#[test]
fn a_limit_on_data_that_comes_later_is_met_with_enomem() {
    part("limits.c", "data_lowered");
}

#[test]
fn refused_mmap_is_enomem_or_found_elsewhere() {
    part("limits.c", "mmap_refused");
}

#[test]
fn refused_mprotect_is_enomem() {
    part("limits.c", "mprotect_refused");
}

#[test]
fn refused_mremap_is_a_copy() {
    part("limits.c", "mremap_refused");
}

#[test]
fn refused_madvise_and_munmap_keep_memory_but_keep_it_right() {
    part("limits.c", "madvise_refused");
    part("limits.c", "munmap_refused");
}

#[test]
fn refusing_everything_leaves_what_the_heap_has() {
    part("limits.c", "all_refused");
}

/// 400 MiB, in order or shuffled.
fn gives_back(size: usize, order: &str) {
    let program = cc("giving.c", &[]);
    let output = Program::new(&program).arg(order).arg(size.to_string()).preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served(name(&program));
}

#[test]
fn freed_small_objects_go_back_to_the_system_by_themselves() {
    for size in [64, 200, 4000, 100_000] {
        gives_back(size, "in_order");
    }
}

#[test]
fn small_objects_freed_in_any_order_go_back_to_the_system_by_themselves() {
    for size in [64, 200, 4000, 100_000] {
        gives_back(size, "shuffled");
    }
}

#[test]
fn freed_large_objects_go_back_to_the_system_by_themselves() {
    for size in [1 << 20, 5 << 20, 40 << 20] {
        gives_back(size, "in_order");
        gives_back(size, "shuffled");
    }
}

#[test]
fn rounds_of_other_sizes_do_not_ratchet() {
    part("giving.c", "no_ratchet");
}

#[test]
fn realloc_in_growing_steps_keeps_contents_to_256_mebibytes() {
    part("giving.c", "growth");
}

#[test]
fn lines_that_nobody_can_read_any_more_do_not_end_the_program() {
    for options in ["nonsense=1", "stats=1", "stats=1,stats_file=/no/such/folder/file"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = std::process::Command::new(cc("plain.c", &[]))
            .env("LD_PRELOAD", craton_programs::library())
            .env("CRATON_OPTIONS", options)
            .stdout(std::process::Stdio::null())
            .stderr(writer)
            .status()
            .unwrap();
        assert!(status.success(), "{options}: {status}");
    }
}

#[test]
fn a_bad_option_is_one_line_and_the_program_goes_on() {
    let run = |options: &str| {
        let output = Program::new(cc("plain.c", &[])).preloaded().options(options).run();
        output.assert_success();
        assert_eq!(output.stdout, "hello, 42\n");
        output.stderr
    };
    for (option, text) in [
        (
            "nonsense=1",
            "no such key (keys: audit_log, background, caches, debug, debug_file, guard_sample, hard_limit, hardened, memory_limit, name_mappings, \
             page_heap, pressure, profile, profile_every, profile_file, profile_growth, quarantine, release_rate, soft_limit, stats, \
             stats_dir, stats_file, thp, thread_cache, trace, trace_events); ignored",
        ),
        ("nonsense", "not of the form key=value; ignored"),
        ("stats=2", "bad value (0 or 1); ignored"),
        ("thp=sometimes", "bad value (auto, always or never); ignored"),
        ("thread_cache=12x", "bad value (bytes, such as 512K); ignored"),
        ("background=2", "bad value (0, inline or 1); ignored"),
        (
            "hardened=2",
            "bad value (0 or 1, before the first request: set it in the environment; nothing is hardened by it); ignored",
        ),
        ("caches=many", "bad value (auto, thread or cpu); ignored"),
        (
            "page_heap=buddy",
            "bad value (temeraire or frames, before the first request: set it in the environment); ignored",
        ),
        ("release_rate=-1", "bad value (auto, or bytes, such as 512K); ignored"),
        ("audit_log=0", "bad value (1 to 268435456 entries, until the log is made); ignored"),
        (
            "debug=audits",
            "\"audits\" is no check (checks: audit, redzone, poison, verify, guard, unmap, leak, mismatch, all, none; targets follow a \
             colon, with + between them); ignored",
        ),
        ("debug=audit:12K", "\"12K\" is no size: give bytes as a plain number; ignored"),
        ("guard_sample=often", "bad value (0 for none, auto, or N for one object in N, up to 1099511627776); ignored"),
        ("quarantine=lots", "bad value (0 to 1T bytes, such as 64M); ignored"),
        ("trace_events=0", "bad value (a number above 0); ignored"),
        ("thread_cache=99999999999999999999", "bad value (bytes, such as 512K); ignored"),
    ] {
        assert_eq!(run(option), format!("craton: option \"{option}\": {text}\n"));
    }
    let odd = run("thp=a\ncraton: all is well\x1b[2J");
    assert!(
        odd.starts_with("craton: option \"thp=a?craton: all is well?[2J\": bad value") && odd.lines().count() == 1,
        "{odd}"
    );
    assert_eq!(run("bad=1,thp=never").lines().count(), 1, "the good option behind a bad one counts in silence");
    assert_eq!(run("background=0,background=inline,background=1"), "");
    assert_eq!(run(""), "");
    assert_eq!(run(",,thp=auto,,"), "");
}
