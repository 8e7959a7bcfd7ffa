//! Memory is released after seconds, since the demand of the last five is kept: `make test` uses a
//! clock sixty times as fast, `make nightly` also the machine's.

use craton_programs::{Output, Program, cc, library};
use std::path::Path;

fn name(program: &Path) -> &str {
    program.file_name().and_then(|n| n.to_str()).expect("the program has a name")
}

fn run(part: &str, options: &str) -> Output {
    let output = Program::new(cc("alone.c", &[])).arg(part).preloaded().options(options).timeout(600).run();
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

fn served_on_a_fast_clock(part: &str, options: &str) {
    let clock = cc("fast_clock.c", &["-shared", "-fPIC"]);
    let both = format!("{}:{}", library().display(), clock.display());
    let program = Program::new(cc("alone.c", &[])).arg(part).env("LD_PRELOAD", both).options(options);
    let output = program.timeout(60).run();
    output.assert_success();
    output.assert_served(name(&cc("alone.c", &[])));
}

#[test]
fn a_program_that_sleeps_on_much_free_memory_gets_a_thread_that_gives_it_back() {
    served_on_a_fast_clock("sleeps", "");
}

#[test]
fn a_program_that_goes_on_gives_memory_back_without_a_thread() {
    served_on_a_fast_clock("goes_on_alone", "background=inline");
}

#[test]
fn a_program_that_sleeps_beside_a_sleeping_thread_gives_memory_back() {
    served_on_a_fast_clock("helper", "");
}

#[test]
fn a_program_whose_thread_began_when_its_heap_had_grown_gives_memory_back() {
    served_on_a_fast_clock("late_helper", "");
}

#[test]
#[ignore = "nightly: seconds of the machine's clock"]
fn a_program_that_sleeps_for_seconds_gets_a_thread_that_gives_memory_back() {
    served("sleeps", "");
}

#[test]
#[ignore = "nightly: seconds of the machine's clock"]
fn a_program_that_goes_on_for_seconds_gives_memory_back_without_a_thread() {
    served("goes_on_alone", "background=inline");
}

#[test]
fn a_process_that_forks_has_one_thread() {
    served("forks", "");
}

#[test]
fn the_thread_of_a_forked_child_leaves_the_stacks_of_its_parents_threads_alone() {
    served("forks_in_thread", "");
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
