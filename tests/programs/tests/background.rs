//! What the library does by itself, with a thread or without, and that programs do not come to grief over it.

use craton_programs::{Output, Program, cc};
use std::path::Path;

fn name(program: &Path) -> &str {
    program.file_name().and_then(|n| n.to_str()).expect("the program has a name")
}

fn run(part: &str, options: &str) -> Output {
    let output = Program::new(cc("alone.c", &[])).arg(part).preloaded().options(options).timeout(240).run();
    output.assert_success();
    output
}

fn served(part: &str, options: &str) {
    run(part, options).assert_served(name(&cc("alone.c", &[])));
}

#[test]
fn a_program_whose_main_thread_ends_by_pthread_exit_ends_with_0() {
    served("main_exits", "");
}

#[test]
fn a_program_whose_main_thread_ends_before_the_heap_grows_ends_with_0() {
    served("main_exits_first", "");
}

#[test]
fn namespaces_are_entered_with_a_large_heap() {
    let program = cc("alone.c", &[]);
    let plain = Program::new(&program).arg("namespaces").run();
    plain.assert_success();
    if plain.stdout.starts_with("refused") {
        eprintln!("skipped: the system does not let this user make namespaces");
        return;
    }
    assert_eq!(run("namespaces", "").stdout, "allowed\n");
}

#[test]
fn a_program_that_filters_its_system_calls_survives() {
    assert_eq!(run("filtered", "").stdout, "survived\n");
}

#[test]
fn a_program_that_filters_its_system_calls_when_there_is_a_thread_survives() {
    assert_eq!(run("filtered_with_thread", "").stdout, "survived\n");
}

#[test]
fn a_busy_program_without_threads_gets_none() {
    served("busy", "");
}

/// Takes more than a minute: before, demand is not known.
#[test]
fn a_program_that_sleeps_on_much_free_memory_gets_a_thread_that_gives_it_back() {
    served("sleeps", "");
}

/// As above.
#[test]
fn a_program_that_goes_on_gives_memory_back_without_a_thread() {
    served("goes_on_alone", "background=inline");
}

#[test]
fn a_process_that_forks_has_one_thread() {
    served("forks", "");
}

#[test]
fn a_process_cloned_past_the_c_library_waits_for_no_thread() {
    served("cloned", "");
}

#[test]
fn a_program_with_threads_gets_one_more() {
    served("threaded", "");
}

#[test]
fn the_thread_comes_and_goes_as_it_is_told() {
    served("told", "");
}
