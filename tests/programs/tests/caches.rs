use craton_programs::{Output, Program, cc, cxx, library};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn linked(compile: fn(&str, &[&str]) -> PathBuf, source: &str) -> PathBuf {
    let library = library().to_str().expect("the library's path is UTF-8");
    let folder = Path::new(library).parent().expect("the library lies in a folder").display();
    compile(source, &["-w", library, &format!("-Wl,--disable-new-dtags,-rpath,{folder}")])
}

fn run(compile: fn(&str, &[&str]) -> PathBuf, source: &str, part: &str) -> Output {
    let output = Program::new(linked(compile, source)).arg(part).timeout(300).run();
    output.assert_success();
    output
}

/// Without restartable sequences there are no arrays.
fn c(part: &str) {
    run(cc, "caches.c", part);
    let without = Program::new(linked(cc, "caches.c")).arg(part).env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    without.timeout(300).run().assert_success();
}

fn misuse(part: &str, call: &str, says: &str) {
    for tunables in ["", "glibc.pthread.rseq=0"] {
        let program = Program::new(linked(cc, "misuse_caches.c")).arg(part).env("GLIBC_TUNABLES", tunables);
        let output = program.timeout(300).run();
        assert_eq!(output.signal, Some(libc::SIGABRT), "ends by SIGABRT:\n{output}");
        let address = output.stdout.trim_end();
        assert_eq!(output.stderr, format!("craton: {call}({address}): {says}\n"), "{output}");
    }
}

#[test]
fn objects_of_all_sizes_and_alignments_keep_what_is_in_them_out_and_free() {
    c("objects");
}

#[test]
fn objects_stay_constructed_while_they_are_free_and_are_destroyed_before_their_memory_goes() {
    c("states");
}

#[test]
fn a_constructor_that_fails_leaves_nothing_behind() {
    c("failures");
}

#[test]
fn a_constructor_that_asks_its_own_cache_is_told_so() {
    c("recursion");
}

#[test]
fn bad_options_are_refused() {
    c("bad_options");
}

#[test]
fn prefill_beyond_all_memory_is_refused_at_once() {
    c("prefilled_beyond");
}

#[test]
fn what_is_refused_is_refused_under_the_kit_too() {
    for part in ["recursion", "bad_options", "prefilled_beyond"] {
        let program = Program::new(linked(cc, "caches.c")).arg(part);
        program.options("debug=audit,redzone,poison,verify,guard,unmap").timeout(300).run().assert_success();
    }
}

#[test]
fn a_limit_is_kept_and_an_object_that_comes_back_wakes_who_waits() {
    c("limits");
    c("waiting_threads");
}

#[test]
fn what_was_promised_is_there_without_memory() {
    c("prefilled");
}

#[test]
fn threads_share_a_cache() {
    c("in_threads");
}

#[test]
fn forked_children_go_on_with_caches_that_threads_were_using() {
    c("in_forks");
}

#[test]
fn without_memory_every_call_says_so_and_changes_nothing() {
    c("no_memory");
}

#[test]
fn what_nobody_needed_for_an_interval_goes_back_by_itself() {
    c("working_set");
}

#[test]
fn caches_come_and_go_and_leave_nothing_behind() {
    c("come_and_go");
}

#[test]
fn statistics_name_every_cache_with_all_its_counts() {
    let output = run(cc, "caches.c", "statistics");
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}:\n{output}"));
    let cache = &document["caches"][0];
    assert_eq!((&cache["name"], &cache["in_use"]), (&"Übung".into(), &10.into()), "{output}");
    assert_eq!((&cache["allocations"], &cache["constructed"]), (&1100.into(), &100.into()), "{output}");
    let count = |key: &str| cache[key].as_u64().unwrap_or_else(|| panic!("{key}: {output}"));
    assert_eq!(count("slabs"), count("partial") + count("complete") + count("full"));
    let printed = Program::new(linked(cc, "caches.c")).arg("statistics").options("stats=1").run();
    assert!(printed.stderr.contains("  cache  name  object_bytes  buffer_bytes  in_use"), "{printed}");
}

