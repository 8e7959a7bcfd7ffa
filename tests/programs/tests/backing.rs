//! Backing follows touch; a system that refuses an advice or misreports memory does no harm.

use craton_programs::{Group, Output, Program, cc, library};
use std::path::{Path, PathBuf};

/// Part, object size, number, bytes between two touches, malloc or calloc.
type Load = (&'static str, usize, usize, usize, &'static str);

const SPANS: [Load; 2] =
    [("sparse", 256 << 10, 2000, 1_000_000, "malloc"), ("sparse", 20_000_000, 40, 20_000_000, "malloc")];
const MAPPINGS: [Load; 6] = [
    ("sparse", 1 << 30, 1, 2 << 20, "malloc"),
    ("sparse", 1 << 30, 1, 2 << 20, "calloc"),
    ("sparse", 40_000_000, 20, 2 << 20, "calloc"),
    ("grows_sparse", 1 << 30, 1, 1 << 20, "malloc"),
    ("grows_sparse", 1 << 28, 1, 64 << 10, "calloc"),
    ("grow_sparse_in_turn", 64 << 20, 64, 1, "malloc"),
];

fn name(program: &Path) -> &str {
    program.file_name().and_then(|n| n.to_str()).expect("the program has a name")
}

fn with_load(program: Program, load: Load) -> Program {
    let (part, size, count, step, how) = load;
    program.args([part, &size.to_string(), &count.to_string(), &step.to_string(), how])
}

fn run(load: Load, options: &str) -> Output {
    let output = try_to(load, options);
    output.assert_success();
    output
}

fn try_to(load: Load, options: &str) -> Output {
    let program = cc("backing.c", &[]);
    let output = with_load(Program::new(&program), load).preloaded().options(options).run();
    output.assert_served(name(&program));
    output
}

fn sparse_loads() -> impl Iterator<Item = Load> {
    SPANS.into_iter().chain(MAPPINGS)
}

const MIXED: [Load; 4] = [
    ("mixed", 70_000, 4000, 4, "malloc"),
    ("mixed", 300_000, 1000, 20, "malloc"),
    ("mixed", 2 << 20, 200, 4, "malloc"),
    ("mixed", 3_000_000, 150, 4, "calloc"),
];

#[test]
fn objects_of_which_few_are_written_cost_what_is_written_in_every_round() {
    MIXED.into_iter().for_each(|load| drop(run(load, "")));
}

#[test]
fn objects_of_which_few_are_written_cost_what_is_written_without_hugepages() {
    MIXED.into_iter().for_each(|load| drop(run(load, "thp=never")));
}

#[test]
fn hardly_touched_objects_cost_what_is_touched() {
    sparse_loads().for_each(|load| drop(run(load, "")));
}

#[test]
fn hardly_touched_objects_cost_what_is_touched_without_the_background_work() {
    sparse_loads().for_each(|load| drop(run(load, "background=0")));
}

#[test]
fn hardly_touched_objects_cost_what_is_touched_without_hugepages() {
    sparse_loads().for_each(|load| drop(run(load, "thp=never")));
}

#[test]
fn a_user_who_wants_hugepages_everywhere_pays_for_what_is_asked_at_most() {
    SPANS.into_iter().for_each(|load| drop(run(load, "thp=always")));
    run(("sparse", 256 << 20, 1, 2 << 20, "calloc"), "thp=always");
}

#[test]
fn hardly_touched_objects_live_in_a_control_group_of_64_mebibytes() {
    let program = cc("backing.c", &[]);
    // Copied objects lie in memory twice.
    let few = [("mixed", 2 << 20, 200, 40, "malloc"), ("mixed", 300_000, 1000, 20, "malloc")];
    for load in sparse_loads().filter(|load| load.0 != "grow_sparse_in_turn").chain(few) {
        let Some(group) = Group::new(64 << 20) else {
            eprintln!("skipped: this user may not make control groups with limits");
            return;
        };
        let shell = format!("{} exec env LD_PRELOAD=\"$0\" \"$@\"", group.enter());
        let run = Program::new("bash").args(["-c", &shell]).arg(library()).arg(&program);
        let output = with_load(run, load).run();
        output.assert_success();
        output.assert_served(name(&program));
    }
}

/// When the system is slow, the library asks for no hugepages for 1 s; then another process tries.
fn gets_hugepages(load: Load) {
    let mut output = try_to(load, "");
    for _ in 0..2 {
        if output.status != Some(0) {
            output = try_to(load, "");
        }
    }
    output.assert_success();
    if output.stdout == "no hugepages\n" {
        eprintln!("skipped: the system has no hugepages to give now");
    }
}

#[test]
fn objects_that_are_written_everywhere_get_hugepages() {
    gets_hugepages(("dense", 256 << 10, 2048, 1, "malloc"));
    gets_hugepages(("dense", 20_000_000, 26, 1, "malloc"));
    gets_hugepages(("dense", 40_000_000, 14, 1, "calloc"));
}

#[test]
fn mappings_that_are_written_everywhere_in_turn_get_hugepages() {
    gets_hugepages(("dense_in_turn", 256 << 20, 6, 1, "malloc"));
}

#[test]
fn an_object_that_grows_and_is_written_everywhere_gets_hugepages() {
    gets_hugepages(("grows_dense", 300_000_000, 1, 1, "malloc"));
}

fn on_another_system(args: &[&str]) {
    let program: PathBuf = cc("refused_advice.c", &["-rdynamic"]);
    let clock = cc("fast_clock.c", &["-shared", "-fPIC"]);
    let both = format!("{}:{}", library().display(), clock.display());
    let output = Program::new(&program).args(args).env("LD_PRELOAD", both).run();
    output.assert_success();
    output.assert_served(name(&program));
}

fn refuses(what: &str) {
    for error in ["EINVAL", "ENOMEM", "EAGAIN"] {
        on_another_system(&["refused", what, error]);
    }
    on_another_system(&["refused_later", what, "EINVAL"]);
}

#[test]
fn a_system_that_refuses_hugepages_does_no_harm() {
    refuses("huge");
}

#[test]
fn a_system_that_refuses_to_leave_memory_on_small_pages_does_no_harm() {
    refuses("small");
}

#[test]
fn a_system_that_refuses_collapses_does_no_harm() {
    refuses("collapse");
}

#[test]
fn a_system_that_refuses_to_take_memory_back_does_no_harm() {
    refuses("dontneed");
}

#[test]
fn a_system_that_refuses_to_fault_ahead_does_no_harm() {
    refuses("populate");
}

#[test]
fn a_system_that_does_not_tell_what_is_resident_does_no_harm() {
    refuses("mincore");
    refuses("scan");
}

#[test]
fn a_system_that_calls_everything_resident_does_no_harm() {
    on_another_system(&["all_resident"]);
}

#[test]
fn a_system_that_calls_nothing_resident_does_no_harm() {
    on_another_system(&["nothing_resident"]);
}

fn cleared(system: &str) -> u32 {
    let program = cc("refused_advice.c", &["-rdynamic"]);
    let output = Program::new(&program).args([system]).preloaded().run();
    output.assert_success();
    output.assert_served(name(&program));
    output.stdout.trim().parse().expect("a number")
}

#[test]
fn a_system_that_is_slow_to_give_hugepages_is_asked_for_few() {
    let quick = cleared("quick");
    if quick < 10 {
        eprintln!("skipped: the system has no hugepages to give now, or is too busy");
        return;
    }
    let slow = cleared("slow");
    assert!(slow <= 3, "{slow} cleared ahead in the pauses; {quick} on a quick system");
}
