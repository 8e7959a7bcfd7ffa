use craton_programs::{Output, Program, cc, cxx, static_library};
use std::path::Path;

const CACHES: [&str; 3] = ["caches=auto", "caches=thread", "caches=cpu"];

fn run(program: &Path, part: &str) -> Output {
    run_with(program, part, "caches=auto")
}

fn run_with(program: &Path, part: &str, option: &str) -> Output {
    let output = Program::new(program).arg(part).options(option).preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served(name(program));
    output
}

fn name(program: &Path) -> &str {
    program.file_name().and_then(|n| n.to_str()).expect("the program has a name")
}

#[test]
fn sixty_four_threads_that_start_and_stop_keep_memory_bounded() {
    let program = cc("threads.c", &[]);
    let seen = run_with(&program, "start_and_stop", "caches=thread").stats[0].threads_seen;
    assert_eq!(seen, 64 * 20 + 1);
    let output = run(&program, "start_and_stop");
    let stats = &output.stats[0];
    if stats.cache_mode > 0 {
        assert!(stats.processor_caches > 0, "threads were served by processors' caches:\n{output}");
    }
    run_with(&program, "start_and_stop", "caches=cpu");
}

#[test]
fn a_thread_takes_over_the_cache_of_one_that_ended() {
    let output = run_with(&cc("threads.c", &[]), "one_after_the_other", "caches=thread");
    let stats = &output.stats[0];
    assert_eq!(stats.threads_seen, 5000 + 1, "threads seen:\n{output}");
    assert!(stats.metadata_bytes < 8 << 20, "metadata grew with the threads:\n{output}");
}

#[test]
fn threads_alive_together_are_counted_once_each() {
    let program = cc("threads.c", &[]);
    let output = run_with(&program, "count_them", "caches=thread");
    assert_eq!(output.stats[0].threads_seen, 64 + 1, "threads seen:\n{output}");
    let output = run(&program, "count_them");
    let (stats, most) = (&output.stats[0], 64 + 1);
    assert!((1..=most).contains(&stats.threads_seen), "threads seen:\n{output}");
}

#[test]
fn objects_that_only_flow_one_way_do_not_pile_up() {
    for option in CACHES {
        run_with(&cc("threads.c", &[]), "one_way", option);
    }
}

#[test]
fn objects_outlive_the_thread_that_allocated_them() {
    for option in CACHES {
        run_with(&cc("threads.c", &[]), "outlive", option);
    }
}

#[test]
fn threads_with_the_least_stack_allocate_all_sizes() {
    for option in CACHES {
        run_with(&cc("threads.c", &[]), "small_stacks", option);
    }
}

#[test]
fn a_cancelled_thread_leaves_its_cache_to_the_next() {
    let output = run(&cc("threads.c", &[]), "cancelled");
    assert!(output.stats[0].metadata_bytes < 8 << 20, "metadata grew with the threads:\n{output}");
}

#[test]
fn threads_of_a_fully_static_program_come_and_go() {
    let library = static_library().to_str().expect("the library's path is UTF-8");
    let program = cc("threads.c", &["-static", library]);
    for (part, threads) in [("start_and_stop", 64 * 20), ("one_after_the_other", 5000), ("outlive", 64 * 10)] {
        let output = Program::new(&program).arg(part).options("caches=thread").timeout(300).run();
        output.assert_success();
        assert_eq!(output.assert_served(name(&program)).threads_seen, threads + 1, "{part}:\n{output}");
    }
}

#[test]
fn threads_start_other_programs_while_all_allocate() {
    let program = cc("spawn.c", &[]);
    let output = Program::new(&program).preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served(name(&program));
    // Shells of `system` have another name.
    let served = output.stats.iter().filter(|s| s.exe == name(&program)[..15] && s.refills > 0).count();
    assert_eq!(served, 1 + 6 * 40, "processes that Craton served:\n{output}");
}

#[test]
fn children_of_a_threaded_program_allocate_and_never_hang() {
    fork_storm(&cc("forks.c", &[]), true);
}

#[test]
fn children_of_a_fully_static_threaded_program_never_hang() {
    let library = static_library().to_str().expect("the library's path is UTF-8");
    fork_storm(&cc("forks.c", &["-static", library]), false);
}

fn fork_storm(program: &Path, preloaded: bool) {
    let run = Program::new(program).timeout(300);
    let output = if preloaded { run.preloaded() } else { run }.run();
    output.assert_success();
    output.assert_served(name(program));
    // The parent, 300 children, 43 grandchildren.
    let mut pids: Vec<u64> = output.stats.iter().map(|s| s.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!((output.stats.len(), pids.len()), (344, 344), "processes that spoke:\n{output}");
    assert!(output.stats.iter().all(|s| s.refills > 0), "a child was not served:\n{output}");
}

#[test]
fn objects_before_main_and_after_it_are_served() {
    let library = static_library().to_str().expect("the library's path is UTF-8");
    for flags in [&[][..], &[library], &["-static", library]] {
        let program = cxx("early_late.cpp", flags);
        let run = Program::new(&program);
        let output = if flags.is_empty() { run.preloaded() } else { run }.run();
        output.assert_success();
        output.assert_served(name(&program));
        assert_eq!(output.stdout, "end\n", "the last destructor ran:\n{output}");
    }
}