#[test]
fn objects_in_the_wrong_hands_are_reported_with_both_names() {
    misuse("other_cache", "craton_cache_free", "an object of cache \"a\", not of cache \"b\"");
    misuse("of_malloc", "craton_cache_free", "not an object of cache \"a\": malloc or a heap has it");
    misuse("of_stack", "craton_cache_free", "not allocated by Craton");
    let back = "an object of cache \"connections\": give it back with craton_cache_free";
    misuse("plain_free", "free", back);
    misuse("plain_realloc", "realloc", back);
    misuse("heap_free", "craton_heap_free", "an object of cache \"c\": give it back with craton_cache_free");
}

#[test]
fn a_second_free_is_reported_wherever_the_object_went() {
    misuse("twice_small", "craton_cache_free", "double free of a 8-byte object");
    misuse("twice_raw", "craton_cache_free", "double free of a 100-byte object");
    misuse("twice_built_small", "craton_cache_free", "double free of a 24-byte object");
    misuse("twice_built", "craton_cache_free", "double free of a 192-byte object");
    misuse("twice_large", "craton_cache_free", "double free of a 5000-byte object");
    misuse("twice_later", "craton_cache_free", "double free of a 100-byte object");
    misuse("twice_after_reap", "craton_cache_free", "double free of a 100-byte object");
}

#[test]
fn the_middle_of_an_object_is_reported() {
    let inside = |offset: &str, size: usize| {
        format!("not the start of an object: it points {offset} into an object of {size} bytes")
    };
    misuse("middle_small", "craton_cache_free", &inside("8 bytes", 48));
    misuse("middle_odd", "craton_cache_free", &inside("1 byte", 48));
    misuse("middle_large", "craton_cache_free", &inside("8192 bytes", 20000));
}

#[test]
fn caches_that_are_gone_or_never_were_are_reported() {
    misuse("destroyed_twice", "craton_cache_destroy", "this object cache has been destroyed");
    misuse("used_after_destroy", "craton_cache_alloc", "this object cache has been destroyed");
    misuse("freed_after_destroy", "craton_cache_free", "this object cache has been destroyed");
    misuse("no_cache", "craton_cache_alloc", "not an object cache of Craton");
    misuse("no_cache_after_use", "craton_cache_alloc", "not an object cache of Craton");
    misuse("null_cache", "craton_cache_free", "not an object cache of Craton");
}

#[test]
fn the_debugging_kit_says_likewise_that_a_handle_is_bad() {
    for (part, call, says) in [
        ("used_after_destroy", "craton_cache_alloc", "this object cache has been destroyed"),
        ("freed_after_destroy", "craton_cache_free", "this object cache has been destroyed"),
        ("no_cache_after_use", "craton_cache_alloc", "not an object cache of Craton"),
        ("null_cache", "craton_cache_free", "not an object cache of Craton"),
    ] {
        let output = Program::new(linked(cc, "misuse_caches.c")).arg(part).options("debug=all").timeout(300).run();
        assert_eq!(output.signal, Some(libc::SIGABRT), "ends by SIGABRT:\n{output}");
        let address = output.stdout.trim_end();
        assert_eq!(output.stderr, format!("craton: {call}({address}): {says}\n"), "{output}");
    }
}

#[test]
fn a_target_that_is_no_cache_is_told_of_at_the_exit_of_a_program_that_has_caches() {
    let program = |options: &str| Program::new(linked(cc, "caches.c")).arg("statistics").options(options).run();
    let unmet =
        |output: &Output| serde_json::from_str::<Value>(&output.stdout).unwrap()["debug"]["targets_unmet"].as_u64();
    let met = program("debug=redzone:Übung");
    met.assert_success();
    assert_eq!((met.stderr.as_str(), unmet(&met)), ("", Some(0)), "{met}");
    let output = program("debug=redzone:Übunk+64+Übung");
    output.assert_success();
    let line = "craton: option \"debug\": no object cache \"Übunk\" was made since it was set, so that nothing was checked of it\n";
    assert_eq!((output.stderr.as_str(), unmet(&output)), (line, Some(1)), "{output}");
}

#[test]
fn objects_of_a_template_pass_exceptions_of_their_constructors_through() {
    run(cxx, "caches_cxx.cpp", "objects");
    run(cxx, "caches_cxx.cpp", "exceptions");
    run(cxx, "caches_cxx.cpp", "bad");
    run(cxx, "caches_cxx.cpp", "recursion");
}

#[test]
fn standard_containers_live_in_caches() {
    run(cxx, "caches_cxx.cpp", "resource");
}
